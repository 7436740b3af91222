"""Composite functions of elements: formulas of functions of statements, one record each.

`pdojo.build`, PyTorch's and ONNX's operators and functions of linalg refer to them by name.
"""

from __future__ import annotations

from pdojo.math.composites import activations, choices, elementary, gradients, special
from pdojo.math.composites.record import COMPOSITES, Composite

__all__ = ["COMPOSITES", "Composite", "activations", "choices", "elementary", "gradients", "special"]
