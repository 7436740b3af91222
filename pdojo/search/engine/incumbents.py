"""The incumbent of a problem, over all searches in a database and programs from files. Only a race replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.search.contract.dojo import Dojo
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.progress import KnownBest
from pdojo.search.database import SearchMemory
from pdojo.search.engine.costs import Costs, RaceEntry


@dataclass(frozen=True)
class IncumbentCandidate:
    """A candidate for the incumbent."""

    dojo: Dojo
    cost: float
    """The last measured cost of the program."""
    beside: tuple[str, float] | None = None
    """The text of its search's starting program, and the speed-up over it."""

    @property
    def rival(self) -> RaceEntry:
        """The candidate as an entry of a race."""
        return RaceEntry(Candidate.of(self.dojo), self.cost)


class Incumbents:
    """Reads and replaces the incumbent of a problem."""

    def __init__(self, start: Dojo, costs: Costs, memory: SearchMemory) -> None:
        self._start = start
        self._costs = costs
        self._memory = memory

    def rated(self, dojos: Sequence[Dojo]) -> list[IncumbentCandidate]:
        """Programs from files with their costs; programs that fail are left out."""
        found: list[IncumbentCandidate] = []
        for dojo in dojos:
            candidate = Candidate.of(dojo)
            (evaluation,) = self._costs.evaluate([(candidate, dojo.trace)], None)
            if evaluation.is_ok and self._costs.match(candidate, None).evaluation.is_ok:
                found.append(IncumbentCandidate(dojo, evaluation.cost))
        return found

    def replace(self, one: IncumbentCandidate | None, before: IncumbentCandidate | None) -> None:
        """Make the program `one` the incumbent if there is none, or if it has just beaten the incumbent `before`.

        An earlier incumbent never returns: a resumed run repeats races that other searches have overtaken.
        """
        if one is not None:
            self._keep(one, "" if before is None else before.dojo.fingerprint, once=True)

    def best(
        self, others: Sequence[IncumbentCandidate], own: IncumbentCandidate | None, *, play: bool
    ) -> KnownBest | None:
        """The best of the programs `others`, the stored incumbent and a search's own best; failed ones do not count.

        Each must beat the best before it. With `play`, missing matches are played. A program that beats the incumbent
        replaces it.
        """
        held, name = self._held()
        best: IncumbentCandidate | None = None
        for one in (each for each in (*others, held, own) if each is not None):
            if self._costs.failure(one.rival.candidate) is not None:
                continue
            is_same = best is not None and one.dojo.fingerprint == best.dojo.fingerprint
            if best is None or is_same or self._costs.beats(one.rival, best.rival, play=play):
                best = one
        if best is None:
            return None
        if held is None:
            is_incumbent = play
        else:
            is_same = best.dojo.fingerprint == held.dojo.fingerprint
            is_incumbent = best is not held if is_same else self._costs.beats(best.rival, held.rival, play=play)
        if is_incumbent:
            self._keep(best, name)
        return KnownBest(best.dojo, best.cost, is_own=best is own)

    def _held(self) -> tuple[IncumbentCandidate | None, str]:
        """The incumbent and its fingerprint; None if its moves do not replay, '' if there is no incumbent."""
        found = self._memory.best()
        if found is None:
            return None, ""
        dojo = self._start.fork()
        if dojo.become(step.resolved for step in found.trace.steps) or dojo.fingerprint != found.fingerprint:
            return None, found.fingerprint
        return IncumbentCandidate(dojo, found.cost), found.fingerprint

    def _keep(self, one: IncumbentCandidate, over: str, *, once: bool = False) -> None:
        timed = self._costs.is_timed
        beside = one.beside if timed else None
        trace, text = one.dojo.trace, one.dojo.text
        self._memory.keep_incumbent(trace, text, one.cost, timed=timed, over=over, once=once, beside=beside)
