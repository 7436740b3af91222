"""The execution order of events, under one of the schedules that the mappings permit.

A schedule is a sequence of *steps*: an event and a part of it (`Part`). Usually the one part is the whole event. If
another thread can tear an accumulation apart (under `p`, and under `g` if no atomic operation does it), its store of
the new value is a step of its own. In blocks and warps (`b`, `w`) an accumulation of several threads is a reduction
tree, so that no other thread comes in between. In a streaming region (`s`) reads of the heap may happen as early as its
entry, writes as late as its end.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.semantics.oracle.instances import Instances
from pdojo.dialect.semantics.oracle.memory import number_iterations
from pdojo.dialect.view.nest import Access, Leaf, Node, Scope

Ints: TypeAlias = NDArray[np.int64]

_TEARING = (Mapping.PARALLEL, Mapping.GRID)


class EventPart(IntEnum):
    """The part of an event that a step performs. A step is `4 * event + part`."""

    RUN = 0
    """All actions that no other step of the event performs."""
    STORE = 1
    """Write the new value of a torn accumulation."""
    FETCH = 2
    """Read from the heap early."""
    DELIVER = 3
    """Write to the heap late."""


class Style(IntEnum):
    """Interleaving of the iterations of a threaded scope."""

    LOCKSTEP = 0
    """The k-th steps of all iterations at about the same time, in random order."""
    MERGED = 1
    """A random merge of the iterations."""
    PERMUTED = 2
    """One iteration after the other, in random order."""
    STAGGERED = 3
    """Random starts and speeds."""


def is_torn(leaf: Leaf) -> bool:
    """Whether another thread may write the accumulated cell between load and store (not if each thread has its own)."""
    mappings = {scope.mapping for scope in leaf.chain}
    if leaf.accumulate is None or mappings.isdisjoint(_TEARING):
        return False
    if Mapping.GRID not in mappings:
        return True
    return leaf.output.array.buffer.memory is Memory.HEAP and not _is_atomic(leaf)


def _is_atomic(leaf: Leaf) -> bool:
    """Whether graphics processors have an atomic operation for an accumulation.

    They have additions of numbers, and maxima, minima, `and` and `or` of integers, of 32 and 64 bits each.
    """
    assert leaf.accumulate is not None
    added = leaf.accumulate in ("arith.addf", "arith.addi")
    combined = leaf.accumulate.removeprefix("arith.") in ("maxsi", "maxui", "minsi", "minui", "andi", "ori")
    return (added or combined) and leaf.output.array.dtype[1:] in ("32", "64") and not leaf.contracted


def schedule(instances: Instances, seed: int | None) -> Ints:
    """The steps of the whole program in order. A seed of None runs every scope in order, as the meaning does."""
    return _Scheduler(instances, seed).run()


def is_streamed(access: Access, leaf: Leaf) -> bool:
    """Whether the access goes through a stream register and may happen earlier or later than the statement."""
    on_heap = access.array.buffer.memory is Memory.HEAP and "ordinary" not in access.hints.data
    return on_heap and any(s.mapping is Mapping.STREAM for s in leaf.chain)


class _Scheduler:
    def __init__(self, instances: Instances, seed: int | None) -> None:
        self.instances = instances
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.turn = 0
        self.events = dict(enumerate(self._events_by_leaf()))

    def _events_by_leaf(self) -> list[Ints]:
        bounds = np.searchsorted(self.instances.event_leaf, np.arange(len(self.instances.leaves) + 1))
        return [np.arange(a, b) for a, b in pairwise(bounds)]

    def run(self) -> Ints:
        return self._sequence(self.instances.nest.children)

    def _sequence(self, nodes: list[Node]) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *(self._node(node) for node in nodes)])

    def _node(self, node: Node) -> Ints:
        """The steps inside a node, in their order within one iteration of the enclosing scopes.

        Iterations of the enclosing scopes are in no particular order; these scopes sort them.
        """
        if isinstance(node, Leaf):
            events = 4 * self.events[node.order]
            parts = [EventPart.RUN] if self.seed is None else self._parts(node)
            return np.stack([events + part for part in parts], axis=1).ravel()
        steps = self._sequence(node.children)
        if self.seed is not None:
            if node.mapping is Mapping.VECTOR:
                return steps
            if node.mapping.is_threaded:
                return self._interleave(node, steps)
        steps = steps[np.argsort(self.instances.event_ivs[steps >> 2, node.depth], kind="stable")]
        return steps if self.seed is None or node.mapping is not Mapping.STREAM else self._streamed(steps)

    def _parts(self, leaf: Leaf) -> list[EventPart]:
        """The parts into which the adversary splits each event of a statement, in order."""
        streamed = [is_streamed(a, leaf) for a in leaf.accesses]
        if not any(streamed):
            return [EventPart.RUN, EventPart.STORE] if is_torn(leaf) else [EventPart.RUN]
        assert self.seed is not None
        # In every second schedule all streams are as early or late as possible, in the others only some.
        everything = self.seed % 2 == 0
        early = any(streamed[1:]) or (streamed[0] and leaf.accumulate is not None)
        parts = [EventPart.FETCH] if early and (everything or self.random.random() < 0.5) else []
        parts.append(EventPart.RUN)
        return [*parts, EventPart.DELIVER] if streamed[0] and (everything or self.random.random() < 0.5) else parts

    def _streamed(self, steps: Ints) -> Ints:
        """All early reads first, all late writes last; each stream keeps its order, and streams follow one another.

        In every second schedule the last stream in the text comes first; in the others the order is random.
        """
        assert self.seed is not None
        part = steps & 3
        late = steps[part == EventPart.DELIVER]
        count = len(self.instances.leaves)
        turn = np.arange(count)[::-1] if self.seed % 2 == 0 else self.random.permutation(count)
        late = late[np.argsort(turn[self.instances.event_leaf[late >> 2]], kind="stable")]
        return np.concatenate((steps[part == EventPart.FETCH], steps[part < EventPart.FETCH], late))

    def _interleave(self, scope: Scope, steps: Ints) -> Ints:
        """A merge of the iterations of a threaded scope, for each iteration of the enclosing scopes."""
        ivs = self.instances.event_ivs[steps >> 2]
        iteration = number_iterations(scope.chain, list(ivs.T))
        order = np.argsort(iteration, kind="stable")
        steps = steps[order]
        first = np.diff(iteration[order], prepend=-1) != 0
        times = self._times(np.cumsum(first) - 1, np.flatnonzero(first))
        if scope.mapping not in _TEARING:
            whole = steps[:-1] & 3 == EventPart.RUN
            stores = np.flatnonzero(whole & (steps[1:] == steps[:-1] + EventPart.STORE)) + 1
            times[stores] = times[stores - 1]
        return steps[np.argsort(times, kind="stable")]

    def _times(self, group: Ints, starts: Ints) -> NDArray[np.float64]:
        """A time for each step, ascending within each iteration (`group`); `starts` are iterations' first steps."""
        assert self.seed is not None
        style = Style((self.seed + self.turn) % len(Style))
        self.turn += 1
        count = len(group)
        if style is Style.LOCKSTEP:
            return np.arange(count) - starts[group] + self.random.random(count) * 0.999
        begin = self.random.random(len(starts))
        if style is Style.PERMUTED:
            return begin[group]
        times = self.random.random(count)
        times = times[np.lexsort((times, group))]
        if style is Style.MERGED:
            return times
        return begin[group] + times * self.random.random(len(starts))[group]
