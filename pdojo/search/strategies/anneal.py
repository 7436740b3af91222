"""Simulated annealing (paper 4.2.2): a walk that accepts slower programs ever more rarely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, inf, log
from random import Random

from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Neighbourhood, near_after
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import StrategyKind
from pdojo.search.strategies.states import NodeTable, dump, load, nodes_of

LOWEST = 1e-300
"""Least cost: smaller ones count as this one, as the logarithm of 0 is infinite."""


@dataclass(eq=False)
class Anneal:
    """Metropolis' rule on the logarithm of a program's own runtime, under a geometrically falling temperature.

    The walk always accepts a faster program, and one that takes r times as long with probability
    r ** (-1 / temperature). It never restarts.
    """

    name = "anneal"
    batch = 1

    steps: int = 1000
    """Number of new programs over which the temperature falls: the budget."""
    hot: float = 0.3
    """First temperature: 0.3 accepts twice the runtime one time in ten."""
    cold: float = 0.01
    """Last temperature: 0.01 accepts a tenth more one time in ten thousand."""
    tries: int = 16

    @property
    def settings(self) -> JSON:
        """The arguments."""
        return asdict(self)

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin the walk at the root."""
        self._neighbourhood = neighbourhood
        self._random = random
        self.current = root
        self._latest = root.number
        self._is_waiting = False

    def ask(self) -> Proposal | None:
        """A neighbour of the current program, one at a time."""
        if self._is_waiting:
            return None
        around = near_after(self._neighbourhood, self._latest)
        for _ in range(self.tries):
            near = around.neighbour(self.current.game, self._random)
            if near is not None:
                self._is_waiting = True
                return Proposal(near, self.current)
        return None

    def tell(self, node: Node) -> None:
        """Accept the program, or stay."""
        self._is_waiting = False
        # Only new programs get new numbers; known ones cost nothing and do not cool.
        self._latest = max(self._latest, node.number)
        if self._random.random() < self.acceptance(node):
            self.current = node

    def save(self) -> bytes:
        """The current program. Valid while no proposal waits for `tell`."""
        assert not self._is_waiting
        table = NodeTable()
        state = {"current": table.index(self.current), "latest": self._latest}
        return dump({**state, "nodes": table.rows}, self._random)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        self.current = nodes_of(state["nodes"], nodes)[state["current"]]
        self._latest = state["latest"]

    @property
    def temperature(self) -> float:
        """The current temperature."""
        return self.hot * (self.cold / self.hot) ** min(1.0, self._latest / max(1, self.steps))

    def acceptance(self, node: Node) -> float:
        """The probability of accepting a program at the current temperature."""
        if node.cost == inf:
            return 0.0
        if self.current.cost == inf:
            return 1.0
        slower = log(max(node.cost, LOWEST)) - log(max(self.current.cost, LOWEST))
        return 1.0 if slower <= 0 else exp(-slower / self.temperature)


STRATEGY = StrategyKind(lambda steps, _options: Anneal(steps))
