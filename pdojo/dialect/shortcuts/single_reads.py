"""Wrong sources of single reads: takes milliseconds, where relations of all reads take seconds and may not decide.

Most questions are settled by a small part of the integer sets' budget; single reads are examined if that is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow import integer_sets
from pdojo.dialect.flow.flows import Caller, Instance, end_of, length_of, time_of, writes_of
from pdojo.dialect.flow.integer_sets import bounded, coordinates, domain_constraints, read_set, variables
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.storage_check import StorageQuestion, describe_pair, elements_of, lost_reason, stale_reason
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.reason import Reason
from pdojo.errors import Undecided

if TYPE_CHECKING:
    import islpy as isl

EACH = 4
"""Most reads per use that are examined: its first one, its last one, and random ones."""
MOST = 64
"""Most reads of all uses together."""
TRIES = 16
"""Iterations drawn for one random read; guards may exclude them all."""


USUAL, HARD = 100, 10
"""Divisors of the operations budget for the first and the second try; most questions are settled by the first part.

The examination of single reads takes as long as the second part, which often settles nothing."""


def refuted(question: StorageQuestion) -> Answer[Reason | None] | None:
    """The exact answer within a part of the budget, or else a violation that a few reads show."""
    found = _settled(question, USUAL)
    if found is not None:
        return found
    with suppress(Undecided):
        if (fault := wrong_read(question.uses, question.caller)) is not None:
            return Answer(fault, "integer sets")
    return _settled(question, HARD)


def _settled(question: StorageQuestion, divisor: int) -> Answer[Reason | None] | None:
    """The exact answer within a part of the budget; None if that does not settle it."""
    with suppress(Undecided), bounded(integer_sets.OPERATIONS // divisor):
        return Answer(question.exact(), "integer sets")
    return None


def wrong_read(uses: Sequence[Use], caller: Caller | None = None) -> Reason | None:
    """A difference between the two flows that a few reads show; None proves nothing. Raises Undecided."""
    found = wrong_source(uses, *elements_of(uses, caller), caller)
    if found is None:
        return None
    pair, is_lost = found
    return (lost_reason if is_lost else stale_reason)(uses[0].access.array.name, describe_pair(pair, uses, caller))


class LastWrites:
    """Finds the last writes before a read."""

    def __init__(
        self, uses: Sequence[Use], places: Sequence[tuple[int | Expr, ...]], caller: Caller | None, number: int = 0
    ) -> None:
        self._uses, self._places, self._number = uses, places, number
        self._writes, self._schedule = writes_of(uses, places, caller, number)

    def of(self, read: int, iteration: Sequence[int]) -> isl.UnionSet:
        """The instances that last write the read's place before it; several if they write at one time.

        `read` is the number of a use, or of the caller after the last use.
        """
        import islpy as isl

        if read == len(self._uses):
            place = [self._number, *iteration]
            time = [str(end_of(self._uses)), *["0"] * (length_of(self._uses) - 1)]
        else:
            place = [p if isinstance(p, int) else p.evaluate(iteration) for p in self._places[read]]
            time = time_of(self._uses[read].leaf, [*map(str, iteration)], 0, length_of(self._uses))
        there = read_set(isl.UnionSet, f"{{ P[{', '.join(map(str, place))}] }}")
        now = read_set(isl.UnionSet, f"{{ [{', '.join(time)}] }}")
        touching = there.apply(self._writes.reverse())
        before = touching.apply(self._schedule).lex_lt_union_set(now).domain()
        return touching.intersect(self._schedule.intersect_range(_latest(before)).domain())


def _latest(times: isl.UnionSet) -> isl.UnionSet:
    """The latest of some times; empty if there are none.

    isl's own lexicographic maximum can take seconds; maximising one number after the other takes milliseconds.
    """
    import islpy as isl

    if times.is_empty():
        return times
    last = times.as_set()
    for position in range(last.dim(isl.dim_type.set)):
        last = last.fix_val(isl.dim_type.set, position, last.dim_max_val(position))
    return last.to_union_set()


@bounded()
def wrong_source(
    uses: Sequence[Use], elements: Sequence[tuple[int | Expr, ...]], number: int, caller: Caller | None
) -> tuple[tuple[Instance, Instance], bool] | None:
    """A (write, read) pair in exactly one of the two flows, over elements and over cells; None proves nothing.

    The flag tells whether that is the flow over elements, so that a value is lost. Only few reads are examined. The
    places of the caller's elements begin with `number`. Raises Undecided.
    """
    by_element = LastWrites(uses, elements, caller, number)
    by_cell = LastWrites(uses, [(0, *u.cell) for u in uses], caller)
    for name, iteration in _some_reads(uses, caller):
        wanted, found = by_element.of(name, iteration), by_cell.of(name, iteration)
        for is_lost, wrong in ((True, wanted.subtract(found)), (False, found.subtract(wanted))):
            if not wrong.is_empty():
                return (_written(wrong), (name, iteration)), is_lost
    return None


def _written(instances: isl.UnionSet) -> Instance:
    point = instances.sample_point()
    return int(point.to_set().get_tuple_name()[1:]), coordinates(point)


def _some_reads(uses: Sequence[Use], caller: Caller | None) -> Iterator[Instance]:
    """Some reads of each use, and of the caller at the end."""
    random = Random(0)
    domains = [(k, u.leaf.extents, u.leaf.guards) for k, u in enumerate(uses) if u.reads]
    if caller is not None:
        domains.append((len(uses), tuple([extent.evaluate(()) for extent in caller.extents]), ()))
    each = max(1, min(EACH, MOST // max(1, len(domains))))
    for number, extents, guards in domains:
        for iteration in _iterations(extents, guards, each, random):
            yield number, iteration


def _iterations(
    extents: Sequence[int], guards: Sequence[Expr], count: int, random: Random
) -> Iterator[tuple[int, ...]]:
    ends = _ends(extents, guards) if guards else [tuple(extent - 1 for extent in extents), (0,) * len(extents)]
    yield from ends[:count]
    if not ends:
        return
    for _ in range(count - 2):
        drawn = (tuple(random.randrange(extent) for extent in extents) for _ in range(TRIES))
        found = next((one for one in drawn if all(guard.evaluate(one) >= 0 for guard in guards)), None)
        if found is not None:
            yield found


def _ends(extents: Sequence[int], guards: Sequence[Expr]) -> list[tuple[int, ...]]:
    """The last and the first iteration; empty if there is none."""
    import islpy as isl

    names = variables("i", len(extents))
    domain = read_set(
        isl.Set, f"{{ [{', '.join(names)}] : {' and '.join(domain_constraints(extents, guards, names))} }}"
    )
    return [] if domain.is_empty() else [coordinates(end().sample_point()) for end in (domain.lexmax, domain.lexmin)]
