"""The order in which events execute, under one of the schedules that the mappings permit.

A schedule is a sequence of *steps*. Step `2 * event` is the event; where an accumulation can be torn apart by another
thread (under `p` and `g`), it is the event's load of the old value and step `2 * event + 1` its store. In blocks and
warps (`b`, `w`) an accumulation of several threads is a reduction tree, so that no other thread comes in between.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.nest import Leaf, Node, Scope
from pdojo.dialect.oracle.instances import Instances
from pdojo.dialect.oracle.memory import number_iterations

Ints: TypeAlias = NDArray[np.int64]

_TEARING = (Mapping.PARALLEL, Mapping.GRID)


class Style(IntEnum):
    """How the iterations of a threaded scope are interleaved."""

    LOCKSTEP = 0
    """The k-th steps of all iterations at about the same time, in random order."""
    MERGED = 1
    """A random merge of the iterations."""
    PERMUTED = 2
    """One iteration after the other, in random order."""
    STAGGERED = 3
    """Random starts and speeds."""


def is_torn(leaf: Leaf) -> bool:
    """Whether another thread may write the accumulated cell between load and store."""
    return leaf.accumulate is not None and any(s.mapping in _TEARING for s in leaf.chain)


def schedule(instances: Instances, seed: int | None) -> Ints:
    """The steps of the whole program in order; None runs every scope in order, as the meaning does."""
    return _Scheduler(instances, seed).run()


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
        """The steps inside a node, ordered as they run for any one iteration of the enclosing scopes.

        Steps of different iterations of the enclosing scopes come in no particular order: those scopes sort them.
        """
        if isinstance(node, Leaf):
            events = self.events[node.order]
            if self.seed is not None and is_torn(node):
                return np.stack((2 * events, 2 * events + 1), axis=1).ravel()
            return 2 * events
        steps = self._sequence(node.children)
        if self.seed is not None:
            if node.mapping is Mapping.VECTOR:
                return steps
            if node.mapping.is_threaded:
                return self._interleave(node, steps)
        return steps[np.argsort(self.instances.event_ivs[steps >> 1, node.depth], kind="stable")]

    def _interleave(self, scope: Scope, steps: Ints) -> Ints:
        """A merge of the iterations of a threaded scope, for each iteration of the enclosing scopes."""
        ivs = self.instances.event_ivs[steps >> 1]
        iteration = number_iterations(scope.chain, list(ivs.T))
        order = np.argsort(iteration, kind="stable")
        steps = steps[order]
        first = np.diff(iteration[order], prepend=-1) != 0
        times = self._times(np.cumsum(first) - 1, np.flatnonzero(first))
        if scope.mapping not in _TEARING:
            stores = np.flatnonzero(steps[1:] == (steps[:-1] | 1)) + 1
            times[stores] = times[stores - 1]
        return steps[np.argsort(times, kind="stable")]

    def _times(self, group: Ints, starts: Ints) -> NDArray[np.float64]:
        """A time for each step, ascending within each iteration (`group`), whose first steps are at `starts`."""
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
