"""Operators that move no numbers: other shapes and orders of the same elements."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import Call, aten


@aten("view.default", "_unsafe_view.default", "reshape.default")
def view(call: Call, x: Array, size: Sequence[int]) -> Array:
    """The elements in another shape."""
    return build.reshape(x, call.shape)


@aten("unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default")
def reshaped(call: Call, x: Array, *_: object) -> Array:
    """The elements with or without axes of extent 1."""
    return build.reshape(x, call.shape)


@aten("permute.default")
def permute(call: Call, x: Array, dims: Sequence[int]) -> Array:
    """The axes in another order."""
    return build.transpose(x, [d % x.rank for d in dims])


@aten("t.default")
def t(call: Call, x: Array) -> Array:
    """The transposed matrix; vectors stay as they are."""
    return build.transpose(x)


@aten("transpose.int")
def transpose(call: Call, x: Array, dim0: int, dim1: int) -> Array:
    """Two axes in exchanged places."""
    axes = list(range(x.rank))
    if axes:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return build.transpose(x, axes)


@aten("expand.default")
def expand(call: Call, x: Array, size: Sequence[int], *, implicit: bool = False) -> Array:
    """The elements repeated along axes of extent 1 and new axes."""
    return build.broadcast_to(x, call.shape)


@aten("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", pointwise=True)
def same(call: Call, x: Array, *, memory_format: object = None) -> Array:
    """The same elements."""
    return x
