"""The search loop: propose, make, drop repetitions, evaluate, race, log, tell the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random

from pdojo.budget import Budget
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Proposal
from pdojo.search.contract.progress import Ending, SearchResult
from pdojo.search.contract.strategy import Breeder, ProposalExecutor, Strategy
from pdojo.search.engine.batches import Batches
from pdojo.search.engine.reporting import result
from pdojo.search.engine.resuming import Checkpoints
from pdojo.transforms.game import Game

STALE = 1000
"""A search ends after this many proposals in a row without a new program."""


class SearchLoop:
    """One search."""

    def __init__(self, batches: Batches, strategy: Strategy, budget: Budget) -> None:
        self.batches, self.strategy, self.budget = batches, strategy, budget
        self.record = batches.record
        self.checkpoints = Checkpoints(strategy, batches.start, batches.record)
        self.stale = 0
        """Number of proposals since the last new program."""

    def run(
        self, neighbourhood: Neighbourhood, makers: ProposalExecutor, random: Random, rivals: Sequence[Game]
    ) -> SearchResult:
        """Search. Raises KeyboardInterrupt if the root and the rivals were not evaluated."""
        state, batches = "failed", self.batches
        try:
            batches.run([Proposal(batches.start, None)])
            others = batches.incumbents.rated(rivals)
            try:
                self.strategy.start(self.record.root, neighbourhood, random)
                if isinstance(self.strategy, Breeder):
                    self.strategy.breed(makers)
                self._resume()
                ending = self._rounds(makers)
                batches.settle()
                known = batches.incumbents.best(others, batches.incumbent.own(), play=True)
                state = "finished"
            except KeyboardInterrupt:
                ending, state = Ending.INTERRUPTED, "interrupted"
                known = batches.incumbents.best(others, batches.incumbent.own(), play=False)
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            self.record.log.mark(state)
        return result(batches, ending, known)

    def _rounds(self, makers: ProposalExecutor) -> Ending:
        is_whole = False
        """True if the budget did not cut the last batch short: a longer run has it, too."""
        while (ending := self._over()) is None:
            asked, is_whole = self._propose(makers)
            if not asked:
                ending = Ending.EXHAUSTED
                break
            self.checkpoints.batches.append(self.batches.run(asked))
            is_whole &= self.batches.is_complete(asked)
            if is_whole and self.checkpoints.is_due():
                self.checkpoints.save(self.stale)
        if is_whole:
            self.checkpoints.save(self.stale)
        return ending

    def _over(self) -> Ending | None:
        if self.budget.evaluations is not None and self.batches.evaluated > self.budget.evaluations:
            return Ending.EVALUATIONS
        if self.batches.clock.is_late():
            return Ending.SECONDS
        return Ending.EXHAUSTED if self.stale >= STALE else None

    def _propose(self, makers: ProposalExecutor) -> tuple[list[Proposal], bool]:
        """A batch of proposals, and whether it is whole: it is cut short when its new programs use up the budget."""
        room = inf if self.budget.evaluations is None else self.budget.evaluations + 1 - self.batches.evaluated
        asked: list[Proposal] = []
        new: set[str] = set()
        is_whole = False
        with self.batches.times.of("propose"):
            while len(asked) < self.strategy.batch and len(new) < room:
                proposal = self.strategy.ask()
                if proposal is None:
                    is_whole = True
                    break
                asked.append(proposal)
                fingerprint = proposal.candidate.fingerprint
                is_new = fingerprint not in self.record.known and fingerprint not in new
                self.stale = 0 if is_new else self.stale + 1
                self.record.repeated += not is_new
                if is_new:
                    new.add(fingerprint)
                    self.batches.costs.expect(proposal.candidate)
            # Timed programs have the processors for themselves.
            makers.rest()
        return asked, is_whole or len(asked) == self.strategy.batch

    def _resume(self) -> None:
        """Go on from the last checkpoint: the log's batches are told to everyone but the strategy."""
        saved = self.checkpoints.saved()
        if saved is None:
            return
        for asked in self.checkpoints.logged(saved):
            self.checkpoints.batches.append(self.batches.run(asked, aloud=False))
            if not self.batches.is_complete(asked):
                # The time is up; the checkpoint is for a longer run.
                self.checkpoints.can_save = False
                return
            self.batches.doing("resuming")
        self.record.repeated, self.stale = saved.repeated, saved.stale
        self.checkpoints.restore(saved)
