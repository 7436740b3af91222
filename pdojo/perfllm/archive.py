"""The best programs so far and the paths to them: states from which new episodes begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Generic, TypeVar

from pdojo.search.engine.restarts import taken_up

T = TypeVar("T")
WHOLE = 0.5
"""Probability that an episode begins at the end of a path, instead of at a random state on it."""


@dataclass(frozen=True)
class ArchivedPath(Generic[T]):
    """A program and a path to it."""

    cost: float
    fingerprint: str
    path: tuple[T, ...]
    """The steps to the program, in order; every prefix leads to a state."""


class Archive(Generic[T]):
    """The `capacity` cheapest different programs, the cheapest first.

    After `patience` programs in a row without a cheaper one the archive restarts, from nothing, or at every third
    restart from the cheapest program of each earlier period; with 0 it never restarts. Programs that cost `below` or
    more are not kept.
    """

    def __init__(self, capacity: int, patience: int = 0, below: float = inf) -> None:
        self._capacity = capacity
        self._patience = patience
        self._below = below
        self.elites: list[ArchivedPath[T]] = []
        self.champions: list[ArchivedPath[T]] = []
        """The cheapest program of each earlier period."""
        self.waited = 0
        """Number of programs in a row that were not cheaper than the cheapest one."""

    def tell(self, cost: float, fingerprint: str, path: Sequence[T]) -> bool:
        """Count a program, and keep it if it is among the cheapest; returns True if it is the cheapest."""
        best = self.elites[0].cost if self.elites else self._below
        if cost < self._below:
            self.add(cost, fingerprint, path)
        self.waited = 0 if cost < best else self.waited + 1
        if self._patience and self.waited >= self._patience and self.elites:
            self._begin_again()
        return cost < best

    def _begin_again(self) -> None:
        self.champions.append(self.elites[0])
        self.elites = sorted(taken_up(self.champions), key=lambda one: one.cost)[: self._capacity]
        self.waited = 0

    def add(self, cost: float, fingerprint: str, path: Sequence[T]) -> None:
        """Keep a program if it is among the cheapest; of two paths to one program, keep the shorter one."""
        known = next((one for one in self.elites if one.fingerprint == fingerprint), None)
        if known is not None:
            if len(known.path) <= len(path):
                return
            self.elites.remove(known)
        elif len(self.elites) == self._capacity and cost >= self.elites[-1].cost:
            return
        self.elites.append(ArchivedPath(cost, fingerprint, tuple(path)))
        # Of equal costs the earlier one comes first.
        self.elites.sort(key=lambda one: one.cost)
        del self.elites[self._capacity :]

    def drawn(self, count: int, random: Random) -> list[ArchivedPath[T]]:
        """`count` programs, or all if there are fewer; all sets are equally likely."""
        return random.sample(self.elites, min(count, len(self.elites)))

    def prefix(self, random: Random, whole: float = WHOLE) -> tuple[T, ...]:
        """The beginning of a path to a program: the n-th best is n times less likely than the best. () without
        programs.

        It is the whole path with probability `whole`.
        """
        if not self.elites:
            return ()
        weights = [1 / place for place in range(1, len(self.elites) + 1)]
        (elite,) = random.choices(self.elites, weights)
        if random.random() < whole:
            return elite.path
        return elite.path[: random.randrange(len(elite.path) + 1)]
