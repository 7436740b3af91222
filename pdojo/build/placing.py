"""Arrays with elements at indices of an axis replaced or joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdojo.build.array import Array, broadcast_to, iota, map
from pdojo.build.extents import axes_of
from pdojo.build.pieces import (
    MOST_PIECES,
    MOST_RUNS,
    assemble,
    check_runs,
    concatenate,
    places_along,
    runs_of,
    take,
)
from pdojo.build.scatters import Accumulation, check_alike, put_items
from pdojo.build.shapes import reshape
from pdojo.build.slicing import Outer
from pdojo.build.tables import scatter, table
from pdojo.dialect.table import MOST_ENTRIES


def put(
    x: Array,
    indices: Sequence[int] | Array,
    updates: Array,
    axis: int = 0,
    *,
    accumulation: Accumulation | None = None,
    outside: Outer = "wrap",
) -> Array:
    """A copy of `x` with `updates` at indices along `axis`, for equal indices the last update counts.

    `indices` and `outside` are those of `take`; the updates broadcast to its result. With an accumulation, all updates
    at an index join the element there.

    >>> from pdojo import build
    >>> x, u = build.input("x", "f32", (4, 8)), build.input("u", "f32", (3, 8))
    >>> build.put(x, [2, 0, 2], u, accumulation="+")
    <Array f32 [4, 8]>
    >>> build.put(x, build.input("ids", "i64", (3,)), u)
    <Array f32 [4, 8]>
    """
    (axis,) = axes_of(axis, x.rank)
    if isinstance(indices, Array):
        return put_items(x, (*[slice(None)] * axis, indices), updates, accumulation, outside)
    check_alike(x, updates)
    places = places_along(x, indices, axis)
    updates = broadcast_to(updates, (*x.shape[:axis], len(places), *x.shape[axis + 1 :]))
    if accumulation is None:
        last = {place: k for k, place in enumerate(places)}
        return _overwritten(x, updates, list(last), list(last.values()), axis)
    if not places:
        return x
    updates, targets = _joined(updates, places, axis, accumulation)
    joined = map(accumulation, take(x, targets, axis), updates)
    return _overwritten(x, joined, targets, list(range(len(targets))), axis)


def _joined(updates: Array, places: Sequence[int], axis: int, accumulation: str) -> tuple[Array, list[int]]:
    """The updates of each place joined to one, and the places.

    Each round joins pairs of updates of one place, so that the rounds are the logarithm of the most updates of a place.
    """
    while True:
        at: dict[int, list[int]] = {}
        for k, place in enumerate(places):
            at.setdefault(place, []).append(k)
        pairs = [(place, each[k : k + 2]) for place, each in at.items() for k in range(0, len(each), 2)]
        twos = [(place, each) for place, each in pairs if len(each) == 2]
        if not twos:
            return updates, list(places)
        ones = [(place, each) for place, each in pairs if len(each) == 1]
        left, right = (_at(updates, [each[k] for _, each in twos], axis) for k in (0, 1))
        parts = [map(accumulation, left, right)]
        if ones:
            parts.append(_at(updates, [each[0] for _, each in ones], axis))
        updates = concatenate(parts, axis)
        places = [place for place, _ in (*twos, *ones)]


def _at(x: Array, indices: Sequence[int], axis: int) -> Array:
    """The elements at constant indices, looked up in as many tables as they need."""
    count = len(indices) if len(list(runs_of(indices))) <= MOST_PIECES else MOST_ENTRIES
    return concatenate([take(x, indices[k : k + count], axis) for k in range(0, len(indices), count)], axis)


def _overwritten(x: Array, updates: Array, targets: Sequence[int], sources: Sequence[int], axis: int) -> Array:
    order = sorted(range(len(targets)), key=lambda k: targets[k])
    targets, sources = [targets[k] for k in order], [sources[k] for k in order]
    runs = list(_runs(sources, targets))
    if len(runs) > MOST_RUNS and len(targets) <= MOST_ENTRIES:
        shape = (*x.shape[:axis], len(targets), *x.shape[axis + 1 :])
        own = [iota(shape, "i64", d) for d in range(x.rank)]
        column = reshape(table(targets), [-1 if d == axis else 1 for d in range(x.rank)])
        places = [column if d == axis else own[d] for d in range(x.rank)]
        return scatter(x, places, take(updates, sources, axis))
    check_runs(len(runs), len(targets))
    lead = [slice(None)] * axis
    if len(runs) == 1 and targets[-1] - targets[0] == len(targets) - 1:
        # Neighbours: no element is written twice.
        new = broadcast_to(updates[(*lead, _slice(sources))], (*x.shape[:axis], len(targets), *x.shape[axis + 1 :]))
        parts = x[(*lead, slice(targets[0]))], new, x[(*lead, slice(targets[-1] + 1, None))]
        return concatenate([part for part in parts if part.shape[axis]], axis)
    pieces = [((*lead, _slice(targets[start:end])), updates[(*lead, _slice(sources[start:end]))])
              for start, end in runs]  # fmt: skip
    return assemble(x.shape, [((), x), *pieces], None) if pieces else x


def _runs(sources: Sequence[int], targets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last positions of runs in which sources and targets are both evenly spaced."""
    start, count = 0, len(sources)
    while start < count:
        end = start + 1
        while end < count and (
            end == start + 1
            or (sources[end] - sources[end - 1] == sources[start + 1] - sources[start]
                and targets[end] - targets[end - 1] == targets[start + 1] - targets[start])
        ):  # fmt: skip
            end += 1
        yield start, end
        start = end


def _slice(places: Sequence[int]) -> slice:
    step = places[1] - places[0] if len(places) > 1 else 1
    if not step:
        raise AssertionError(places)
    stop = places[-1] + (1 if step > 0 else -1)
    return slice(places[0], None if stop < 0 else stop, step)
