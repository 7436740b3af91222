"""Elements at indices of an axis, and choices by comparison.

Indices that are known are slices and tables, others are inputs of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.array import Array, Item, broadcast_to, cast, iota, scalar, sliced
from pdojo.build.elementwise import clip, where
from pdojo.build.pieces import concatenate, runs_of, split, take
from pdojo.build.placing import put
from pdojo.build.reductions import MOST_I32
from pdojo.build.scatters import Accumulation, put_around, put_from, put_items
from pdojo.build.shapes import expand_dims, flip, reshape, transpose
from pdojo.build.slicing import Outer
from pdojo.build.tables import gather, table
from pdojo.dialect.element_types import is_float
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.errors import UsageError

Places: TypeAlias = NDArray[np.int64]
"""Known indices."""


def places_of(indices: NDArray[np.integer], extent: int, least: int | None = None) -> Places:
    """Known indices, at least `least` (None: `-extent`), counted from the start of an axis. Raises UsageError."""
    found = indices.astype(np.int64)
    if found.size and not ((-extent if least is None else least) <= found.min() and found.max() < extent):
        raise UsageError(f"an index is out of bounds for {extent} elements")
    return np.where(found < 0, found + extent, found)


def listed(places: Places) -> list[int]:
    """The indices in order."""
    return [int(place) for place in places.reshape(-1)]


def take_along(x: Array, places: Places | Array, axis: int, *, outside: Outer = "wrap") -> Array:
    """The elements at indices of an axis, an index for each, as `numpy.take_along_axis`.

    `outside` is the meaning of indices of inputs (`build.take`); known ones are from 0 on.

    >>> from pdojo import build
    >>> x, i = build.input("x", "f32", (4, 8)), build.input("i", "i64", (4, 3))
    >>> build.take_along(x, i, axis=1)
    <Array f32 [4, 3]>
    """
    if isinstance(places, Array):
        return gather(x, _own(places, x, axis), outside=outside)
    flat = listed(_flat(places, x.shape, axis))
    if len(flat) > MOST_ENTRIES or len(list(runs_of(flat))) == 1:
        return reshape(take(reshape(x, (-1,)), flat, 0), places.shape)
    own = [iota(places.shape, "i64", d) for d in range(x.rank)]
    return gather(x, [table(places.tolist()) if d == axis else own[d] for d in range(x.rank)])


def put_along(
    x: Array,
    places: Places | Array,
    updates: Array,
    axis: int,
    accumulation: Accumulation | None = None,
    *,
    outside: Outer = "wrap",
) -> Array:
    """A copy of `x` with elements at indices of an axis, an index for each, replaced or joined.

    The last one of the updates at an index counts, or all join the element there. `outside` is that of `take_along`.

    >>> from pdojo import build
    >>> x, i, v = (build.input(name, kind, (4, 3)) for name, kind in {"x": "f32", "i": "i64", "v": "f32"}.items())
    >>> build.put_along(x, i, v, axis=1, accumulation="+")
    <Array f32 [4, 3]>
    """
    if isinstance(places, Array):
        return put_items(x, _own(places, x, axis), updates, accumulation, outside)
    flat = listed(_flat(places, x.shape, axis))
    found = put(reshape(x, (-1,)), flat, reshape(updates, (-1,)), accumulation=accumulation)
    return reshape(found, x.shape)


class _Indices:
    """Known indices of several axes of an array: `x[:, i, j]`."""

    def __init__(self, shape: Sequence[int], indices: Sequence[NDArray[np.integer] | None]) -> None:
        self.shape = tuple(shape)
        self.places = {axis: places_of(each, shape[axis]) for axis, each in enumerate(indices) if each is not None}
        self.axes = tuple(self.places)
        if not self.axes:
            raise UsageError("indices are missing: give them for one axis at least")
        self.common = np.broadcast_shapes(*(each.shape for each in self.places.values()))
        neighbours = len(self.axes) == self.axes[-1] - self.axes[0] + 1
        self.first = self.axes[0] if neighbours else 0
        """The axis of the result at which the common axes of the indices begin."""
        self.rest = [axis for axis in range(len(shape)) if axis not in self.axes]

    def is_grid(self) -> bool:
        """Whether each index varies along an axis of its own, in order, so that axes may be taken one by one."""
        own: list[int] = []
        for axis in self.axes:
            shape = (*[1] * (len(self.common) - self.places[axis].ndim), *self.places[axis].shape)
            wide = [d for d, extent in enumerate(shape) if extent != 1]
            own += wide if len(wide) == 1 else [-1]
        neighbours = self.axes == tuple(range(self.axes[0], self.axes[0] + len(self.axes)))
        return neighbours and own == list(range(len(self.common)))

    def flat(self) -> list[int]:
        """The flat indices over the given axes, which are moved to the front."""
        columns = [np.broadcast_to(self.places[axis], self.common) for axis in self.axes]
        return listed(np.asarray(np.ravel_multi_index(columns, [self.shape[axis] for axis in self.axes]), np.int64))

    def rows(self, x: Array) -> Array:
        """The array [given axes, other axes]."""
        moved = transpose(x, (*self.axes, *self.rest))
        return reshape(moved, (-1, *[self.shape[axis] for axis in self.rest]))


def take_at(x: Array, indices: Sequence[NDArray[np.integer] | Array | None], *, outside: Outer = "wrap") -> Array:
    """The elements at indices of some axes, as NumPy's `x[:, i, j]`; None is a whole axis.

    `outside` is the meaning of indices of inputs (`build.take`).
    """
    known = [each for each in indices if not isinstance(each, Array)]
    if len(known) < len(indices):
        return sliced(x, _items(x, indices), outside)
    at = _Indices(x.shape, known)
    rest = [x.shape[axis] for axis in at.rest]
    shape = (*rest[: at.first], *at.common, *rest[at.first :])
    if len(at.axes) == 1 or at.is_grid():
        for axis in at.axes:
            x = take(x, listed(at.places[axis]), axis)
        return reshape(x, shape)
    found = reshape(take(at.rows(x), at.flat(), 0), (*at.common, *rest))
    count = len(at.common)
    return transpose(found, [*range(count, count + at.first), *range(count), *range(count + at.first, found.rank)])


def _items(x: Array, indices: Sequence[NDArray[np.integer] | Array | None]) -> list[Item]:
    """Indices of some axes as those of `sliced`."""
    items: list[Item] = []
    for axis, each in enumerate(indices):
        whole = slice(None) if each is None else each
        items.append(table(places_of(whole, x.shape[axis]).tolist()) if isinstance(whole, np.ndarray) else whole)
    return items


def put_at(
    x: Array,
    indices: Sequence[NDArray[np.integer] | Array | None],
    values: Array,
    accumulation: Accumulation | None = None,
    *,
    outside: Outer = "wrap",
) -> Array:
    """A copy of `x` with `values`, which broadcast, at the places of `take_at`; the last one at a place counts.

    With an accumulation, all values at a place join the element there.

    >>> from pdojo import build
    >>> x, i = build.input("x", "f32", (4, 8)), build.input("i", "i64", (3,))
    >>> build.put_at(x, [i], build.input("v", "f32", (3, 8)))
    <Array f32 [4, 8]>
    """
    known = [each for each in indices if not isinstance(each, Array)]
    if len(known) < len(indices):
        return put_items(x, _items(x, indices), values, accumulation, outside)
    at = _Indices(x.shape, known)
    rest, count = [x.shape[axis] for axis in at.rest], len(at.common)
    whole = broadcast_to(values, (*rest[: at.first], *at.common, *rest[at.first :]))
    places = [*range(at.first, at.first + count)]
    moved = transpose(whole, [*places, *(d for d in range(whole.rank) if d not in places)])
    updates = reshape(moved, (prod(at.common), *rest))
    rows = put(at.rows(x), at.flat(), updates, accumulation=accumulation)
    order = (*at.axes, *at.rest)
    found = reshape(rows, [x.shape[axis] for axis in order])
    return transpose(found, [order.index(axis) for axis in range(x.rank)])


def _flat(places: Places, shape: Sequence[int], axis: int) -> Places:
    """Flat indices in an array of `shape`: `places` along one axis, each element's own index along the others."""
    _check_places(places.shape, shape, axis)
    own = np.indices(places.shape)
    grid = [places if d == axis else own[d] for d in range(places.ndim)]
    return np.asarray(np.ravel_multi_index(grid, tuple(shape)) if places.size else places, np.int64)


