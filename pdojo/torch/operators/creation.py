"""Arrays of given values. Calls without tensors among their operands are constants, and need no rule."""

from __future__ import annotations

from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.casts import converted
from pdojo.torch.operators.registry import Call, aten


@aten("full_like.default", "new_full.default", "fill.Scalar", pointwise=True)
def filled(call: Call, x: Array, *arguments: Any, **_: object) -> Array:
    """An array of one number."""
    value = arguments[-1]
    if isinstance(value, complex):
        call.refuse("kernels have no complex numbers")
    return build.constant(bool(value) if call.dtype == "i1" else value, call.dtype, call.shape)


@aten("zeros_like.default", "new_zeros.default", pointwise=True)
def zeros(call: Call, x: Array, *_: object, **__: object) -> Array:
    """An array of zeros."""
    return build.constant(0, call.dtype, call.shape)


@aten("ones_like.default", "new_ones.default", pointwise=True)
def ones(call: Call, x: Array, *_: object, **__: object) -> Array:
    """An array of ones."""
    return build.constant(1, call.dtype, call.shape)


@aten("fill.Tensor", pointwise=True)
def fill(call: Call, x: Array, value: Array) -> Array:
    """An array of one element."""
    return build.broadcast_to(converted(value, call.dtype), call.shape)


@aten("copy.default", pointwise=True)
def copy(call: Call, x: Array, source: Array, non_blocking: bool = False) -> Array:
    """The elements of another array."""
    return build.broadcast_to(converted(source, call.dtype), call.shape)
