"""Plans of a model for ranges of shapes: extents that differ between calls are sizes, over which one import is proven.

The first shape has a plan of its own, for constants. At the second one, the extents in which both differ are opened
(`pdojo.build.size`): every rule of the import then decides for all values of a range, or raises OpenExtent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from threading import RLock
from typing import Generic, TypeAlias, TypeVar

from pdojo import build
from pdojo.build.sizes import OpenExtent, sizes_of
from pdojo.dialect.affine import Size
from pdojo.dialect.names import name_problem
from pdojo.dialect.sizes import value_problem
from pdojo.errors import UsageError

_P = TypeVar("_P")
Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of inputs, in order; extents may depend on sizes."""
Place: TypeAlias = tuple[int, int]
"""An input and an axis of it, by number."""
ROOM = 2
"""The end of a range as a multiple of the greatest known value."""
_MULTIPLE = 1
"""The number of the range of multiples among those that are tried."""
_MOST_PLANS, _MOST_SEEN = 4, 64


@dataclass(frozen=True)
class OpenPlan(Generic[_P]):
    """A plan for all shapes that have the extents of `shapes` for some values of sizes."""

    made: _P
    shapes: Shapes

    def values(self, shapes: Shapes) -> Mapping[Size, int] | None:
        """The values of sizes at which it is for these shapes; None if there are none."""
        found: dict[Size, int] = {}
        for own, shape in zip(self.shapes, shapes, strict=True):
            for extent, value in zip(own, shape, strict=True):
                sizes = sizes_of(extent)
                if extent != value and not (sizes and found.setdefault(sizes[0], value) == value):
                    return None
        return found if all(value_problem(size, value) is None for size, value in found.items()) else None


@dataclass
class Ranges(Generic[_P]):
    """The shapes with which a model was called, for inputs of the same types, ranks and static values."""

    names: Mapping[Place, str]
    """The names that the file gives extents."""
    seen: list[Shapes] = field(default_factory=list[Shapes])
    """The shapes that have plans of their own, the first one first, and those for which ranges were opened."""
    plans: list[OpenPlan[_P]] = field(default_factory=list["OpenPlan[_P]"])
    """The plans for ranges, the newest first."""
    refused: dict[frozenset[Place], str] = field(default_factory=dict[frozenset[Place], str])
    """The extents that cannot all be opened, with the reasons."""
    _lock: RLock = field(default_factory=RLock)

    def known(self, shapes: Shapes) -> tuple[_P, Mapping[Size, int]] | None:
        """The plan for these shapes, with the values of sizes; None if there is none, or one for constants."""
        if not self.seen or shapes != self.seen[0]:
            for plan in self.plans:
                if (values := plan.values(shapes)) is not None:
                    return plan.made, values
        return None

    def found(self, shapes: Shapes, make: Callable[[Shapes], _P]) -> tuple[_P, Mapping[Size, int]] | None:
        """The plan for these shapes, made if there is none; None for those that have one for constants.

        `make` raises UsageError if there is no plan for a range.
        """
        with self._lock:
            if (known := self.known(shapes)) is not None or not self.seen or shapes in self.seen:
                return known
            places = _different([*self.seen, shapes])
            if places in self.refused:
                return None
            plan = self._opened(places, shapes, make)
            if plan is None:
                return None
            self.plans = [plan, *self.plans][:_MOST_PLANS]
            self.note(shapes)
            return self.known(shapes)

    def note(self, shapes: Shapes) -> None:
        """Keep shapes in mind that no plan had."""
        if shapes not in self.seen:
            with self._lock:
                if shapes not in self.seen and len(self.seen) < _MOST_SEEN:
                    self.seen.append(shapes)

    def _opened(self, places: frozenset[Place], shapes: Shapes, make: Callable[[Shapes], _P]) -> OpenPlan[_P] | None:
        """The plan with open extents for the most values; None if there is none, for a reason that is kept.

        A narrower range is tried if it may answer the question at which the import ended, and multiples of a number
        where shapes do not fit.
        """
        first: UsageError | None = None
        last: UsageError | None = None
        for kind, each in self._attempts(places, shapes):
            is_open = isinstance(last, OpenExtent)
            if isinstance(last, OpenExtent) and not last.narrower:
                break
            if last is not None and not is_open and kind not in (0, _MULTIPLE):
                continue
            try:
                return OpenPlan(make(each), each)
            except UsageError as error:
                first, last = first or error, error
        self.refused[places] = str(first) if first is not None else "an extent of 0 is no size"
        return None

    def _attempts(self, places: frozenset[Place], shapes: Shapes) -> Iterator[tuple[int, Shapes]]:
        """The shapes with open extents for which a plan is tried, with the number of the kind of range.

        Extents of one name have one size, and so have unnamed ones that were always equal; or else all of these.
        """
        seen = [*self.seen, shapes]
        rows = {place: tuple([each[place[0]][place[1]] for each in seen]) for place in sorted(places)}
        if any(0 in row for row in rows.values()):
            return
        tried: set[Shapes] = set()
        for groups in ({place: self.names.get(place, rows[place]) for place in rows}, rows):
            for kind, ranges in enumerate(zip(*(_ranges(row) for row in rows.values()), strict=True)):
                made = self._with_sizes(shapes, groups, dict(zip(rows, ranges, strict=True)))
                if made is not None and made not in tried and OpenPlan(None, made).values(shapes) is not None:
                    tried.add(made)
                    yield kind, made

    def _with_sizes(
        self, shapes: Shapes, groups: Mapping[Place, object], ranges: Mapping[Place, tuple[int, int, int]]
    ) -> Shapes | None:
        """Shapes with a size for each group of extents; None if the extents of one group have several ranges."""
        chosen: dict[object, tuple[int, int, int]] = {}
        if any(chosen.setdefault(group, ranges[place]) != ranges[place] for place, group in groups.items()):
            return None
        values = {place: range(low, high + 1, step) for place, (low, high, step) in ranges.items()}
        ranged = [[values.get((n, axis), each) for axis, each in enumerate(shape)] for n, shape in enumerate(shapes)]
        return with_sizes(ranged, groups, self.names)


