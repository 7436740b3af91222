"""Global sampling over all programs encountered (paper 4.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.engine.executor import Parents, ProposalExecutor, seed_of
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.strategies.batch_proposer import BatchProposer
from pdojo.search.strategies.states import dump, load

LOWEST = 1e-30
"""Least cost: smaller ones count as this one, as 0 has no reciprocal."""


class Sample:
    """Draw an evaluated program, more often a fast one, then one of its new neighbours.

    A candidate's cost is its parent's runtime, so that children of slow programs take no time. The probability of a
    parent is proportional to (1 / runtime) ** power. Failed programs are no parents.
    """

    name = "sample"

    def __init__(self, batch: int = 8, power: float = 1.0, tries: int = 16) -> None:
        self.batch = batch
        self.power = power
        self.tries = tries
        """Greatest number of neighbours drawn for one proposal."""

    @property
    def settings(self) -> JSON:
        """The arguments."""
        return {"batch": self.batch, "power": self.power, "tries": self.tries}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Make the root the only parent."""
        self._random = random
        self._brood = BatchProposer(root, neighbourhood, self._draw, self.batch, self.tries)
        self._root = root
        self.parents: list[Node] = []
        self._told = {root.number}
        self._add(root)

    def draw_at_once(self, count: int) -> None:
        """Limit the number of proposals drawn at once; the default is the size of a batch."""
        self._brood.batch = count

    def breed(self, children: ProposalExecutor) -> None:
        """Take children from an executor."""
        self._brood.children = children

    def ask(self) -> Proposal | None:
        """A neighbour of a randomly drawn parent."""
        return self._brood.ask()

    def tell(self, node: Node) -> None:
        """Make the program a parent unless it failed."""
        self._brood.told(node)
        if node.number not in self._told:
            self._told.add(node.number)
            self._add(node)

    def save(self) -> bytes:
        """The parents."""
        state = {"parents": [node.number for node in self.parents], "drawn at once": self._brood.batch}
        return dump(state, self._random)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        self._brood.seen.restore(nodes.values())
        self._told |= set(nodes)
        self.parents = [nodes[number] for number in state["parents"]]
        self.draw_at_once(state["drawn at once"])

    def forget(self, proposal: Proposal) -> None:
        """Withdraw a proposal; it may be proposed again."""
        self._brood.forget(proposal)

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
