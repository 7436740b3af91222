"""The incumbent of one search: races that replace it, its failures, its last match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo.search.contract.evaluation import Candidate, Evaluation
from pdojo.search.contract.node import Node
from pdojo.search.contract.racing import Race
from pdojo.search.engine.costs import Costs, RaceEntry
from pdojo.search.engine.incumbents import IncumbentCandidate, Incumbents
from pdojo.search.engine.record import SearchRecord
from pdojo.transforms.game import Game


@dataclass(frozen=True)
class Best:
    """The incumbent of a search."""

    node: Node
    cost: float
    """The cost relative to the root's; `node.cost` is the cost that the strategy was told."""
    took: float
    """Its own measured time; equal to `cost` if costs are computed."""
    is_measured: bool = True
    """True if `cost` was computed, or measured in turns with the root."""
    match: Race | None = None
    """The match with the root; None for computed costs, and for the root."""


class Incumbent:
    """The incumbent of a search, and the ones before it."""

    def __init__(self, start: Game, costs: Costs, incumbents: Incumbents, record: SearchRecord) -> None:
        self.start, self.costs, self.incumbents, self.record = start, costs, incumbents, record
        self.best: Best | None = None
        self.beaten: list[Best] = []
        """Earlier incumbents, the latest last."""

    @property
    def cost(self) -> float:
        """Cost of the incumbent; infinite without one."""
        return inf if self.best is None else self.best.cost

    @property
    def entry(self) -> RaceEntry | None:
        """The incumbent as others race with it; None without one."""
        return None if self.best is None else RaceEntry(Candidate.of(self.best.node.game), self.best.node.cost)

    def own(self) -> IncumbentCandidate | None:
        """The incumbent as a candidate for all searches; None without one."""
        if self.best is None:
            return None
        beside = (self.start.text, self.record.root.cost / self.best.cost) if self.best.is_measured else None
        return IncumbentCandidate(self.best.node.game, self.best.took, beside)

    def contest(self, new: Sequence[tuple[Node, Candidate]]) -> None:
        """Make the first program that beats the incumbent, and is right on fresh inputs, the incumbent.

        A program that loses to the root has won its races by luck.
        """
        by_fingerprint = {node.fingerprint: (node, candidate) for node, candidate in new if node.evaluation.is_ok}
        rivals = [RaceEntry(candidate, node.cost) for node, candidate in by_fingerprint.values()]
        for fingerprint in self.costs.better(rivals, self.entry):
            node, candidate = by_fingerprint[fingerprint]
            found = self.costs.match(candidate, Candidate.of(self.start))
            if not found.evaluation.is_ok:
                self.record.fail(node, found.evaluation)
            elif not found.lost:
                self._crown(self._matched(node, found))
                return

    def _matched(self, node: Node, found: Race) -> Best:
        """An incumbent with the cost of its match with the root; with the cost that was told if the root failed."""
        took = found.evaluation.cost if self.costs.is_timed else node.cost
        root = self.record.root
        if not self.costs.is_timed or node is root:
            return Best(node, node.cost, took)
        if found.ratio is None or not root.evaluation.is_ok:
            return Best(node, node.cost, took, is_measured=False)
        return Best(node, found.ratio * root.cost, took, match=found)

    def _crown(self, best: Best) -> None:
        before = self.own()
        self.beaten += [] if self.best is None else [self.best]
        self.best = best
        self.incumbents.replace(self.own(), before)
        self.record.bests[best.node.number] = best.cost

    def fail(self, failure: Evaluation) -> None:
        """Log that the incumbent failed; the search goes on with the one before it."""
        assert self.best is not None
        self.record.fail(self.best.node, failure)
        self.record.amend([self.best.node])
        self.best = self.beaten.pop() if self.beaten else None

    def is_settled(self) -> bool:
        """Play the last match of the incumbent; False if it failed, and another one is the incumbent."""
        entry = self.entry
        if entry is None:
            return True
        failure = self.costs.failure(entry.candidate)
        if failure is None:
            found = self.costs.match(entry.candidate, Candidate.of(self.start), is_last=True)
            if found.evaluation.is_ok:
                self._settle(found)
                return True
            failure = found.evaluation
        self.fail(failure)
        return False

    def _settle(self, found: Race) -> None:
        """Apply the last match of the incumbent: the root is the result unless the median of pairs is slower."""
        assert self.best is not None
        root, bests = self.record.root, self.record.bests
        if found.ratio is None or self.best.node is root:
            return
        self.best = self._matched(self.best.node, found)
        bests[self.best.node.number] = self.cost
        first = self.beaten[0] if self.beaten else None
        if first is not None and first.node is root and found.ratio >= 1:
            lost = [each.node for each in (*self.beaten[1:], self.best)]
            self.best, self.beaten = first, []
            for node in lost:
                del bests[node.number]
            self.record.amend(lost)
