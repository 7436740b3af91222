"""Arrays of given values. Calls without tensors among their operands are constants, and need no rule."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.sizes import Open
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.casts import converted
from pdojo.torch.operators.registry import Call, aten


@aten("full_like.default", "fill.Scalar", unread=(0,), generates=True)
def filled_like(call: Call, x: None, value: float, **_: object) -> Array:
    """An array of one number."""
    return _filled(call, value)


@aten("full.default", generates=True)
def full(call: Call, size: Sequence[int], value: float, **_: object) -> Array:
    """An array of one number."""
    return _filled(call, value)


@aten("new_full.default", unread=(0,), generates=True)
def new_full(call: Call, x: None, size: Sequence[int], value: float, **_: object) -> Array:
    """An array of one number."""
    return _filled(call, value)


@aten("zeros_like.default", "new_zeros.default", unread=(0,), generates=True)
def zeros(call: Call, *_: object, **__: object) -> Array:
    """An array of zeros."""
    return _filled(call, 0)


@aten("ones_like.default", "new_ones.default", unread=(0,), generates=True)
def ones(call: Call, *_: object, **__: object) -> Array:
    """An array of ones."""
    return _filled(call, 1)


def _filled(call: Call, value: float) -> Array:
    if isinstance(value, Open):
        call.refuse("its number depends on sizes")
    return build.constant(bool(value) if call.dtype == "i1" else value, call.dtype, call.shape)


@aten("arange.start_step", generates=True)
def arange(call: Call, start: int, end: int, step: int = 1, **_: object) -> Array:
    """Whole numbers in steps."""
    if isinstance(start, Open) or isinstance(step, Open) or is_float(call.dtype):
        call.refuse("its first number or its step depends on sizes, or they are no whole ones")
    return build.iota(call.shape, call.dtype, start=start, step=step)


@aten("prims.iota.default", generates=True)
def iota(call: Call, length: int, *, start: int, step: int, **_: object) -> Array:
    """Whole numbers in steps."""
    if isinstance(start, Open):
        call.refuse("its first number depends on sizes")
    return build.iota((length,), call.dtype, start=start, step=step)


@aten("fill.Tensor", unread=(0,), pointwise=True)
def fill(call: Call, x: None, value: Array) -> Array:
    """An array of one element."""
    return build.broadcast_to(converted(value, call.dtype), call.shape)


@aten("copy.default", unread=(0,), pointwise=True)
def copy(call: Call, x: None, source: Array, non_blocking: bool = False) -> Array:
    """The elements of another array."""
    return build.broadcast_to(converted(source, call.dtype), call.shape)
