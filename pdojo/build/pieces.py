"""Arrays that are put together from pieces, each written by a nest of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

from pdojo.build.array import Array, Item, broadcast_to, constant, define, sliced
from pdojo.build.extents import axes_of, shown
from pdojo.build.graph import Definition, Read, Write, identity
from pdojo.build.numbers import Scalar
from pdojo.build.shapes import expand_dims, flip, repeat
from pdojo.build.sizes import Open
from pdojo.build.slicing import Outer, entries
from pdojo.dialect.affine import var
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.errors import UsageError

Widths: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
"""Elements to add at all ends; (before, after) for all axes; or such a pair for each axis."""
Piece: TypeAlias = tuple[Item | tuple[Item, ...], Array]
"""The place of a piece, as in `x[place]`, and the piece."""


MOST_RUNS = 4
"""Most pieces of `take` if a table can have the indices."""
MOST_PARTS = 1 << 16
"""Most parts of `split`."""
MOST_PIECES = 256
"""Most nests that copy pieces of one array; more of them need a table."""


def assemble(shape: Sequence[int], pieces: Sequence[Piece], fill: Scalar | Array | None = 0) -> Array:
    """An array filled with `fill`, into which pieces are written, one after the other: `result[place] = piece`.

    `fill` is None if the pieces cover the array.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 8))
    >>> build.assemble((4, 16), [((slice(None), slice(0, None, 2)), x)])
    <Array f32 [4, 16]>
    """
    if not pieces:
        raise UsageError("an array is assembled from at least one piece")
    if fill is None:
        return _assembled(shape, pieces)
    whole = broadcast_to(fill, shape) if isinstance(fill, Array) else constant(fill, _dtype(pieces), shape)
    return _assembled(shape, [((), whole), *pieces])


def _dtype(pieces: Sequence[Piece]) -> str:
    dtypes = list(dict.fromkeys(piece.dtype for _, piece in pieces))
    if len(dtypes) > 1:
        raise UsageError(f"pieces of one array have one element type, not {' and '.join(dtypes)}; use build.cast")
    return dtypes[0]


def _assembled(shape: Sequence[int], pieces: Sequence[Piece]) -> Array:
    """The array that the pieces cover."""
    dtype = _dtype(pieces)
    target = Array(dtype, tuple(shape), Read(Definition(dtype, tuple(shape)), identity(shape)))
    writes: list[Write] = []
    for place, piece in pieces:
        part = sliced(target, place if isinstance(place, tuple) else (place,))
        assert isinstance(part.operand, Read)
        writes.append(Write(part.shape, part.operand.index, broadcast_to(piece, part.shape).operand))
    return define(dtype, shape, *writes)


def keep_order(x: Array) -> Array:
    """An array that was made, whose axes keep their order in memory, whatever the order of its readers."""
    assert isinstance(x.operand, Read)
    x.operand.definition.keeps_order = True
    return x


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """The arrays one after the other along `axis`; the other extents are equal.

    >>> from pdojo import build
    >>> x, y = build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 2))
    >>> build.concatenate([x, y], axis=-1)
    <Array f32 [4, 10]>
    """
    if not arrays:
        raise UsageError("concatenate takes at least one array")
    (axis,) = axes_of(axis, arrays[0].rank)
    for other in arrays[1:]:
        if _without(other.shape, axis) != _without(arrays[0].shape, axis) or other.rank != arrays[0].rank:
            shapes = f"{shown(arrays[0].shape)} and {shown(other.shape)}"
            raise UsageError(f"shapes {shapes} differ in another axis than {axis}, along which they are concatenated")
    pieces: list[Piece] = []
    end = 0
    for array in arrays:
        start, end = end, end + array.shape[axis]
        pieces.append(((*[slice(None)] * axis, slice(start, end)), array))
    if len(arrays) == 1:
        return arrays[0]
    return _assembled((*arrays[0].shape[:axis], end, *arrays[0].shape[axis + 1 :]), pieces)


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """The arrays, all of one shape, along a new axis.

    >>> from pdojo import build
    >>> x, y = build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8))
    >>> build.stack([x, y], axis=-1)
    <Array f32 [4, 8, 2]>
    """
    return concatenate([expand_dims(array, axis) for array in arrays], axis)


def split(x: Array, sizes: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Views of neighbouring parts along `axis`: so many equal ones, or parts of the given sizes.

    >>> from pdojo import build
    >>> build.split(build.input("x", "f32", (4, 9)), [2, 7], axis=1)
    [<Array f32 [4, 2]>, <Array f32 [4, 7]>]
    """
    (axis,) = axes_of(axis, x.rank)
    extent = x.shape[axis]
    if isinstance(sizes, int):
        if sizes < 1 or extent % sizes:
            raise UsageError(f"an axis of {extent} elements has no {sizes} equal parts")
        if sizes > MOST_PARTS:
            raise UsageError(f"an axis is split into at most {MOST_PARTS} parts, not {sizes}")
        sizes = [extent // sizes] * sizes
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise UsageError(f"parts of {' and '.join(map(str, sizes))} elements do not make an axis of {extent}")
    ends = accumulate(sizes)
    return [x[(*[slice(None)] * axis, slice(end - size, end))] for end, size in zip(ends, sizes, strict=True)]


def pad(
    x: Array,
    widths: Widths,
    value: Scalar | Array = 0,
    mode: Literal["constant", "edge", "reflect", "wrap"] = "constant",
) -> Array:
    """The array with elements before and after each axis, as `numpy.pad`; negative widths cut elements off.

    >>> from pdojo import build
    >>> build.pad(build.input("x", "f32", (4, 8)), ((0, 0), (1, 2)))
    <Array f32 [4, 11]>
    """
    pairs = _pairs(widths, x.rank)
    for (before, after), extent in zip(pairs, x.shape, strict=True):
        if min(before, 0) + min(after, 0) + extent < 0:
            raise UsageError(f"padding cuts {-min(before, 0) - min(after, 0)} elements off an axis of {extent}")
    cut = [
        slice(max(0, -before), extent + min(0, after)) for (before, after), extent in zip(pairs, x.shape, strict=True)
    ]
    inner = x[tuple(cut)]
    added = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if not any(before or after for before, after in added):
        return inner
    if mode == "constant":
        shape = [before + extent + after for (before, after), extent in zip(added, inner.shape, strict=True)]
        place = tuple(slice(before, before + extent) for (before, _), extent in zip(added, inner.shape, strict=True))
        return assemble(shape, [(place, inner)], value)
    for axis, (before, after) in enumerate(added):
        inner = _extended(inner, axis, before, after, mode)
    return inner


def _pairs(widths: Widths, rank: int) -> list[tuple[int, int]]:
    if isinstance(widths, int):
        return [(widths, widths)] * rank
    whole = [row for row in widths if isinstance(row, int | Open)]
    pairs = [(row[0], row[-1]) for row in widths if not isinstance(row, int | Open) and len(row) == 2]
    if len(whole) == len(widths) == 2:
        return [(whole[0], whole[1])] * rank
    if len(pairs) == len(widths) == rank:
        return pairs
    raise UsageError(f"padding of {rank} axes is a number, a pair (before, after), or {rank} pairs, not {widths}")


def _extended(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """The array with copies of its own elements at both ends of an axis."""
    lead, extent = [slice(None)] * axis, x.shape[axis]
    most = {"edge": before + after, "reflect": extent - 1, "wrap": extent}.get(mode)
    if most is None:
        raise UsageError(f"'{mode}' is no mode of padding; known: constant, edge, reflect, wrap")
    if max(before, after) > most or not extent:
        raise UsageError(f"'{mode}' takes {max(before, after)} elements from an axis of {extent}")
    if mode == "edge":
        first, last = x[(*lead, slice(0, 1))], x[(*lead, slice(extent - 1, extent))]
        sides = [broadcast_to(each, (*x.shape[:axis], width, *x.shape[axis + 1 :])) for each, width in
                 ((first, before), (last, after))]  # fmt: skip
    elif mode == "reflect":
        sides = [flip(x[(*lead, slice(1, before + 1))], axis),
                 flip(x[(*lead, slice(extent - 1 - after, extent - 1))], axis)]  # fmt: skip
    else:
        sides = [x[(*lead, slice(extent - before, extent))], x[(*lead, slice(0, after))]]
    return concatenate([sides[0], x, sides[1]], axis)


def take(x: Array, indices: Sequence[int] | Array, axis: int = 0, *, outside: Outer = "wrap") -> Array:
    """The elements at indices along `axis`, as `numpy.take`; a view, where the axes of `indices` are in its place.

    `indices` are constants, or an input of integers or a view of one: callers then give them. Negative ones count from
    the end. `outside` is the meaning of callers' indices: with `wrap`, a call is refused for one that is not from
    `-extent` to `extent - 1`, with `refuse` for one that is not from 0 on; `clamp` takes the nearest element. Up to
    four runs of evenly spaced constants are views that are put together. More runs, or runs of two indices or fewer on
    average, are a view that looks up a table; constants each of which is repeated equally often are a view.

    >>> from pdojo import build
    >>> x, ids = build.input("x", "f32", (4, 8)), build.input("ids", "i64", (2, 3))
    >>> build.take(x, [7, 0, 1, 2], axis=1), build.take(x, ids)
    (<Array f32 [4, 4]>, <Array f32 [2, 3, 8]>)
    """
    (axis,) = axes_of(axis, x.rank)
    if isinstance(indices, Array):
        return sliced(x, (*[slice(None)] * axis, indices), outside)
    places = places_along(x, indices, axis)
    runs = list(runs_of(places))
    same = next((k for k, place in enumerate(places) if place != places[0]), len(places))
    if 1 < same < len(places) and places == [p for p in places[::same] for _ in range(same)]:
        return repeat(take(x, places[::same], axis), same, axis)
    is_ragged = len(runs) > 1 and (len(runs) > MOST_RUNS or len(places) <= 2 * len(runs))
    if is_ragged and len(places) <= MOST_ENTRIES:
        shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
        index = [var(d) for d in range(x.rank)]
        index[axis] = entries(places, (len(places),)).substitute({0: var(axis)}, shape)
        return x.view(shape, index)
    check_runs(len(runs), len(places))
    parts = [x[(*[slice(None)] * axis, part)] for part in runs]
    return concatenate(parts, axis) if parts else x[(*[slice(None)] * axis, slice(0, 0))]


def places_along(x: Array, indices: Sequence[int], axis: int) -> list[int]:
    """Indices along an axis as numbers from 0; negative ones count from the end. Raises UsageError outside of it."""
    extent = x.shape[axis]
    for index in indices:
        if not -extent <= index < extent:
            raise UsageError(f"index {index} is out of bounds for axis {axis} of {extent} elements")
    return [int(index) if index >= 0 else int(index) + extent for index in indices]


def check_runs(runs: int, count: int) -> None:
    """Raise UsageError for indices that are neither few enough for a table nor spaced evenly enough for copies."""
    if runs > MOST_PIECES and count > MOST_ENTRIES:
        raise UsageError(
            f"{count} indices in {runs} uniform runs are too many; a table has {MOST_ENTRIES} numbers at most"
        )


def runs_of(places: Sequence[int]) -> Iterator[slice]:
    """Slices that select the places, in order; each takes as many as are evenly spaced."""
    start = 0
    while start < len(places):
        end = min(start + 2, len(places))
        step = places[end - 1] - places[start] if end - start == 2 else 1
        if not step:
            end, step = start + 1, 1
        while end < len(places) and places[end] - places[end - 1] == step:
            end += 1
        stop = places[end - 1] + (1 if step > 0 else -1)
        yield slice(places[start], None if stop < 0 else stop, step)
        start = end
