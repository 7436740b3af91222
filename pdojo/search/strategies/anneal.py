"""Simulated annealing (paper 4.2.2): a walk that rarely accepts slower programs, and ever more rarely."""

from __future__ import annotations

from math import exp, inf, log
from random import Random

from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.node import Node, Proposal

LOWEST = 1e-300
"""Costs below are taken for this one: a logarithm needs more than nothing."""


class Anneal:
    """Metropolis' rule on the logarithm of a program's own runtime, under a temperature that falls geometrically.

    The walk goes to a program that takes r times as long with probability r ** (-1 / temperature), and always to a
    faster one. It never starts again.
    """

    name = "anneal"
    batch = 1

    def __init__(self, steps: int = 1000, hot: float = 0.3, cold: float = 0.01, tries: int = 16) -> None:
        self.steps = steps
        """New programs over which the temperature falls: the budget."""
        self.hot = hot
        """Temperature at first: at 0.3 twice the runtime is accepted one time in ten."""
        self.cold = cold
        """Temperature at last: at 0.01 a tenth more is accepted one time in ten thousand."""
        self.tries = tries

    @property
    def settings(self) -> JSON:
        """What was given."""
        return {"steps": self.steps, "hot": self.hot, "cold": self.cold, "tries": self.tries}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """The walk begins at the root."""
        self._neighbourhood = neighbourhood
        self._random = random
        self.current = root
        self._latest = root.number
        self._is_waiting = False

    def ask(self) -> Proposal | None:
        """A neighbour of the program where the walk is; one at a time."""
        if self._is_waiting:
            return None
        for _ in range(self.tries):
            near = self._neighbourhood.neighbour(self.current.dojo, self._random)
            if near is not None:
                self._is_waiting = True
                return Proposal(near, self.current)
        return None

    def tell(self, node: Node) -> None:
        """Go there, or stay."""
        self._is_waiting = False
        # Programs are numbered as they are evaluated; those known already cost nothing and do not cool.
        self._latest = max(self._latest, node.number)
        if self._random.random() < self.acceptance(node):
            self.current = node

    @property
    def temperature(self) -> float:
        """The temperature now."""
        return self.hot * (self.cold / self.hot) ** min(1.0, self._latest / max(1, self.steps))

    def acceptance(self, node: Node) -> float:
        """The probability of going to a program now."""
        if node.cost == inf:
            return 0.0
        if self.current.cost == inf:
            return 1.0
        slower = log(max(node.cost, LOWEST)) - log(max(self.current.cost, LOWEST))
        return 1.0 if slower <= 0 else exp(-slower / self.temperature)
