"""The exact answer for few instances: all reads and writes of a buffer, one by one, in execution order.

Kernels of a few thousand instances are common in searches for small cores. There, enumeration takes a fraction of the
time of integer sets. The answers are the same: each read's source is recorded.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow.points import Ints, evaluate
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.shortcuts.representatives import Representatives
from pdojo.dialect.view.nest import Leaf
from pdojo.dialect.view.paths import node_path

MOST = 1 << 15
"""Most reads and writes that are enumerated."""
_WIDEST = 1 << 62
"""Exclusive bound of the numbers of times and places."""

Place: TypeAlias = Sequence[int | Expr]
"""The place that a use touches: numbers, and expressions over its scopes. Places of different lengths differ."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The kernel's caller, who reads an array's elements at the end, and may write them before the start."""

    shape: tuple[int, ...]
    writes: bool


@dataclass(frozen=True, slots=True)
class Events:
    """All reads and writes of some uses; the caller's have the number after the last use."""

    use: Ints
    """Per event, the number of its use."""
    writes: NDArray[np.bool_]
    """Per event, whether it writes. An accumulation reads, then writes."""
    time: Ints
    """Per event, its rank in execution order; a statement reads before it writes."""
    iterations: Ints
    """The iterations of the scopes around each event, outermost first, then zeros. Shape (depths, events)."""
    depths: tuple[int, ...]
    """Per use, the number of scopes around it."""

    def iteration(self, event: int) -> tuple[int, tuple[int, ...]]:
        """The number of an event's use, and its iteration."""
        number = int(self.use[event])
        return number, tuple(int(value) for value in self.iterations[: self.depths[number], event])

    def places(self, places: Sequence[Place], caller: Place = ()) -> Ints | None:
        """Per event, the number of its place; None if the numbers are too large.

        `caller` is the place of the caller's elements, over the dimensions of the array.
        """
        every = [*places, caller]
        width = max(map(len, every))
        columns = np.zeros((1 + width, len(self.use)), dtype=np.int64)
        for number in range(len(self.depths)):
            mine = self.use == number
            place = every[number]
            values = self.iterations[:, mine]
            columns[0, mine] = len(place)
            for column, expression in enumerate(place, 1):
                columns[column, mine] = expression if isinstance(expression, int) else evaluate(expression, values)
        return numbered(columns)

    def sources(self, place: Ints) -> Ints:
        """Per reading event, the event that last wrote its place; -1 if there is none, and for writing events."""
        order = np.lexsort((self.time, place))
        sorted_place, counted = place[order], np.arange(len(order))
        starts = np.ones(len(order), dtype=np.bool_)
        starts[1:] = sorted_place[1:] != sorted_place[:-1]
        # The latest write up to each event, excluding the event itself.
        latest = np.maximum.accumulate(np.where(self.writes[order], counted, -1))
        before = np.concatenate(([-1], latest))[:-1]
        start = np.maximum.accumulate(np.where(starts, counted, 0))
        found = np.where(before >= start, order[before], -1)
        sources = np.empty(len(order), dtype=np.int64)
        sources[order] = found
        sources[self.writes] = -1
        return sources


def events_of(uses: Sequence[Use], caller: Outside | None = None, only: Representatives | None = None) -> Events | None:
    """The events of some uses and of the caller; None if there are too many, or if they depend on sizes.

    `only` are the iterations to include, at the greatest sizes; None for all.
    """
    if only is None and any(sizes_in(use.leaf.guards) for use in uses):
        return None
    only = only or Representatives({}, {})
    boxes = {use.leaf: [only.of(scope) for scope in use.leaf.chain] for use in uses}
    given = [] if caller is None else [only.along(k, extent) for k, extent in enumerate(caller.shape)]
    instances = sum(prod(map(len, boxes[u.leaf])) * (u.reads + u.writes) for u in uses)
    if instances + (2 * prod(map(len, given)) if caller is not None else 0) > MOST:
        return None
    grids: dict[Leaf, Ints] = {}
    depth = max([u.leaf.depth for u in uses] + ([len(caller.shape)] if caller is not None else []))
    length = 2 * max(u.leaf.depth for u in uses) + 2
    parts: list[tuple[int, bool, Ints, Ints]] = []
    for number, use in enumerate(uses):
        if use.leaf not in grids:
            grids[use.leaf] = _iterations(use.leaf, boxes[use.leaf])
        grid = grids[use.leaf]
        kinds = [kind for kind, happens in ((False, use.reads), (True, use.writes)) if happens]
        parts += [(number, writes, grid, _times(use.leaf, grid, writes, length)) for writes in kinds]
    if caller is not None:
        grid = _box(given)
        end = 1 + max(node_path(u.leaf)[0] for u in uses)
        for writes, moment in ((False, end), (True, -1)):
            if not writes or caller.writes:
                times = np.zeros((length, grid.shape[1]), dtype=np.int64)
                times[0] = moment
                parts.append((len(uses), writes, grid, times))
    time = numbered(np.concatenate([times for *_, times in parts], axis=1))
    if time is None:
        return None
    counts = [grid.shape[1] for _, _, grid, _ in parts]
    return Events(
        np.repeat([number for number, *_ in parts], counts),
        np.repeat([writes for _, writes, *_ in parts], counts),
        time,
        np.concatenate([np.pad(grid, ((0, depth - len(grid)), (0, 0))) for _, _, grid, _ in parts], axis=1),
        (*(u.leaf.depth for u in uses), *([len(caller.shape)] if caller is not None else [])),
    )


