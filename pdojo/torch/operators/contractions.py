"""Sums of products."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import Call, aten


@aten("mm.default", "bmm.default")
def matmul(call: Call, a: Array, b: Array) -> Array:
    """Products of matrices."""
    return build.matmul(a, b)


@aten("addmm.default")
def addmm(call: Call, bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """`beta * bias + alpha * (a @ b)`."""
    product = build.matmul(a, b)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return scaled + (bias if beta == 1 else bias * beta)
