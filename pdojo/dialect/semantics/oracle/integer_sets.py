"""The integer-set oracle: schedules and storage judged by relations over all instances, at any size.

A program is valid if (1) events that a permitted schedule may reorder do not touch one cell, unless they are
accumulations that the mapping combines; and (2) run in order, with vector lanes in lock step, every read gets the same
value over *cells* as over *elements*. Then every permitted schedule computes the meaning of any values.

Two programs are compared by their instances, identified by the elements they access. Both must have the same instances,
and each read must get its value from the same writes, run in order over elements. Accumulations of one function
commute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pdojo.dialect.affine import const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.integer_sets import Undecided, limited
from pdojo.dialect.semantics.oracle.compare import Program, as_nest
from pdojo.dialect.semantics.oracle.flow_relations import Flow, describe_pair
from pdojo.dialect.semantics.oracle.instance_keys import InstanceMatch, Keys, keys_of
from pdojo.dialect.semantics.oracle.race_relations import race
from pdojo.dialect.semantics.oracle.relations import MemoryEvents, context, lockstep_time, memories, sequential_time
from pdojo.dialect.view.nest import Nest

if TYPE_CHECKING:
    import islpy as isl


OPERATIONS = 1_000_000
"""isl's operation budget for one judgement: some seconds."""


@dataclass(frozen=True)
class Judgement:
    """The result of the oracle."""

    fault: str | None
    """The violated rule, in words; None if there is none."""
    checked: tuple[str, ...]
    """`races`, `storage`, and `instances` and `flow` if before and after can be compared."""
    open: tuple[str, ...] = ()
    """The open questions, in words; empty if there is a fault."""


class IntegerSetOracle:
    """Judge of programs by integer sets, against a reference program; no instance is enumerated.

    `operations` limits the work of one judgement; a judgement that exceeds it lists its open questions.
    """

    def __init__(self, program: Program, operations: int = OPERATIONS) -> None:
        self.nest = as_nest(program)
        self.operations = operations

    def judge(self, program: Program, *, compare: bool = True) -> Judgement:
        """The validity of a program, and a comparison of its instances and flow with the reference program's.

        Only validity is judged if statements or shapes of arrays differ, or with `compare=False`, which is needed
        after a move that changes the layout of an array with equal extents.
        """
        nest = as_nest(program)

        def found(checked: list[str]) -> str | None:
            return _validity(nest, checked) or (self._compare(nest, checked) if compare else None)

        return _limited(self.operations, found)

    def _compare(self, nest: Nest, checked: list[str]) -> str | None:
        keys = keys_of(self.nest, nest)
        if keys is None:
            return None
        match = InstanceMatch(*keys)
        checked.append("instances")
        fault = match.missing()
        if fault is None:
            checked.append("flow")
            fault = _same_flow(match)
        return fault


def valid_by_sets(program: Program, operations: int = OPERATIONS) -> Judgement:
    """Whether the memory and mappings of one program keep its meaning under every permitted schedule."""
    nest = as_nest(program)
    return _limited(operations, lambda found: _validity(nest, found))


def _limited(operations: int, judge: Callable[[list[str]], str | None]) -> Judgement:
    checked: list[str] = []
    try:
        with limited(context(), operations):
            return Judgement(judge(checked), tuple(checked))
    except Undecided:
        return Judgement(None, tuple(checked[:-1]), (f"{checked[-1]}: more than {operations} isl operations",))


# Validity of one program


def _validity(nest: Nest, checked: list[str]) -> str | None:
    parts = [memory for memory in memories(nest) if memory.is_written]
    checked.append("races")
    for memory in parts:
        fault = race(memory)
        if fault is not None:
            return fault
    checked.append("storage")
    for memory in parts:
        fault = _storage(memory)
        if fault is not None:
            return fault
    return None


def _storage(memory: MemoryEvents) -> str | None:
    """Check that every read gets the same value over cells, with lanes in lock step, as over elements in order."""
    vectors = any(s.mapping is Mapping.VECTOR for e in memory.events for s in e.leaf.chain)
    if memory.is_plain and not vectors:
        return None
    wanted = Flow(memory, lambda event: event.element, sequential_time, cells=False)
    found = Flow(memory, lambda event: event.cell, lockstep_time, cells=True)
    for one, other, what in ((wanted, found, "a value is lost"), (found, wanted, "a wrong value is read")):
        for left, right in ((one.values, other.values), (one.order, other.order)):
            difference = left.subtract(right)
            if not difference.is_empty():
                return f"storage: {what}: {describe_pair(difference, memory)}"
    return None


# Before and after


def _same_flow(match: InstanceMatch) -> str | None:
    """Check that every read gets its value from the same instances in both programs."""
    left, right = _flows(match.before), _flows(match.after)
    for name in left.keys() | right.keys():
        for one, two in zip(left[name], right[name], strict=True):
            for source, sink, when in match.differences(one, two):
                difference = source.subtract(sink)
                if not difference.is_empty():
                    return f"flow: only {when} the move, a value of '{name}' goes {difference.sample()}"
    return None


def _flows(keys: Keys) -> dict[str, tuple[isl.UnionMap, isl.UnionMap]]:
    """Per array that is written, the flow of its values between instances, and the order of its accumulations."""
    found: dict[str, tuple[isl.UnionMap, isl.UnionMap]] = {}
    for memory in memories(keys.nest):
        for array in memory.arrays:
            events = tuple(e for e in memory.events if e.access.array is array)
            part = replace(memory, arrays=(array,), events=events, copy_depth=-1)
            if part.is_written:
                flow = Flow(part, lambda event: (const(0), *event.access.index), sequential_time, cells=False)
                found[array.name] = flow.values, flow.order
    return found
