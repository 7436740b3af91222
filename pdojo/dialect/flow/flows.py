"""Flows of values between instances of statements, as relations of integer sets: (write, read) pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.affine import Expr, var
from pdojo.dialect.flow.integer_sets import (
    bounded,
    coordinates,
    domain_constraints,
    place_constraints,
    read_set,
    spell,
    variables,
    within_sizes,
)
from pdojo.dialect.flow.shortcut import decided
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.lookups import unknown_places
from pdojo.dialect.view.nest import Leaf
from pdojo.dialect.view.paths import node_path
from pdojo.errors import UnknownSize

if TYPE_CHECKING:
    import islpy as isl


Instance: TypeAlias = tuple[int, tuple[int, ...]]
"""The number of a use, and an iteration."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's use of an interface array: it reads all elements at the end and may write them before the start."""

    name: str
    extents: tuple[Expr, ...]
    writes: bool
    """Whether the array has values before the kernel runs."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def greatest(self) -> tuple[int, ...]:
        """The greatest extents."""
        return tuple([extent.bounds(())[1] for extent in self.extents])


@bounded()
def flow(
    uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]], caller: Caller | None = None, number: int = 0
) -> isl.UnionMap:
    """Pairs (write instance, read instance) such that the read gets the written value, in sequential execution.

    The places of the caller's elements begin with `number`.

    The relation consists of the earlier writes to the same place, minus writes that another earlier write follows.
    isl's own dataflow analysis is not used, because it loses flows from domains with divisions
    (test/property/test_moves.py has the case), nor its lexicographic maximum, which fails for some
    (test/differential/test_storage_forms.py).
    """
    reads, writes, schedule = relations_of(uses, places, caller, number)
    earlier = _earlier_writes(reads, writes, schedule)
    followed = earlier.apply_range(_earlier_writes(writes, writes, schedule))
    return earlier.subtract(followed).reverse()


def _earlier_writes(touched: isl.UnionMap, writes: isl.UnionMap, schedule: isl.UnionMap) -> isl.UnionMap:
    """From instances that touch places to the earlier writes of the same places."""
    now, then = (schedule.intersect_domain(some.domain()) for some in (touched, writes))
    return touched.apply_range(writes.reverse()).intersect(now.lex_gt_union_map(then))


@bounded()
def gathered(
    uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]], caller: Caller | None = None, number: int = 0
) -> isl.UnionMap:
    """Pairs (read instance, write instance) such that the write is part of the read's value, in sequential execution.

    Parts are the last plain write to the place before the read, and all accumulations since. The places of the caller's
    elements begin with `number`.
    """
    reads, writes, schedule = relations_of(uses, places, caller, number)
    earlier, again = (_earlier_writes(touched, writes, schedule) for touched in (reads, writes))
    written = [(int(s.get_tuple_name()[1:]), s) for s in _sets(writes.domain())]
    plain = [s for k, s in written if k == len(uses) or uses[k].leaf.accumulate is None]
    for piece in plain:
        over = earlier.intersect_range(piece.to_union_set())
        earlier = earlier.subtract(over.apply_range(again))
    return earlier


def _sets(union: isl.UnionSet) -> list[isl.Set]:
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return found


@bounded()
def last_writes(uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]]) -> isl.UnionSet:
    """The write instances whose values remain in memory at the end."""
    _, writes, schedule = relations_of(uses, places)
    return writes.domain().subtract(_earlier_writes(writes, writes, schedule).range())


@dataclass(frozen=True, slots=True)
class Uninitialised:
    """Is an element read that no earlier instance writes?"""

    uses: Sequence[Use]
    outside: int
    """Only instances in one iteration of so many outermost scopes, which all uses share, count as earlier."""
    operations: int | None
    """The budget of integer sets (`bounded`)."""

    def exact(self) -> tuple[Use, tuple[int, ...]] | None:
        """Such a read, with its iteration, by integer sets; None if there is none."""
        with bounded(self.operations):
            return _orphan(self.uses, self.outside)


def uninitialised(
    uses: Sequence[Use], outside: int = 0, operations: int | None = None
) -> tuple[Use, tuple[int, ...]] | None:
    """A read, with its iteration, of an element that no earlier instance writes; None if there is none.

    `outside` and `operations` as in `Uninitialised`. Raises Undecided.
    """
    return decided("initialised", Uninitialised(uses, outside, operations))


def _orphan(uses: Sequence[Use], outside: int) -> tuple[Use, tuple[int, ...]] | None:
    """The answer of `uninitialised` by integer sets, for all indices that callers give."""
    places = [(*(var(d) for d in range(outside)), *u.access.index) for u in uses]
    if any(_is_open(use) for use in uses):
        orphans = _may_lack(uses, places)
    else:
        orphans = relations_of(uses, places)[0].domain().subtract(flow(uses, places).range())
    orphans = within_sizes(orphans)
    if orphans.is_empty():
        return None
    point = orphans.sample_point()
    use = uses[int(point.to_set().get_tuple_name()[1:])]
    return use, coordinates(point)


def _is_open(use: Use) -> bool:
    """Whether entries that iterations choose decide if or where a use touches memory."""
    return unknown_places((*use.access.index, *use.leaf.guards))


def _may_lack(uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]]) -> isl.UnionSet:
    """The reads that touch, for some indices of callers, a place that no earlier write touches.

    Raises UnknownSize if writes at entries decide that.
    """
    timed, placed = _events(uses, places, None, 0, "R")
    reads, now = _union(placed, loose=True), _union(timed, loose=True)
    sure = [(use, place) for use, place in zip(uses, places, strict=True) if use.writes and not _is_open(use)]
    if sure:
        timed, placed = _events([use for use, _ in sure], [place for _, place in sure], None, 0, "W", length_of(uses))
        reads = reads.subtract(now.lex_gt_union_map(_union(timed)).apply_range(_union(placed)))
    if not within_sizes(reads).is_empty() and any(u.writes and not u.reads and _is_open(u) for u in uses):
        name = uses[0].access.array.name
        raise UnknownSize(f"only writes at indices that are known at run time may reach what is read of '{name}'")
    return reads.domain()


def relations_of(
    uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]], caller: Caller | None = None, number: int = 0
) -> tuple[isl.UnionMap, isl.UnionMap, isl.UnionMap]:
    """The relations from read and write instances to places, and from instances to times.

    The caller's events have the number after the last use's; they happen before and after everything else.
    """
    reads, placed_reads = _events(uses, places, caller, number, "R")
    writes, placed_writes = _events(uses, places, caller, number, "W")
    return _union(placed_reads), _union(placed_writes), _union([*reads, *writes])


def writes_of(
    uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]], caller: Caller | None = None, number: int = 0
) -> tuple[isl.UnionMap, isl.UnionMap]:
    """The relations of `relations_of` from write instances to places and to times."""
    timed, placed = _events(uses, places, caller, number, "W")
    return _union(placed), _union(timed)


def _events(
    uses: Sequence[Use],
    places: Sequence[tuple[int | Expr, ...]],
    caller: Caller | None,
    number: int,
    kind: str,
    length: int = 0,
) -> tuple[list[str], list[str]]:
    """The relations from instances that read ("R") or write ("W") to times of this length, and to places."""
    length = length or length_of(uses)
    timed: list[str] = []
    placed: list[str] = []

    def happens(position: int, names: Sequence[str], constraints: list[str], time: list[str], place: list[str]) -> None:
        instance, domain = f"{kind}{position}[{', '.join(names)}]", " and ".join(constraints) or "true"
        timed.append(f"{instance} -> [{', '.join(time)}] : {domain}")
        placed.append(f"{instance} -> P[{', '.join(place)}] : {domain}")

    if caller is not None and (kind == "R" or caller.writes):
        names = variables("i", caller.rank)
        time = [str(end_of(uses) if kind == "R" else -1), *["0"] * (length - 1)]
        happens(len(uses), names, place_constraints(caller.extents, names), time, [str(number), *names])
    for position, (use, place) in enumerate(zip(uses, places, strict=True)):
        if use.reads if kind == "R" else use.writes:
            names = variables("i", use.leaf.depth)
            cell = [str(p) if isinstance(p, int) else spell(p, names) for p in place]
            constraints = domain_constraints(use.leaf.extents, use.leaf.guards, names)
            happens(position, names, constraints, time_of(use.leaf, names, int(kind == "W"), length), cell)
    return timed, placed


def length_of(uses: Sequence[Use]) -> int:
    """The length of times."""
    return 2 * max(u.leaf.depth for u in uses) + 2


def end_of(uses: Sequence[Use]) -> int:
    """The first number of the time at which the caller reads."""
    return 1 + max(node_path(u.leaf)[0] for u in uses)


def _union(relations: Sequence[str], *, loose: bool = False) -> isl.UnionMap:
    import islpy as isl

    return read_set(isl.UnionMap, f"{{ {'; '.join(relations)} }}", loose=loose)


def time_of(leaf: Leaf, names: Sequence[str], step: int, length: int) -> list[str]:
    """The time of an instance: position, iteration ... position; then 0 for the reads and 1 for the write."""
    path = node_path(leaf)
    vector = [str(path[0])]
    for name, position in zip(names, path[1:], strict=True):
        vector += [name, str(position)]
    return vector + ["0"] * (length - 1 - len(vector)) + [str(step)]


def sampled(relation: isl.UnionMap) -> tuple[Instance, Instance]:
    """One pair of instances of a relation that is not empty: the numbers of their uses, and their iterations."""
    import islpy as isl

    pair = relation.sample()
    values = coordinates(pair.wrap().sample_point())
    start = pair.dim(isl.dim_type.in_)
    first, second = (int(pair.get_tuple_name(kind)[1:]) for kind in (isl.dim_type.in_, isl.dim_type.out))
    return (first, values[:start]), (second, values[start:])
