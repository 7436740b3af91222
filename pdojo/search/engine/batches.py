"""Batches of proposals: evaluated, raced with the incumbent, logged, and told to the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pdojo.budget import Budget
from pdojo.search.contract.evaluation import Evaluation, Evaluator
from pdojo.search.contract.node import Node
from pdojo.search.contract.progress import Listener, Times
from pdojo.search.contract.strategy import Strategy
from pdojo.search.database import SearchMemory, StoredRun
from pdojo.search.engine.clock import Clock
from pdojo.search.engine.costs import Costs, IncumbentFailed
from pdojo.search.engine.incumbent import Incumbent
from pdojo.search.engine.incumbents import Incumbents
from pdojo.search.engine.record import Asked, SearchRecord
from pdojo.search.engine.reporting import progress
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace


class Batches:
    """The evaluated part of a search."""

    def __init__(
        self, game: Game, evaluator: Evaluator, strategy: Strategy, budget: Budget, memory: SearchMemory,
        log: StoredRun, listener: Listener | None,
    ) -> None:  # fmt: skip
        self.start, self.times, self.clock = game.fork(), Times(), Clock(budget, log)
        self.strategy, self.listener = strategy, listener
        self.costs = Costs(evaluator, memory, self.times, self.doing, log)
        self.incumbents = Incumbents(self.start, self.costs, memory)
        self.record = SearchRecord(game, log, self.times)
        self.incumbent = Incumbent(self.start, self.costs, self.incumbents, self.record)
        self.evaluated = 0
        """Number of finished evaluations; nodes are made when their batch is complete."""
        self.last = inf
        """Cost of the last program."""

    def run(self, asked: Sequence[Asked], *, aloud: bool = True) -> int:
        """Evaluate the new programs of a batch and tell all of it; returns the number of new programs.

        With `aloud` False, the log has the batch, and the strategy knows it.
        """
        before = len(self.record.known)
        self._tell(asked, self._evaluate(asked), aloud=aloud)
        return len(self.record.known) - before

    def settle(self) -> None:
        """Let the incumbent play its last match. If it fails, the incumbent before it plays its own, and so on."""
        while not self.incumbent.is_settled():
            pass

    def is_complete(self, asked: Sequence[Asked]) -> bool:
        """Whether the budget's seconds were enough for all programs of a batch."""
        return all(one.candidate.fingerprint in self.record.known for one in asked)

    def _evaluate(self, asked: Sequence[Asked]) -> dict[str, tuple[Evaluation, float]]:
        """Evaluations of the new programs and their times, as far as the budget's seconds allow."""
        new: dict[str, Asked] = {}
        for one in asked:
            if one.candidate.fingerprint not in self.record.known:
                new.setdefault(one.candidate.fingerprint, one)
        programs = [(one.candidate, one.trace) for one in new.values()]
        found: dict[str, tuple[Evaluation, float]] = {}
        while True:
            try:
                evaluations = self.costs.evaluate(programs, self.incumbent.entry)
                for fingerprint, evaluation in zip(new, evaluations, strict=True):
                    found[fingerprint] = evaluation, self.clock.time_of(self.evaluated, fingerprint)
                    self.evaluated += 1
                    self.last = evaluation.cost
                    self.doing("")
                    if self.clock.is_late():
                        break
            except IncumbentFailed as event:
                self.incumbent.fail(event.failure)
            else:
                return found

    def _tell(self, asked: Sequence[Asked], found: dict[str, tuple[Evaluation, float]], *, aloud: bool) -> None:
        """Race for the incumbent, log the batch and tell the strategy, in that order."""
        told: list[Node] = []
        new: list[tuple[Node, Asked]] = []
        others: list[tuple[str, Trace]] = []
        for one in asked:
            node = self.record.again(one)
            if node is not None:
                others.append((one.candidate.program.text, one.trace))
            elif one.candidate.fingerprint in found:
                node = self.record.add(one, *found[one.candidate.fingerprint])
                new.append((node, one))
            else:
                break
            told.append(node)
        self.incumbent.contest([(node, one.candidate) for node, one in new])
        if not aloud:
            return
        self.record.store(new, others)
        with self.times.of("propose"):
            for node in told:
                if node.parent is not None:
                    self.strategy.tell(node)

    def doing(self, what: str) -> None:
        """Tell the listener of the progress, and of the evaluator's work now."""
        if self.listener is not None:
            self.listener(progress(self, what))
