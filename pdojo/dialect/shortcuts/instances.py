"""Storage by instances: all reads and writes of a buffer are run through, or some that stand for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.affine import var
from pdojo.dialect.flow.flows import Caller
from pdojo.dialect.flow.points import Ints
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.storage_check import (
    StorageQuestion,
    crossing_reason,
    describe_pair,
    lost_reason,
    names_of,
    stale_reason,
)
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.reason import Reason
from pdojo.dialect.shortcuts.enumeration import Events, Outside, events_of
from pdojo.dialect.shortcuts.representatives import Representatives, representatives


def compared(question: StorageQuestion) -> Answer[Reason | None] | None:
    """The violation among all instances, if they are few."""
    return _compared(question, None)


def compared_few(question: StorageQuestion) -> Answer[Reason | None] | None:
    """The violation among representatives, if they are few."""
    caller = question.caller
    few = representatives(question.uses, None if caller is None else caller.extents)
    return None if few is None else _compared(question, few)


def _compared(question: StorageQuestion, only: Representatives | None) -> Answer[Reason | None] | None:
    caller = question.caller
    outside = None if caller is None else Outside(caller.greatest, caller.writes)
    events = events_of(question.uses, outside, only)
    found = None if events is None else compare_events(events, question.uses, question.owner, caller)
    return None if found is None else Answer(found.fault, "instances")


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer of `compare_events`."""

    fault: Reason | None


def compare_events(events: Events, uses: Sequence[Use], owner: int | None, caller: Caller | None) -> Compared | None:
    """`compare_flows` by enumeration of all events; None if their places cannot be numbered."""
    arrays = names_of(uses, caller)
    elements = [(arrays.index(u.access.array.name), *u.access.index) for u in uses]
    given = [var(d) for d in range(caller.rank)] if caller is not None else []
    number = arrays.index(caller.name) if caller is not None else 0
    in_elements = events.places(elements, (number, *given))
    in_cells = events.places([(0, *u.cell) for u in uses], (0, *given))
    if in_elements is None or in_cells is None:
        return None
    by_element, by_cell = events.sources(in_elements), events.sources(in_cells)
    name = uses[0].access.array.name

    def pair(sources: Ints, which: NDArray[np.bool_]) -> str:
        read = int(which.nonzero()[0][events.time[which].argmin()])
        return describe_pair((events.iteration(int(sources[read])), events.iteration(read)), uses, caller)

    gone = (by_element >= 0) & (by_element != by_cell)
    if gone.any():
        return Compared(lost_reason(name, pair(by_element, gone)))
    wrong = (by_cell >= 0) & (by_element != by_cell)
    if wrong.any():
        return Compared(stale_reason(name, pair(by_cell, wrong)))
    if owner is not None:
        around = events.iterations[: owner + 1]
        inside = (by_cell >= 0) & (events.use < len(uses)) & (events.use[by_cell] < len(uses))
        crossing = inside & (around != around[:, by_cell]).any(axis=0)
        if crossing.any():
            return Compared(crossing_reason(name, pair(by_cell, crossing)))
    return Compared(None)
