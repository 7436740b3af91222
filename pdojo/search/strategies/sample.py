"""Global sampling over all programs encountered (paper 4.2.2)."""

from __future__ import annotations

from random import Random

from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.node import Node, Proposal
from pdojo.search.strategies.seen import Seen

LOWEST = 1e-30
"""Costs below are taken for this one: nothing has no reciprocal."""


class Sample:
    """Draw a program that was evaluated, fast ones more often, then one of its neighbours that was not.

    A candidate's cost is the runtime of its parent, so that no time goes into the children of slow programs. The
    probability of a parent is proportional to (1 / runtime) ** power. Failed programs are no parents.
    """

    name = "sample"

    def __init__(self, batch: int = 8, power: float = 1.0, tries: int = 16) -> None:
        self.batch = batch
        self.power = power
        self.tries = tries
        """Neighbours that are drawn until one is new."""

    @property
    def settings(self) -> JSON:
        """What was given."""
        return {"batch": self.batch, "power": self.power, "tries": self.tries}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """The root is the only parent."""
        self._neighbourhood = neighbourhood
        self._random = random
        self._seen = Seen(root)
        self._root = root
        self.parents: list[Node] = []
        self._told = {root.number}
        self._add(root)

    def ask(self) -> Proposal | None:
        """A neighbour of a parent that was drawn."""
        return self._seen.fresh(self._draw, self.tries)

    def tell(self, node: Node) -> None:
        """A program that did not fail is a parent from now on."""
        self._seen.told(node)
        if node.number not in self._told:
            self._told.add(node.number)
            self._add(node)

    def forget(self, proposal: Proposal) -> None:
        """A proposal is not evaluated after all; it may be proposed again."""
        self._seen.forget(proposal)

    def weights(self) -> list[float]:
        """The relative probability of each parent, in order of `parents`."""
        return [max(node.cost, LOWEST) ** -self.power if node.evaluation.is_ok else 0.0 for node in self.parents]

    def _add(self, node: Node) -> None:
        if node.evaluation.is_ok:
            self.parents.append(node)

    def _draw(self) -> Proposal | None:
        """Where everything failed so far, the root is the parent."""
        weights = self.weights()
        (parent,) = self._random.choices(self.parents, weights) if any(weights) else [self._root]
        near = self._neighbourhood.neighbour(parent.dojo, self._random)
        return None if near is None else Proposal(near, parent)
