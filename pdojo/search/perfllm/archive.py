"""The best programs so far and the episodes that led to them: states from which new episodes begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")
WHOLE = 0.5
"""Probability that an episode begins at the end of another one, not in a random state on its way."""


@dataclass(frozen=True)
class Elite(Generic[T]):
    """A program and the way to it."""

    cost: float
    fingerprint: str
    path: tuple[T, ...]
    """What leads to it, in order; every prefix leads to a state."""


class Archive(Generic[T]):
    """The `capacity` cheapest different programs, the cheapest first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.elites: list[Elite[T]] = []

    def add(self, cost: float, fingerprint: str, path: Sequence[T]) -> None:
        """Keep a program if it is among the cheapest; of two ways to one program the shorter one."""
        known = next((one for one in self.elites if one.fingerprint == fingerprint), None)
        if known is not None:
            if len(known.path) <= len(path):
                return
            self.elites.remove(known)
        elif len(self.elites) == self._capacity and cost >= self.elites[-1].cost:
            return
        self.elites.append(Elite(cost, fingerprint, tuple(path)))
        # Of equal costs the earlier one comes first.
        self.elites.sort(key=lambda one: one.cost)
        del self.elites[self._capacity :]

    def prefix(self, random: Random) -> tuple[T, ...]:
        """The beginning of the path to a program: the n-th best is n times less likely. () without programs."""
        if not self.elites:
            return ()
        weights = [1 / place for place in range(1, len(self.elites) + 1)]
        (elite,) = random.choices(self.elites, weights)
        if random.random() < WHOLE:
            return elite.path
        return elite.path[: random.randrange(len(elite.path) + 1)]
