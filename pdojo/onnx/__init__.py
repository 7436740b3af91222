"""ONNX models as graphs of kernels.

>>> from pdojo import onnx
>>> model = onnx.load("model.onnx")  # doctest: +SKIP
>>> y = model.run(x)  # doctest: +SKIP
"""

from pdojo.errors import UsageError

try:
    import onnx as _
except ImportError:
    raise UsageError("pdojo.onnx needs the package onnx: pip install 'pdojo[onnx]'") from None

from pdojo.onnx import operators as _operators  # noqa: F401  # registers them
from pdojo.onnx.model import CallableOnnxModel, OnnxModel, load
from pdojo.onnx.operators.registry import UnsupportedNode

__all__ = ["CallableOnnxModel", "OnnxModel", "UnsupportedNode", "load"]
