"""Arrays of given values. Calls without tensors among their operands are constants, and need no rule."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.casts import converted
from pdojo.torch.operators.registry import Call, aten


@aten("full_like.default", "new_full.default", "fill.Scalar", "zeros_like.default", "new_zeros.default",
      "ones_like.default", "new_ones.default", unread=(0,))  # fmt: skip
def filled(call: Call, *_: object, **__: object) -> Array:
    """An array of one number: it is a constant, as no element of the operand is read."""
    call.refuse("it is computed before the model runs")


@aten("fill.Tensor", unread=(0,), pointwise=True)
def fill(call: Call, x: None, value: Array) -> Array:
    """An array of one element."""
    return build.broadcast_to(converted(value, call.dtype), call.shape)


@aten("copy.default", unread=(0,), pointwise=True)
def copy(call: Call, x: None, source: Array, non_blocking: bool = False) -> Array:
    """The elements of another array."""
    return build.broadcast_to(converted(source, call.dtype), call.shape)
