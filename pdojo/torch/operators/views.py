"""Operators that move no numbers: other shapes and orders of the same elements."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array, shapes, tables
from pdojo.build.indexing import triangle
from pdojo.torch.element_types import memory_order
from pdojo.torch.operators.registry import Call, aten


@aten("view.default", "_unsafe_view.default", "reshape.default", "view_copy.default")
def view(call: Call, x: Array, size: Sequence[int]) -> Array:
    """The elements in another shape."""
    return build.reshape(x, call.shape)


@aten("unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default")
def reshaped(call: Call, x: Array, *_: object) -> Array:
    """The elements with or without axes of extent 1."""
    return build.reshape(x, call.shape)


@aten("permute.default", "permute_copy.default")
def permute(call: Call, x: Array, dims: Sequence[int]) -> Array:
    """The axes in another order."""
    return build.transpose(x, [d % x.rank for d in dims])


@aten("expand.default")
def expand(call: Call, x: Array, size: Sequence[int], *, implicit: bool = False) -> Array:
    """The elements repeated along axes of extent 1 and new axes."""
    return build.broadcast_to(x, call.shape)


@aten(
    "clone.default", "alias.default", "alias_copy.default", "detach.default", "lift_fresh_copy.default", pointwise=True
)
def same(call: Call, x: Array, *, memory_format: object = None) -> Array:
    """The same elements."""
    return x


def _along(x: Array, dim: int, item: int | slice) -> tuple[int | slice, ...]:
    """The index of a part of `x` along one axis."""
    return (*[slice(None)] * (dim % x.rank), item)


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(
    call: Call, x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Evenly spaced elements along an axis."""
    return x[_along(x, dim, slice(start, end, step))]


@aten("narrow.default", "narrow_copy.default")
def narrow(call: Call, x: Array, dim: int, start: int, length: int) -> Array:
    """Neighbouring elements along an axis."""
    first = start % x.shape[dim]
    return x[_along(x, dim, slice(first, first + length))]


@aten("select.int", "select_copy.int")
def select(call: Call, x: Array, dim: int, index: int) -> Array:
    """One element along an axis, without the axis."""
    return x[_along(x, dim, index)]


@aten("split.Tensor", "split_copy.Tensor", "split_with_sizes.default", "split_with_sizes_copy.default")
def split(call: Call, x: Array, _: object, dim: int = 0) -> list[Array]:
    """Neighbouring parts along an axis."""
    sizes = [shape[dim] for _, shape in call.results]
    return build.split(x, sizes, dim)


@aten("diagonal.default", "diagonal_copy.default")
def diagonal(call: Call, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A diagonal of two axes, as the last axis."""
    return tables.diagonal(x, offset, dim1, dim2)


@aten("unfold.default", "unfold_copy.default")
def unfold(call: Call, x: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of an axis, with the elements of each window along a new last axis."""
    return shapes.unfold(x, dimension, size, step) if x.rank else build.broadcast_to(x, call.shape)


@aten("as_strided.default", "as_strided_copy.default")
def as_strided(
    call: Call, x: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """The elements of the memory of an array at given strides."""
    operand = call.operand
    order = None if operand is None else memory_order(operand.shape, operand.stride())
    if operand is None or order is None:
        call.refuse("the elements of its operand are not side by side")
    first = 0 if storage_offset is None else storage_offset - int(operand.storage_offset())
    return shapes.strided(build.transpose(x, order), size, stride, first)


@aten("view.dtype")
def bits(call: Call, x: Array, dtype: object) -> Array:
    """The same bits as another element type of the same width."""
    if x.dtype != call.dtype and "i1" in (x.dtype, call.dtype):
        call.refuse("the bits of bool are no number")
    return build.bitcast(x, call.dtype)


@aten("flip.default")
def flip(call: Call, x: Array, dims: Sequence[int]) -> Array:
    """The elements in reverse order along axes."""
    return build.flip(x, tuple(dims)) if dims else x


@aten("repeat.default")
def repeat(call: Call, x: Array, repeats: Sequence[int]) -> Array:
    """The array several times along each axis."""
    return build.tile(build.reshape(x, (*(1,) * (len(repeats) - x.rank), *x.shape)), repeats)


@aten("tril.default")
def tril(call: Call, x: Array, diagonal: int = 0) -> Array:
    """The elements below and on a diagonal, and 0 elsewhere."""
    return triangle(x, diagonal, upper=False)


@aten("triu.default")
def triu(call: Call, x: Array, diagonal: int = 0) -> Array:
    """The elements above and on a diagonal, and 0 elsewhere."""
    return triangle(x, diagonal, upper=True)


@aten("constant_pad_nd.default")
def constant_pad_nd(call: Call, x: Array, pad: Sequence[int], value: float = 0) -> Array:
    """The array with a number before and after each axis; pairs of widths begin at the last axis."""
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    widths = [(0, 0)] * (x.rank - len(pairs)) + pairs
    return build.pad(x, widths, bool(value) if x.dtype == "i1" else value) if widths else x


@aten("cat.default")
def cat(call: Call, tensors: Sequence[Array], dim: int = 0) -> Array:
    """The arrays one after the other along an axis."""
    return build.concatenate([build.cast(each, call.dtype) for each in tensors], dim)


@aten("slice_scatter.default")
def slice_scatter(
    call: Call, x: Array, source: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """A copy of the array with evenly spaced elements along an axis replaced."""
    places = range(x.shape[dim])[slice(start, end, step)]
    shape = [len(places) if d == dim % x.rank else extent for d, extent in enumerate(x.shape)]
    return build.put(x, places, build.broadcast_to(build.cast(source, x.dtype), shape), dim)


@aten("diagonal_scatter.default")
def diagonal_scatter(call: Call, x: Array, source: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A copy of the array with a diagonal of two axes replaced."""
    return tables.put_diagonal(x, build.cast(source, x.dtype), offset, dim1, dim2)