def _own(places: Array, x: Array, axis: int) -> list[Array]:
    """Indices along one axis of an array, and each element's own index along the others."""
    _check_places(places.shape, x.shape, axis)
    return [places if d == axis else iota(places.shape, "i64", d) for d in range(x.rank)]


def _check_places(places: Sequence[int], shape: Sequence[int], axis: int) -> None:
    """Raise UsageError for indices along an axis whose other extents exceed those of the array."""
    if len(places) != len(shape) or any(
        d != axis and count > extent for d, (count, extent) in enumerate(zip(places, shape, strict=True))
    ):
        raise UsageError(f"indices of shape {list(places)} do not fit an array of shape {list(shape)}")


def from_start(indices: Array, extent: int) -> Array:
    """Computed indices of an axis, of which negative ones count from the end, counted from the start."""
    return where(indices < 0, indices + extent, indices)


def one_hot(indices: Array, depth: int, axis: int, on: Array, off: Array) -> Array:
    """`on` at each index along a new axis of `depth` elements, `off` elsewhere; negative indices count from the end."""
    places = cast(indices, indices.dtype if is_float(indices.dtype) else "i64")
    places = expand_dims(from_start(places, depth), axis)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    return where(places == iota(shape, places.dtype, axis), on, off)


def write_sequences(
    x: Array, updates: Array, starts: Sequence[int] | Array, axis: int, *, circular: bool = False
) -> Array:
    """A copy of `x` [batch, ...] with the updates of each sequence from its start on along an axis.

    Places behind the last one are an error, or begin with the first one again if `circular`.
    """
    if isinstance(starts, Array):
        column = reshape(starts, (-1, *[1] * (x.rank - 1)))
        return put_around(x, column, updates, axis) if circular else put_from(x, column, updates, axis)
    extent, rows = x.shape[axis], list[Array]()
    for k, start in enumerate(starts):
        places = [start + i for i in range(updates.shape[axis])]
        if not circular and places and places[-1] >= extent:
            raise UsageError(f"sequence {k} ends behind the array of {extent} elements")
        rows.append(put(x[k : k + 1], [place % extent for place in places], updates[k : k + 1], axis))
    return concatenate(rows, 0)


