"""The incumbent of a problem, over all searches in a database and programs from files. Only a race replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.progress import KnownBest
from pdojo.search.database import SearchMemory
from pdojo.search.engine.costs import Costs, RaceEntry
from pdojo.transforms.game import Game


@dataclass(frozen=True)
class IncumbentCandidate:
    """A candidate for the incumbent."""

    game: Game
    cost: float
    """The last measured cost of the program."""
    beside: tuple[str, float] | None = None
    """The text of its search's starting program, and the speed-up over it."""

    @property
    def rival(self) -> RaceEntry:
        """The candidate as an entry of a race."""
        return RaceEntry(Candidate.of(self.game), self.cost)


class Incumbents:
    """Reads and replaces the incumbent of a problem."""

    def __init__(self, start: Game, costs: Costs, memory: SearchMemory) -> None:
        self._start = start
        self._costs = costs
        self._memory = memory

    def rated(self, games: Sequence[Game]) -> list[IncumbentCandidate]:
        """Programs from files with their costs; programs that fail are left out."""
        found: list[IncumbentCandidate] = []
        for game in games:
            candidate = Candidate.of(game)
            (evaluation,) = self._costs.evaluate([(candidate, game.trace)], None)
            if evaluation.is_ok and self._costs.match(candidate, None).evaluation.is_ok:
                found.append(IncumbentCandidate(game, evaluation.cost))
        return found

    def replace(self, one: IncumbentCandidate | None, before: IncumbentCandidate | None) -> None:
        """Make the program `one` the incumbent if there is none, or if it has just beaten the incumbent `before`.

        An earlier incumbent never returns: a resumed run repeats races that other searches have overtaken.
        """
        if one is not None:
            self._keep(one, "" if before is None else before.game.fingerprint, once=True)

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
            is_same = best is not None and one.game.fingerprint == best.game.fingerprint
            if best is None or is_same or self._costs.beats(one.rival, best.rival, play=play):
                best = one
        if best is None:
            return None
        if held is None:
            is_incumbent = play
        else:
            is_same = best.game.fingerprint == held.game.fingerprint
            is_incumbent = best is not held if is_same else self._costs.beats(best.rival, held.rival, play=play)
        if is_incumbent:
            self._keep(best, name)
        return KnownBest(best.game, best.cost, is_own=best is own)

    def _held(self) -> tuple[IncumbentCandidate | None, str]:
        """The incumbent and its fingerprint; None if its moves do not replay, '' if there is no incumbent."""
        found = self._memory.best()
        if found is None:
            return None, ""
        game = self._start.fork()
        if game.become(step.resolved for step in found.trace.steps) or game.fingerprint != found.fingerprint:
            return None, found.fingerprint
        return IncumbentCandidate(game, found.cost), found.fingerprint

    def _keep(self, one: IncumbentCandidate, over: str, *, once: bool = False) -> None:
        timed = self._costs.is_timed
        beside = one.beside if timed else None
        trace, text = one.game.trace, one.game.text
        self._memory.keep_incumbent(trace, text, one.cost, timed=timed, over=over, once=once, beside=beside)
