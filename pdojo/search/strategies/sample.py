"""Global sampling over all programs encountered (paper 4.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import Parents, StrategyKind
from pdojo.search.engine.executor import seed_of
from pdojo.search.strategies.batch_proposer import BatchStrategy
from pdojo.search.strategies.states import dump, load

LOWEST = 1e-30
"""Least cost: smaller ones count as this one, as 0 has no reciprocal."""


@dataclass(eq=False)
class Sample(BatchStrategy):
    """Draw an evaluated program, more often a fast one, then one of its new neighbours.

    A candidate's cost is its parent's runtime, so that children of slow programs take no time. The probability of a
    parent is proportional to (1 / runtime) ** power. Failed programs are no parents.
    """

    name = "sample"

    power: float = 1.0

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Make the root the only parent."""
        self.begin(root, neighbourhood, random)
        self._root = root
        self.parents: list[Node] = []
        self._told = {root.number}
        self._add(root)

    def draw_at_once(self, count: int) -> None:
        """Limit the number of proposals drawn at once; the default is the size of a batch."""
        self._proposer.batch = count

    def tell(self, node: Node) -> None:
        """Make the program a parent unless it failed."""
        self._proposer.told(node)
        if node.number not in self._told:
            self._told.add(node.number)
            self._add(node)

    def save(self) -> bytes:
        """The parents."""
        state = {"parents": [node.number for node in self.parents], "drawn at once": self._proposer.batch}
        return dump(state, self._random)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        self._proposer.seen.restore(nodes.values())
        self._told |= set(nodes)
        self.parents = [nodes[number] for number in state["parents"]]
        self.draw_at_once(state["drawn at once"])

    def forget(self, proposal: Proposal) -> None:
        """Withdraw a proposal; it may be proposed again."""
        self._proposer.forget(proposal)

    def weights(self) -> list[float]:
        """The relative probability of each parent, in order of `parents`."""
        return [max(node.cost, LOWEST) ** -self.power if node.evaluation.is_ok else 0.0 for node in self.parents]

    def _add(self, node: Node) -> None:
        if node.evaluation.is_ok:
            self.parents.append(node)

    def _draw(self) -> Parents:
        """A random parent; the root if every program failed."""
        weights = self.weights()
        (parent,) = self._random.choices(self.parents, weights) if any(weights) else [self._root]
        return Parents(parent, None, seed_of(self._random))


STRATEGY = StrategyKind(lambda _steps, _options: Sample())
