"""NumPy's functions of shapes: views, pieces, elements at indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from pdojo.build import indexing, pieces, shapes
from pdojo.build.array import Array, cast, constant, promoted
from pdojo.build.extents import axes_of, broadcast_shape, shown
from pdojo.build.like_numpy.constants import element_type, of
from pdojo.build.sizes import Open
from pdojo.errors import UsageError

Axes: TypeAlias = int | Sequence[int] | None
Shape: TypeAlias = int | Sequence[int]


def _extents(shape: Shape) -> Sequence[int]:
    return (shape,) if isinstance(shape, int | Open) else shape


@of("reshape")
def reshape(a: Array, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements in row-major order in another shape."""
    if order != "C":
        raise UsageError(f"np.reshape of handles is in row-major order, not '{order}'; transpose before and after")
    extents = _extents(shape)
    if not all(isinstance(each, int | Open) for each in extents):
        raise UsageError(f"a shape is a sequence of integers, not {shape!r:.60}")
    return shapes.reshape(a, extents)


@of("ravel")
def ravel(a: Array) -> Array:
    """The elements along one axis."""
    return shapes.reshape(a, (a.size,))


@of("transpose")
def transpose(a: Array, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes in another order."""
    return shapes.transpose(a, axes)


@of("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Array) -> Array:
    """The array with its last two axes swapped."""
    if x.rank < 2:
        raise UsageError(f"matrices have two axes or more, not {x.rank}")
    return swapaxes(x, -1, -2)


@of("swapaxes")
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    """The array with two axes swapped."""
    (one,), (other,) = axes_of(axis1, a.rank), axes_of(axis2, a.rank)
    order = [*range(a.rank)]
    order[one], order[other] = other, one
    return shapes.transpose(a, order)


@of("moveaxis")
def moveaxis(a: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with axes at other places; the others keep their order."""
    first = [axes_of(each, a.rank)[0] for each in _extents(source)]
    second = [axes_of(each, a.rank)[0] for each in _extents(destination)]
    if len(first) != len(second) or len({*first}) != len(first) or len({*second}) != len(second):
        raise UsageError(f"axes {source} have no places {destination}")
    order = [d for d in range(a.rank) if d not in first]
    for place, axis in sorted(zip(second, first, strict=True)):
        order.insert(place, axis)
    return shapes.transpose(a, order)


@of("expand_dims")
def expand_dims(a: Array, axis: int | Sequence[int]) -> Array:
    """The array with new axes of extent 1."""
    return shapes.expand_dims(a, axis)


@of("squeeze")
def squeeze(a: Array, axis: Axes = None) -> Array:
    """The array without axes of extent 1."""
    return shapes.squeeze(a, axis)


@of("broadcast_to")
def broadcast_to(array: Array, shape: Any) -> Array:
    """The array repeated along new axes and axes of extent 1."""
    return shapes.broadcast_to(array, _extents(shape))


@of("broadcast_arrays")
def broadcast_arrays(*args: Array) -> tuple[Array, ...]:
    """The arrays in their common shape."""
    shape = broadcast_shape(*(x.shape for x in args))
    return tuple(shapes.broadcast_to(x, shape) for x in args)


@of("meshgrid")
def meshgrid(*xi: Array, indexing: str = "xy") -> list[Array]:
    """Vectors as arrays over all their places."""
    if indexing not in ("xy", "ij"):
        raise UsageError(f"'{indexing}' is no order of np.meshgrid; known: xy, ij")
    order = [*range(len(xi))]
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    shape = [0] * len(xi)
    for x, place in zip(xi, order, strict=True):
        shape[place] = x.size
    return [
        shapes.broadcast_to(shapes.reshape(x, [x.size if d == place else 1 for d in order_of(shape)]), shape)
        for x, place in zip(xi, order, strict=True)
    ]


def order_of(shape: Sequence[int]) -> range:
    """The numbers of the axes."""
    return range(len(shape))


def _at_least(count: int, *arrays: Array) -> Any:
    found: list[Array] = []
    for x in arrays:
        extents = [*x.shape]
        if count == 3 and len(extents) == 2:
            extents = [*extents, 1]
        elif count == 3 and len(extents) == 1:
            extents = [1, *extents, 1]
        found.append(shapes.reshape(x, [*[1] * (count - len(extents)), *extents]))
    return found[0] if len(found) == 1 else tuple(found)


@of("atleast_1d")
def atleast_1d(*arys: Array) -> Any:
    """The arrays with at least one axis."""
    return _at_least(1, *arys)


@of("atleast_2d")
def atleast_2d(*arys: Array) -> Any:
    """The arrays with at least two axes."""
    return _at_least(2, *arys)


@of("atleast_3d")
def atleast_3d(*arys: Array) -> Any:
    """The arrays with at least three axes."""
    return _at_least(3, *arys)


@of("concatenate")
def concatenate(arrays: Sequence[Array], axis: int | None = 0, *, dtype: Any = None) -> Array:
    """The arrays one after the other along `axis`; all elements in order for None."""
    parts = promoted("'np.concatenate'", *arrays) if dtype is None else [cast(x, element_type(dtype)) for x in arrays]
    if axis is None:
        return pieces.concatenate([ravel(x) for x in parts], 0)
    return pieces.concatenate(parts, axis)


@of("stack")
def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """The arrays along a new axis."""
    return pieces.stack(promoted("'np.stack'", *arrays), axis)


@of("vstack")
def vstack(tup: Sequence[Array]) -> Array:
    """The arrays one below the other."""
    return concatenate([atleast_2d(x) for x in tup])


@of("hstack")
def hstack(tup: Sequence[Array]) -> Array:
    """The arrays side by side."""
    return concatenate([atleast_1d(x) for x in tup], 0 if all(x.rank < 2 for x in tup) else 1)


@of("dstack")
def dstack(tup: Sequence[Array]) -> Array:
    """The arrays along a third axis."""
    return concatenate([atleast_3d(x) for x in tup], 2)


@of("column_stack")
def column_stack(tup: Sequence[Array]) -> Array:
    """Vectors and matrices as columns of a matrix."""
    return concatenate([x if x.rank > 1 else shapes.reshape(x, (x.size, 1)) for x in tup], 1)


@of("append")
def append(arr: Array, values: Array, axis: int | None = None) -> Array:
    """The array with others behind it."""
    return concatenate([arr, values], axis)


@of("unstack")
def unstack(x: Array, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of the array at each index of an axis."""
    (place,) = axes_of(axis, x.rank)
    return tuple(x[(*[slice(None)] * place, k)] for k in range(x.shape[place]))


@of("array_split")
def array_split(ary: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Parts of an axis: so many almost equal ones, or those between places."""
    (place,) = axes_of(axis, ary.rank)
    extent = ary.shape[place]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1:
            raise UsageError(f"an axis of {extent} elements has no {indices_or_sections} parts")
        small, more = divmod(extent, indices_or_sections)
        sizes = [small + (k < more) for k in range(indices_or_sections)]
        ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
        return [ary[(*[slice(None)] * place, slice(a, b))] for a, b in pairwise((0, *ends))]
    places: list[int | None] = [0, *indices_or_sections, None]
    return [ary[(*[slice(None)] * place, slice(a, b))] for a, b in pairwise(places)]


@of("split")
def split(ary: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Parts of an axis: so many equal ones, or those between places."""
    if isinstance(indices_or_sections, int):
        return pieces.split(ary, indices_or_sections, axis)
    return array_split(ary, indices_or_sections, axis)


@of("hsplit")
def hsplit(ary: Array, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Parts of the second axis, or of the only one."""
    return split(ary, indices_or_sections, 1 if ary.rank > 1 else 0)


@of("vsplit")
def vsplit(ary: Array, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """Parts of the first axis."""
    return split(ary, indices_or_sections, 0)


@of("tile")
def tile(a: Array, reps: int | Sequence[int]) -> Array:
    """The array so many times along each axis."""
    counts = _extents(reps)
    rank = max(a.rank, len(counts))
    whole = shapes.reshape(a, (*[1] * (rank - a.rank), *a.shape))
    return shapes.tile(whole, (*[1] * (rank - len(counts)), *counts))


@of("repeat")
def repeat(a: Array, repeats: int | Sequence[int], axis: int | None = None) -> Array:
    """Every element so many times, one after the other."""
    x, place = (ravel(a), 0) if axis is None else (a, axis)
    if isinstance(repeats, int | Open):
        return shapes.repeat(x, repeats, place)
    if len(repeats) == 1:
        return shapes.repeat(x, repeats[0], place)
    return pieces.take(x, np.repeat(np.arange(x.shape[place]), repeats).tolist(), place)


@of("flip")
def flip(m: Array, axis: Axes = None) -> Array:
    """The elements in reverse order."""
    return shapes.flip(m, axis)


@of("flipud")
def flipud(m: Array) -> Array:
    """The rows in reverse order."""
    return shapes.flip(m, 0)


@of("fliplr")
def fliplr(m: Array) -> Array:
    """The columns in reverse order."""
    return shapes.flip(m, 1)


@of("rot90")
def rot90(m: Array, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """The array turned by right angles in the plane of two axes."""
    one, other = axes
    match k % 4:
        case 0:
            return m
        case 1:
            return swapaxes(shapes.flip(m, other), one, other)
        case 2:
            return shapes.flip(m, (one, other))
        case _:
            return shapes.flip(swapaxes(m, one, other), other)


@of("roll")
def roll(a: Array, shift: int | Sequence[int], axis: Axes = None) -> Array:
    """The array turned along axes: elements that leave at one end enter at the other."""
    if axis is None:
        return shapes.reshape(roll(ravel(a), sum(_extents(shift)), 0), a.shape)
    axes, shifts = _extents(axis), _extents(shift)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise UsageError(f"np.roll takes a shift for each axis, not {shift} for {axis}")
    count = max(len(axes), len(shifts))
    found = a
    for each, by in zip(_to(axes, count), _to(shifts, count), strict=True):
        (place,) = axes_of(each, a.rank)
        found = _rolled(found, by, place)
    return found


def _to(values: Sequence[int], count: int) -> list[int]:
    return [*values] * (count if len(values) == 1 else 1)


def _rolled(x: Array, shift: int, axis: int) -> Array:
    extent = x.shape[axis]
    if not isinstance(extent, Open):
        shift = shift % extent if extent else 0
    if not shift:
        return x
    cut = extent - shift if shift > 0 else -shift
    lead = [slice(None)] * axis
    return pieces.concatenate([x[(*lead, slice(cut, None))], x[(*lead, slice(0, cut))]], axis)


@of("pad")
def pad(array: Array, pad_width: Any, mode: str = "constant", *, constant_values: float = 0) -> Array:
    """The array with elements before and after each axis."""
    if isinstance(pad_width, dict):
        raise UsageError("np.pad of handles takes a number, a pair, or a pair for each axis")
    widths: Any = pad_width
    if not isinstance(widths, int | Open):
        rows: list[Sequence[int]] = [each if isinstance(each, Sequence) else (each,) for each in widths]
        if len(rows) == 1:
            widths = [(rows[0][0], rows[0][-1])] * array.rank
        elif len(rows) == 2 and all(len(row) == 1 for row in rows):
            widths = [(rows[0][0], rows[1][0])] * array.rank
        else:
            widths = [(row[0], row[-1]) for row in rows]
    if mode == "symmetric":
        return _symmetric(array, [(widths, widths)] * array.rank if isinstance(widths, int) else widths)
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise UsageError(f"'{mode}' is no mode of np.pad of handles; known: constant, edge, reflect, symmetric, wrap")
    return pieces.pad(array, widths, constant_values, mode)


def _symmetric(x: Array, widths: Sequence[tuple[int, int]]) -> Array:
    for axis, (before, after) in enumerate(widths):
        lead, extent = [slice(None)] * axis, x.shape[axis]
        if max(before, after) > extent:
            raise UsageError(f"'symmetric' takes {max(before, after)} elements from an axis of {extent}")
        parts = [shapes.flip(x[(*lead, slice(0, before))], axis), x,
                 shapes.flip(x[(*lead, slice(extent - after, extent))], axis)]  # fmt: skip
        x = pieces.concatenate(parts, axis)
    return x


@of("take")
def take(a: Array, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Array:
    """The elements at indices along an axis."""
    if mode not in ("raise", "clip"):
        raise UsageError(f"'{mode}' is no mode of np.take of handles; known: raise, clip")
    x, (place,) = (ravel(a), (0,)) if axis is None else (a, axes_of(axis, a.rank))
    if isinstance(indices, Array):
        return pieces.take(x, indices, place, outside="clamp" if mode == "clip" else "wrap")
    known = np.asarray(indices)
    if mode == "clip":
        known = np.clip(known, 0, x.shape[place] - 1)
    if known.ndim == 1 and known.dtype.kind in "iu":
        return pieces.take(x, known.tolist(), place)
    return x[(*[slice(None)] * place, known if known.ndim else known.item())]


@of("take_along_axis")
def take_along_axis(arr: Array, indices: Any, axis: int | None = -1) -> Array:
    """The elements at indices of an axis, an index for each."""
    if axis is None:
        return take_along_axis(ravel(arr), indices, 0)
    (place,) = axes_of(axis, arr.rank)
    given: Any = indices if isinstance(indices, Array) else np.asarray(indices)
    if len(given.shape) != arr.rank:
        raise UsageError(f"indices of shape {shown(given.shape)} do not fit an array of shape {shown(arr.shape)}")
    shape = tuple(n if d == place else m for d, (m, n) in enumerate(zip(arr.shape, given.shape, strict=True)))
    if isinstance(given, Array):
        return indexing.take_along(arr, shapes.broadcast_to(given, shape), place)
    known = indexing.places_of(given, arr.shape[place])
    return indexing.take_along(arr, np.broadcast_to(known, shape), place)


@of("lib.stride_tricks.sliding_window_view")
def sliding_window_view(x: Array, window_shape: int | Sequence[int], axis: Axes = None) -> Array:
    """The windows along axes, with the elements of each window along new last axes."""
    sizes = _extents(window_shape)
    axes = axes_of(None, x.rank) if axis is None else [axes_of(each, x.rank)[0] for each in _extents(axis)]
    if len(axes) != len(sizes):
        raise UsageError(f"windows {shown(sizes)} are not for {len(axes)} axes")
    for place, size in zip(axes, sizes, strict=True):
        x = shapes.unfold(x, place, size, 1)
    return x


@of("full_like")
def full_like(a: Array, fill_value: float, dtype: Any = None, *, shape: Any = None) -> Array:
    """An array of the shape and type of another, all of whose elements are a number."""
    kind = a.dtype if dtype is None else element_type(dtype)
    return constant(fill_value, kind, a.shape if shape is None else _extents(shape))


@of("zeros_like", "empty_like")
def zeros_like(a: Array, dtype: Any = None, *, shape: Any = None) -> Array:
    """Zeros of the shape and type of another array."""
    return full_like(a, 0, dtype, shape=shape)


@of("ones_like")
def ones_like(a: Array, dtype: Any = None, *, shape: Any = None) -> Array:
    """Ones of the shape and type of another array."""
    return full_like(a, 1, dtype, shape=shape)


@of("shape")
def shape(a: Array) -> tuple[int, ...]:
    """The extents."""
    return a.shape


@of("ndim")
def ndim(a: Array) -> int:
    """The number of axes."""
    return a.rank


@of("size")
def size(a: Array, axis: int | None = None) -> int:
    """The number of elements, or the extent of an axis."""
    return a.size if axis is None else a.shape[axes_of(axis, a.rank)[0]]
