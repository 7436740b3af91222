"""Operators that move no numbers: other shapes and orders of the same elements."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import is_unsigned
from pdojo.build.indexing import triangle
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.view.nest import Index
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
    return x.view(call.shape, _diagonal(x, offset, dim1, dim2))


def _diagonal(x: Array, offset: int, dim1: int, dim2: int) -> list[Expr]:
    """The index of an array over the iterations of a diagonal."""
    index: list[Expr] = []
    last, others = var(x.rank - 2), iter(range(x.rank))
    for d in range(x.rank):
        if d == dim1 % x.rank:
            index.append(last + max(-offset, 0))
        elif d == dim2 % x.rank:
            index.append(last + max(offset, 0))
        else:
            index.append(var(next(others)))
    return index


@aten("unfold.default", "unfold_copy.default")
def unfold(call: Call, x: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of an axis, with the elements of each window along a new last axis."""
    if not x.rank:
        return build.broadcast_to(x, call.shape)
    axis = dimension % x.rank
    index = [var(d) * step + var(x.rank) if d == axis else var(d) for d in range(x.rank)]
    return x.view(call.shape, index)


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
    last = first + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if first < 0 or last >= x.size:
        call.refuse("it reads memory beyond its operand")
    place = const(first)
    for d, (extent, step) in enumerate(zip(size, stride, strict=True)):
        place = place + var(d) * step if extent > 1 else place
    return build.reshape(build.transpose(x, order), (x.size,)).view(tuple(size), [place])


@aten("view.dtype")
def bits(call: Call, x: Array, dtype: object) -> Array:
    """The same bits as another element type of the same width."""
    if x.dtype == call.dtype:
        return x
    if x.dtype[1:] != call.dtype[1:] and "bf16" not in (x.dtype, call.dtype):
        call.refuse("its element types differ in width")
    if "i1" in (x.dtype, call.dtype):
        call.refuse("the bits of bool are no number")
    return build.cast(x, call.dtype) if _are_integers(x.dtype, call.dtype) else build.bitcast(x, call.dtype)


def _are_integers(*dtypes: str) -> bool:
    return all(is_unsigned(dtype) or dtype.startswith("i") for dtype in dtypes)


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
    value = build.cast(source, x.dtype)
    if not places:
        return x
    if len(places) == x.shape[dim]:
        return build.broadcast_to(value, x.shape)
    if step == 1:
        shape = [len(places) if d == dim % x.rank else extent for d, extent in enumerate(x.shape)]
        before, after = slice(0, places.start), slice(places.stop, x.shape[dim])
        parts = [x[_along(x, dim, before)], build.broadcast_to(value, shape), x[_along(x, dim, after)]]
        return build.concatenate([part for part in parts if part.size], dim)
    return build.assemble(x.shape, [((), x), (_along(x, dim, slice(start, end, step)), value)], None)


@aten("diagonal_scatter.default")
def diagonal_scatter(call: Call, x: Array, source: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A copy of the array with a diagonal of two axes replaced."""
    places = [_places(expression, source.shape) for expression in _diagonal(x, offset, dim1, dim2)]
    return build.scatter(x, places, build.cast(source, x.dtype))


def _places(expression: Expr, shape: Sequence[int]) -> Array:
    """The values of an index over the iterations of a shape."""
    return Array("i64", tuple(shape), Index(expression.substitute({}, shape), "i64"))
