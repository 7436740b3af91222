"""Races: pairs of events on one cell whose order a permitted schedule may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.semantics.oracle.flow_relations import describe_pair
from pdojo.dialect.semantics.oracle.relations import (
    Event,
    Kind,
    MemoryEvents,
    conjunction,
    depth_of,
    domain,
    sequential_time,
    spell,
    union_map,
)
from pdojo.dialect.semantics.oracle.schedule import is_torn
from pdojo.dialect.view.nest import Scope

_TREES = (Mapping.BLOCK, Mapping.WARP)
"""Mappings whose iterations accumulate into one cell by a reduction tree."""


def race(memory: MemoryEvents) -> str | None:
    """A race: events x, y, unordered, one of them writing, with cell(x) = cell(y); None if there is none."""
    pieces: list[str] = []
    for scope in memory.nest.scopes:
        inside = [e for e in memory.events if scope in e.leaf.chain]
        if scope.mapping.is_threaded:
            pieces += [p for x in inside for y in inside if (p := _threads_meet(scope, x, y)) is not None]
    for event in memory.of(Kind.WRITE, Kind.FOLD):
        pieces += _lanes_meet(event)
    meeting = union_map(pieces)
    if not meeting.is_empty():
        return f"race: {describe_pair(meeting, memory)}"
    return _stream_conflict(memory)


def _threads_meet(scope: Scope, x: Event, y: Event) -> str | None:
    """Pairs of instances on one cell, in different iterations of a threaded scope but equal iterations around it."""
    if Kind.READ is x.kind is y.kind:
        return None
    left, right = _names("a", x), _names("b", y)
    same = [f"a{s.depth} = b{s.depth}" for s in scope.chain[:-1] if s.mapping is not Mapping.VECTOR]
    related = [*same, f"a{scope.depth} != b{scope.depth}"]
    return _meet(x, left, y, right, related, elements_differ=_are_combined(scope, x, y))


def _are_combined(scope: Scope, x: Event, y: Event) -> bool:
    """Whether iterations of a threaded scope may accumulate into one cell: by a tree, or by atomic operations."""
    if x.kind is not Kind.FOLD or y.kind is not Kind.FOLD or x.fold != y.fold:
        return False
    return scope.mapping in _TREES or (scope.mapping is Mapping.GRID and not is_torn(x.leaf) and not is_torn(y.leaf))


def _lanes_meet(event: Event) -> list[str]:
    """Pairs of lanes of one vector that write one cell, except accumulations into one element (a reduction)."""
    lanes = [s.depth for s in event.leaf.chain if s.mapping is Mapping.VECTOR]
    if not lanes:
        return []
    left, right = _names("a", event), _names("b", event)
    same = [f"a{d} = b{d}" for d in range(event.leaf.depth) if d not in lanes]
    differ = " or ".join(f"a{d} != b{d}" for d in lanes)
    combined = event.kind is Kind.FOLD
    return [_meet(event, left, event, right, [*same, f"({differ})"], elements_differ=combined)]


def _meet(
    x: Event, left: Sequence[str], y: Event, right: Sequence[str], related: Sequence[str], *, elements_differ: bool
) -> str:
    constraints = [*domain(x.leaf, left), *domain(y.leaf, right), *related]
    constraints += [f"{spell(a, left)} = {spell(b, right)}" for a, b in zip(x.cell, y.cell, strict=True)]
    if elements_differ:
        pairs = zip(x.element, y.element, strict=True)
        constraints.append(f"({' or '.join(f'{spell(a, left)} != {spell(b, right)}' for a, b in pairs)})")
    return f"{x.instance(left)} -> {y.instance(right)} : {conjunction(constraints)}"


def _names(prefix: str, event: Event) -> list[str]:
    return [f"{prefix}{d}" for d in range(event.leaf.depth)]


def _stream_conflict(memory: MemoryEvents) -> str | None:
    """Find a conflict of a stream, whose reads may happen at the region's entry and whose writes at its end.

    There must be no write w before a read r in one run of the region with cell(w) = cell(r), and no two writes to one
    cell, if one of the two events belongs to a stream.
    """
    stale: list[str] = []
    unordered: list[str] = []
    for scope in memory.nest.scopes:
        if scope.mapping is Mapping.STREAM and memory.arrays[0].buffer.memory is Memory.HEAP:
            inside = [e for e in memory.events if scope in e.leaf.chain]
            pairs = [(x, y) for x, y in product(inside, inside) if _is_streamed(x) or _is_streamed(y)]
            stale += _within(scope, ((x, y) for x, y in pairs if _waits(x, y)))
            unordered += _within(
                scope, ((x, y) for x, y in pairs if Kind.READ not in (x.kind, y.kind) and x.leaf.order < y.leaf.order)
            )
    length = depth_of(memory)
    time = union_map(e.relation(sequential_time(e, length)) for e in memory.events)
    meeting = union_map(stale).intersect(time.lex_gt_union_map(time)).union(union_map(unordered))
    return None if meeting.is_empty() else f"race: in a stream, {describe_pair(meeting, memory)}"


def _is_streamed(event: Event) -> bool:
    return "ordinary" not in event.access.hints.data


def _waits(late: Event, early: Event) -> bool:
    return late.kind is not Kind.WRITE and early.kind is not Kind.READ


def _within(scope: Scope, pairs: Iterator[tuple[Event, Event]]) -> Iterator[str]:
    """The pairs of instances that touch one cell in one run of the scope."""
    same = [f"a{s.depth} = b{s.depth}" for s in scope.chain[:-1]]
    for x, y in pairs:
        yield _meet(x, _names("a", x), y, _names("b", y), same, elements_differ=False)
