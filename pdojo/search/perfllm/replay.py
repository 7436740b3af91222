"""What the agent remembers: states visited, what was on offer there, and the rewards of what it did."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

STOP = 0
"""The number of the action that ends an episode; others are numbered by the offer, from 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """A state and the programs on offer in it, by fingerprint."""

    state: str
    offers: tuple[str, ...]
    """Action k leads to the program `offers[k - 1]`."""

    def after(self, action: int) -> str:
        """The program that an action leads to: stopping leads to the same one."""
        return self.state if action == STOP else self.offers[action - 1]


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """An action and what came of it."""

    visit: Visit
    action: int
    reward: float
    following: Visit | None
    """None if the episode ends with the action. The end of a horizon is no end."""


class Replay:
    """The latest transitions (paper 3.3; Mnih et al., 2013)."""

    def __init__(self, capacity: int) -> None:
        self._kept: deque[Transition] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, transition: Transition) -> None:
        """Keep a transition; the oldest goes if there are too many."""
        self._kept.append(transition)

    def sample(self, count: int, random: Random) -> Sequence[Transition]:
        """So many transitions, uniformly, with replacement."""
        return [self._kept[random.randrange(len(self._kept))] for _ in range(count)]

    def transitions(self) -> list[Transition]:
        """All transitions, the oldest first."""
        return list(self._kept)

    def in_use(self) -> set[str]:
        """The fingerprints of all programs that a transition names."""
        found: set[str] = set()
        for one in self._kept:
            for visit in (one.visit, *((one.following,) if one.following else ())):
                found.update((visit.state, *visit.offers))
        return found