def _box(values: Sequence[Sequence[int]]) -> Ints:
    """All points of the product of the values in each dimension, by dimension."""
    counts = [len(some) for some in values]
    grid = np.indices(counts, dtype=np.int64).reshape(len(counts), prod(counts))
    for row, some in zip(grid, values, strict=True):
        if not isinstance(some, range):
            row[:] = np.array(some, dtype=np.int64)[row]
    return grid


def _iterations(leaf: Leaf, box: Sequence[Sequence[int]]) -> Ints:
    """The points of a box that are iterations of a statement, by scope."""
    grid = _box(box)
    for guard in leaf.guards:
        grid = grid[:, evaluate(guard, grid, greatest=True) >= 0]
    return grid


def _times(leaf: Leaf, grid: Ints, writes: bool, length: int) -> Ints:
    """Position, iteration, position, iteration ... position; then 0 for the reads and 1 for the write."""
    times = np.zeros((length, grid.shape[1]), dtype=np.int64)
    for k, position in enumerate(node_path(leaf)):
        times[2 * k] = position
    times[1 : 2 * len(grid) : 2] = grid
    times[-1] = writes
    return times


def numbered(columns: Ints) -> Ints | None:
    """Numbers for the columns of an array: in lexicographic order, and equal iff the columns are equal.

    None if the numbers were too large.
    """
    total = np.zeros(columns.shape[1], dtype=np.int64)
    if not columns.size:
        return total
    least, most = columns.min(axis=1), columns.max(axis=1)
    size = 1
    for row, low, high in zip(columns, least.tolist(), most.tolist(), strict=True):
        span = high - low + 1
        size *= span
        if size >= _WIDEST:
            return None
        if span > 1:
            total = total * span + (row - low)
    return total


