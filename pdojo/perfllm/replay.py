"""The agent's memory: visited states, their offers, and the rewards of chosen actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

STOP = 0
"""Number of the action that ends an episode; the offers are numbered from 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """A state and its offered programs, keyed by fingerprint."""

    state: str
    offers: tuple[str, ...]
    """Programs after the actions: action k leads to `offers[k - 1]`."""

    def after(self, action: int) -> str:
        """The program after an action; the stop leaves the program unchanged."""
        return self.state if action == STOP else self.offers[action - 1]


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedAction:
    """An action and its result."""

    visit: Visit
    action: int
    reward: float
    following: Visit | None
    """The next visit; None if the action ends the episode. The horizon does not end it in this sense."""


class Replay:
    """The latest transitions (paper 3.3; Mnih et al., 2013)."""

    def __init__(self, capacity: int) -> None:
        self._kept: deque[ReplayedAction] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, transition: ReplayedAction) -> None:
        """Add a transition; a full replay drops the oldest."""
        self._kept.append(transition)

    def sample(self, count: int, random: Random) -> Sequence[ReplayedAction]:
        """`count` transitions, drawn uniformly with replacement."""
        return [self._kept[random.randrange(len(self._kept))] for _ in range(count)]

    def transitions(self) -> list[ReplayedAction]:
        """All transitions, the oldest first."""
        return list(self._kept)

    def in_use(self) -> set[str]:
        """The fingerprints of all programs in transitions."""
        found: set[str] = set()
        for one in self._kept:
            for visit in (one.visit, *((one.following,) if one.following else ())):
                found.update((visit.state, *visit.offers))
        return found
