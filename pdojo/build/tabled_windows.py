"""Windows along an axis as tables of their elements: for adaptive pools, and for the gradients of all pools."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.build.array import Array, cast, iota
from pdojo.build.elementwise import where
from pdojo.build.policy import accumulated_wide, rounded_once
from pdojo.build.pools import pool
from pdojo.build.reductions import neutral_of, reduce, sum
from pdojo.build.shapes import expand_dims, reshape
from pdojo.build.tables import gather, table


def adaptive_pool(accumulation: str, x: Array, places: Sequence[int]) -> Array:
    """The accumulation of windows that divide the last axes into `places` parts, which may overlap by an element."""
    lead, extents = x.shape[: -len(places)], x.shape[-len(places) :]
    if all(not extent % count for extent, count in zip(extents, places, strict=True)):
        sizes = [extent // count for extent, count in zip(extents, places, strict=True)]
        images = x if len(lead) == 2 else expand_dims(x, 0)
        return reshape(pool(accumulation, images, sizes), (*lead, *places))
    for axis, (extent, count) in enumerate(zip(extents, places, strict=True), len(lead)):
        x = _gathered(accumulation, x, axis, _parts(extent, count))
    return x


@rounded_once
def adaptive_avg_pool(x: Array, places: Sequence[int]) -> Array:
    """The means of the windows of `adaptive_pool`."""
    found = adaptive_pool("+", x, places)
    for axis, count in enumerate(places, x.rank - len(places)):
        found = _divided(found, axis, _parts(x.shape[axis], count))
    return found


@rounded_once
def adaptive_avg_pool_gradient(gradient: Array, extents: Sequence[int]) -> Array:
    """The gradient of `adaptive_avg_pool` of images with `extents`."""
    for axis, extent in enumerate(extents, gradient.rank - len(extents)):
        parts = _parts(extent, gradient.shape[axis])
        gradient = _gathered("+", _divided(gradient, axis, parts), axis, holding(parts, extent))
    return gradient


@rounded_once
def avg_pool_gradient(
    gradient: Array,
    extents: Sequence[int],
    size: Sequence[int],
    *,
    stride: Sequence[int],
    padding: Sequence[int],
    count_padding: bool = True,
    divisor: float | None = None,
) -> Array:
    """The gradient of `avg_pool` of images with `extents`: each element gets its windows' gradients, divided by their
    sizes.
    """
    lead = gradient.rank - len(extents)
    rows = zip(extents, gradient.shape[lead:], size, stride, padding, strict=True)
    for axis, (extent, places, k, s, p) in enumerate(rows, lead):
        windows = [range(place * s - p, min(place * s - p + k, extent + p)) for place in range(places)]
        inside = [range(max(0, each.start), min(extent, each.stop)) for each in windows]
        if divisor is None:
            gradient = _divided(gradient, axis, windows if count_padding else inside)
        gradient = _gathered("+", gradient, axis, holding(inside, extent))
    return gradient if divisor is None else gradient / divisor


@accumulated_wide
def max_pool_gradient(
    gradient: Array,
    indices: Array,
    extents: Sequence[int],
    size: Sequence[int],
    *,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """The gradient of the greatest elements of windows: an element sums those of windows with its index.

    `indices` are flat in images with `extents`.
    """
    rank = len(extents)
    lead = gradient.shape[:-rank]
    rows = zip(extents, gradient.shape[-rank:], size, stride, padding, dilation, strict=True)
    tables: list[list[list[int]]] = []
    for extent, places, k, s, p, d in rows:
        parts = [range(place * s - p, place * s - p + k * d, d) for place in range(places)]
        tables.append(holding(parts, extent))
    # x[..., h, w, t, u]: the t-th window over row h, and the u-th over column w.
    most = [max(1, *(len(row) for row in each)) for each in tables]
    shape = (*lead, *extents, *most)
    at: list[Array] = [iota(shape, "i64", d) for d in range(len(lead))]
    flat = reshape(iota((prod(extents),), "i64"), (*extents, *[1] * rank))
    counted = None
    for axis, each in enumerate(tables):
        own = [len(each) if d == axis else 1 for d in range(2 * rank)]
        counts = reshape(table([len(row) for row in each]), own)
        own[axis + rank] = most[axis]
        at.append(reshape(table([[*row, *[0] * (most[axis] - len(row))] for row in each]), own))
        inside = iota((*[1] * rank, *most), "i64", axis + rank) < counts
        counted = inside if counted is None else counted & inside
    chosen = gather(indices, at) == flat
    chosen = chosen if counted is None else chosen & counted
    return sum(where(chosen, gather(gradient, at), 0), range(-rank, 0))


def _parts(extent: int, places: int) -> list[range]:
    """The elements of each window of an adaptive pool."""
    return [range(place * extent // places, -(-(place + 1) * extent // places)) for place in range(places)]


def holding(windows: Sequence[range], extent: int) -> list[list[int]]:
    """The numbers of the windows that hold each element of an axis, ascending."""
    found: list[list[int]] = [[] for _ in range(extent)]
    for number, window in enumerate(windows):
        for element in window:
            if 0 <= element < extent:
                found[element].append(number)
    return found


def _divided(x: Array, axis: int, windows: Sequence[range]) -> Array:
    """The array divided by the number of elements of the window at each place of an axis."""
    return x / _along([len(window) for window in windows], x.rank, axis, x.dtype)


def _along(numbers: Sequence[int], rank: int, axis: int, dtype: str) -> Array:
    """Numbers along an axis of an array of `rank` dimensions."""
    return reshape(cast(table(numbers), dtype), [-1 if d == axis else 1 for d in range(rank)])


def _gathered(accumulation: str, x: Array, axis: int, sources: Sequence[Sequence[int]]) -> Array:
    """The accumulation of the elements at the places `sources[i]` of an axis, for each element i of the result."""
    most = max(len(row) for row in sources)
    # Shorter rows repeat a place; the copies do not count.
    places = [[*row, *[row[-1] if row else 0] * (most - len(row))] for row in sources]
    shape = (*x.shape[:axis], len(sources), *x.shape[axis + 1 :], most)
    column = reshape(table(places), [len(sources) if d == axis else 1 for d in range(x.rank)] + [most])
    near = gather(x, [column if d == axis else iota(shape, "i64", d) for d in range(x.rank)])
    if any(len(row) < most for row in sources):
        counts = _along([len(row) for row in sources], x.rank + 1, axis, "i64")
        near = where(iota((most,), "i64") < counts, near, neutral_of(accumulation, x))
    return reduce(accumulation, near, -1)
