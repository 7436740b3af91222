"""Strategies whose batches several processes can make: the children of a batch are drawn together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from random import Random
from typing import TypeAlias

from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Listing, Neighbourhood, near_after
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import Parents, ProposalExecutor
from pdojo.search.engine.executor import LocalExecutor
from pdojo.search.strategies.proposed_set import ProposedSet
from pdojo.transforms.game import Game

Draw: TypeAlias = Parents | Callable[[], Proposal | None]
"""The parents of a proposal, or a function that proposes locally."""


class Around:
    """The nearest neighbours of a node, one by one; none if the neighbourhood lists none."""

    def __init__(self, node: Node, near: Neighbourhood, seed: int, evaluations: int, taken: int = 0) -> None:
        """Begin the list after so many evaluations: `seed` determines its order; the first `taken` are left out."""
        self.node = node
        self._near = near_after(near, evaluations)
        self._seed, self._evaluations, self._taken = seed, evaluations, taken
        self._listed: Iterator[Game] | None = None
        self.is_exhausted = not isinstance(near, Listing)

    @property
    def place(self) -> tuple[int, int, int]:
        """The seed, the evaluations before, and the number of neighbours taken."""
        return self._seed, self._evaluations, self._taken

    def next(self) -> Proposal | None:
        """The next neighbour; None if there are no more."""
        if self._listed is None and isinstance(self._near, Listing):
            self._listed = islice(self._near.nearest(self.node.game, Random(self._seed)), self._taken, None)
        self._taken += 1
        near = None if self._listed is None else next(self._listed, None)
        self.is_exhausted |= near is None
        return None if near is None else Proposal(near, self.node)


class BatchProposer:
    """Proposals from a strategy's draws. Known costs do not change within a batch, so the batch is drawn at once.

    Draws that were not asked for are dropped when costs are told.
    """

    def __init__(self, root: Node, near: Neighbourhood, draw: Callable[[], Draw], batch: int, tries: int) -> None:
        self.seen = ProposedSet(root)
        self.children: ProposalExecutor = LocalExecutor(near)
        self.batch = batch
        """Greatest number of draws at once."""
        self._draw, self._tries = draw, tries
        self._drawn: deque[Draw] = deque()
        self._made: Iterator[Game | None] = iter(())

    def ask(self) -> Proposal | None:
        """The first new proposal of some draws; see `ProposedSet.fresh`."""
        return self.seen.fresh(self._next, self._tries)

    def told(self, node: Node) -> None:
        """Mark a program as evaluated."""
        self._clear()
        self.seen.told(node)

    def forget(self, proposal: Proposal) -> None:
        """Withdraw a proposal; it may be proposed again."""
        self.seen.forget(proposal)

    def _next(self) -> Proposal | None:
        if not self._drawn:
            self._clear()
            self._drawn.extend(self._draw() for _ in range(max(1, self.batch - self.seen.asked)))
            orders = [one for one in self._drawn if isinstance(one, Parents)]
            self._made = self.children.of([replace(one, evaluations=self.seen.latest) for one in orders])
        drawn = self._drawn.popleft()
        if not isinstance(drawn, Parents):
            return drawn()
        made = next(self._made)
        return None if made is None else Proposal(made, drawn.first)

    def _clear(self) -> None:
        self._drawn.clear()
        self._made = iter(())


@dataclass(eq=False)
class BatchStrategy(ABC):
    """A strategy that draws the parents of its children."""

    batch: int = 8
    """Number of proposals before costs are told."""
    tries: int = 16
    """Greatest number of children drawn for one proposal."""

    @property
    def settings(self) -> JSON:
        """The arguments."""
        return asdict(self)

    def begin(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin a search."""
        self._neighbourhood, self._random = neighbourhood, random
        self._proposer = BatchProposer(root, neighbourhood, self._draw, self.batch, self.tries)

    def breed(self, children: ProposalExecutor) -> None:
        """Take children from an executor."""
        self._proposer.children = children

    def ask(self) -> Proposal | None:
        """A new child."""
        return self._proposer.ask()

    @abstractmethod
    def _draw(self) -> Draw:
        """The parents of the next child, or a function that proposes locally."""
