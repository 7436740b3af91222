"""A small PyTorch model, for docs/how-to/torch.md."""

from __future__ import annotations

from typing import Any

import torch


def net() -> tuple[Any, list[Any]]:
    """A module for inference, and inputs for it."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 10), torch.nn.Softmax(-1)
    return torch.nn.Sequential(*layers).eval(), [torch.randn(4, 64)]