@dataclass(frozen=True, slots=True)
class Values:
    """The source of each read's value, for some uses of an array."""

    events: Events
    places: Ints
    """Per event, the number of the element."""
    sources: Ints
    """Per reading event, the write that it gets its value from; -1 if there is none."""

    def writers(self, read: int) -> tuple[tuple[int, ...], bool]:
        """The uses that a read gets its values from, and whether all its instances get a written value."""
        found = self.sources[self._reads(read)]
        writers = np.unique(self.events.use[found[found >= 0]])
        return tuple(int(number) for number in writers), bool((found >= 0).all())

    def readers(self, write: int) -> list[int]:
        """The uses that get values of a write, in order."""
        reading = self.sources >= 0
        from_it = self.events.use[self.sources[reading]] == write
        return [int(number) for number in np.unique(self.events.use[reading][from_it])]

    def stray(self, read: int, write: int, at: Sequence[Expr]) -> tuple[int, ...] | None:
        """An iteration of a read whose value is not from a write's iteration `at`; None if there is none."""
        reads = self._reads(read)
        return self._first(reads, self.sources[reads] != self._at(write, at, reads, writes=True))

    def change(self, first: int, second: int, at: Sequence[Expr]) -> tuple[int, ...] | None:
        """An iteration of the read `second` whose source is not that of `first` in iteration `at`; None if none."""
        reads = self._reads(second)
        there = self._at(first, at, reads, writes=False)
        expected = np.where(there >= 0, self.sources[there], -1)
        return self._first(reads, self.sources[reads] != expected)

    def partial(
        self, uses: Sequence[Use], read: int, parts: Sequence[tuple[int, Sequence[Expr | None]]]
    ) -> tuple[int, ...] | None:
        """An iteration of a read whose value is not made of exactly `parts`; None if all values are.

        A part is a write and its iterations, as expressions over the read's iteration; None means every iteration of a
        scope.
        """
        sums, reads = self._sums(uses), self._reads(read)
        wanted = [self._parts(write, at, reads) for write, at in parts]
        known: dict[Hashable, bool] = {}
        wrong = np.zeros(len(reads), dtype=np.bool_)
        for k, (group, count) in enumerate(zip(sums.group[reads].tolist(), sums.number[reads].tolist(), strict=True)):
            keys = tuple(keys[k] for keys, _ in wanted)
            if (keys, group, count) not in known:
                made = {event for key, (_, events) in zip(keys, wanted, strict=True) for event in events.get(key, ())}
                known[keys, group, count] = len(made) == count and all(
                    sums.group[event] == group and sums.number[event] < count for event in made
                )
            wrong[k] = not known[keys, group, count]
        return self._first(reads, wrong)

    def _sums(self, uses: Sequence[Use]) -> _Sums:
        """Groups of a plain write and the accumulations after it, which make up values."""
        events, order = self.events, np.lexsort((self.events.time, self.places))
        places, writes = self.places[order], events.writes[order]
        plain = writes & np.array([u.leaf.accumulate is None for u in uses])[events.use[order]]
        begins = np.concatenate(([True], places[1:] != places[:-1])) | plain
        before = np.cumsum(writes) - writes
        start = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
        group, number = np.empty_like(order), np.empty_like(order)
        group[order], number[order] = np.cumsum(begins), before - before[start]
        return _Sums(group, number)

    def _parts(
        self, write: int, at: Sequence[Expr | None], reads: Ints
    ) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], list[int]]]:
        """Per read, the key of a write's events that must be part of its value; and these events by key."""
        events, fixed = self.events, [d for d, expression in enumerate(at) if expression is not None]
        theirs = np.flatnonzero((events.use == write) & events.writes)
        found: dict[tuple[int, ...], list[int]] = {}
        for event, key in zip(theirs.tolist(), _rows(events.iterations[:, theirs][fixed]), strict=True):
            found.setdefault(key, []).append(event)
        around = events.iterations[:, reads]
        there = [evaluate(expression, around) for expression in at if expression is not None]
        return _rows(np.array(there, dtype=np.int64).reshape(len(there), len(reads))), found

    def _reads(self, number: int) -> Ints:
        """The events in which a use reads."""
        return np.flatnonzero((self.events.use == number) & ~self.events.writes)

    def _at(self, number: int, at: Sequence[Expr], reads: Ints, *, writes: bool) -> Ints:
        """Per read, the event of a use in iteration `at`, over the read's iteration; -2 if there is no such event."""
        events = self.events
        theirs = np.flatnonzero((events.use == number) & (events.writes == writes))
        around = events.iterations[:, reads]
        wanted = np.zeros((len(at), len(reads)), dtype=np.int64)
        for row, expression in zip(wanted, at, strict=True):
            row[:] = evaluate(expression, around)
        keys = numbered(np.concatenate([events.iterations[: len(at), theirs], wanted], axis=1))
        assert keys is not None
        known = dict(zip(keys[: len(theirs)].tolist(), theirs.tolist(), strict=True))
        return np.array([known.get(key, -2) for key in keys[len(theirs) :].tolist()], dtype=np.int64)

    def _first(self, reads: Ints, which: NDArray[np.bool_]) -> tuple[int, ...] | None:
        """The iteration of the first of some events; None if there are none."""
        some = reads[which]
        return self.events.iteration(int(some[np.argmin(self.events.time[some])]))[1] if len(some) else None


@dataclass(frozen=True, slots=True)
class _Sums:
    """Groups of writes to one place: a plain write and the accumulations up to the next plain write."""

    group: Ints
    """Per event, the number of the group that it belongs to, or that it reads."""
    number: Ints
    """Per event, the number of the group's writes before it."""


def _rows(columns: Ints) -> list[tuple[int, ...]]:
    """The columns of an array as tuples."""
    return [tuple(column) for column in columns.T.tolist()]


def values_of(uses: Sequence[Use], only: Representatives | None = None) -> Values | None:
    """The sources of reads of elements, in the iterations `only` (None: all); None if there are too many events."""
    events = events_of(uses, only=only)
    places = None if events is None else events.places([u.access.index for u in uses])
    return None if events is None or places is None else Values(events, places, events.sources(places))