def with_sizes(
    shapes: Sequence[Sequence[int | range]], groups: Mapping[Place, object], names: Mapping[Place, str]
) -> Shapes:
    """Shapes with sizes in the place of ranges, one for all ranges of a group, with names of the file."""
    sizes: dict[object, int] = {}
    found: list[tuple[int, ...]] = []
    for n, shape in enumerate(shapes):
        extents: list[int] = []
        for axis, each in enumerate(shape):
            group = groups.get((n, axis), (n, axis))
            if isinstance(each, range) and group not in sizes:
                title = _title(names.get((n, axis), ""), [*map(str, sizes.values())], len(sizes))
                sizes[group] = build.size(title, each.start, each[-1], multiple=each.step)
            extents.append(each if isinstance(each, int) else sizes[group])
        found.append(tuple(extents))
    return tuple(found)


def _title(name: str, taken: Sequence[str], number: int) -> str:
    """The name of a size: that of the file in capitals, or a letter and a number."""
    title = "".join(each if each.isalnum() else "_" for each in name).upper()
    return title if name_problem(title) is None and title not in taken else f"N{number}"


def _different(seen: Sequence[Shapes]) -> frozenset[Place]:
    """The extents that are not equal in all shapes."""
    rows = [(n, axis) for n, shape in enumerate(seen[0]) for axis in range(len(shape))]
    return frozenset((n, axis) for n, axis in rows if len({each[n][axis] for each in seen}) > 1)


def _ranges(values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The ranges that are tried for a size, by kind: least, greatest, step.

    From 2, if 1 was not seen: extents of 1 broadcast, so that they mean something else in many models. Then from 2 in
    any case, multiples of the common divisor, and ranges that end at values that were seen.
    """
    least, most = min(values), max(values)
    step = gcd(*[value for value in values if value > 1])
    yield min(least, 2), ROOM * most, 1
    yield max(step, 2), ROOM * most // step * step, step
    yield 2, ROOM * most, 1
    yield least, ROOM * most, 1
    yield min(least, 2), most, 1
    yield least, most, 1
