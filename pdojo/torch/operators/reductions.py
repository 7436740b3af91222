"""Reductions and softmax."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import Call, aten


@aten("_softmax.default")
def softmax(call: Call, x: Array, dim: int, half_to_float: bool) -> Array:
    """`exp(x) / sum(exp(x))` along an axis."""
    return build.softmax(build.cast(x, call.dtype), dim) if x.rank else build.constant(1, call.dtype)


@aten("sum.dim_IntList", "sum.default")
def sum_(
    call: Call, x: Array, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: object = None
) -> Array:
    """The sum along axes; no axes are all axes."""
    return build.sum(build.cast(x, call.dtype), tuple(dim) if dim else None, keepdims=keepdim)