def reverse_sequences(x: Array, lengths: Sequence[int], axis: int, batch: int) -> Array:
    """A copy of `x` in which the first elements of each sequence of a batch are in reverse order along an axis."""
    parts: list[Array] = []
    for k, length in enumerate(lengths):
        row = x[tuple(slice(k, k + 1) if d == batch else slice(None) for d in range(x.rank))]
        first, rest = split(row, [length, x.shape[axis] - length], axis)
        parts.append(concatenate([flip(first, axis), rest], axis))
    return concatenate(parts, batch)


def triangle(x: Array, diagonal: int | Array = 0, *, upper: bool) -> Array:
    """The part of matrices from a diagonal on to the upper right or to the lower left, and 0 elsewhere."""
    # The distance from the diagonal has as many values as there are extents.
    kind = "i32" if x.shape[-2] + x.shape[-1] <= MOST_I32 else "i64"
    if isinstance(diagonal, Array):
        first, last = (scalar(extent, "i64") for extent in (-x.shape[-2], x.shape[-1]))
        k = cast(clip(cast(diagonal, "i64"), first, last), kind)
    else:
        k = min(x.shape[-1], diagonal) if diagonal > 0 else -min(x.shape[-2], -diagonal)
    rows, columns = iota(x.shape, kind, -2), iota(x.shape, kind, -1)
    kept = columns >= rows + k if upper else columns <= rows + k
    return where(kept, x, 0)
