"""The best that is known of a problem: of all searches in a database, and of files. It is beaten in turns, or stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.search.costs import Costs, Rival
from pdojo.search.database import Memory
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import Candidate
from pdojo.search.progress import Known


@dataclass(frozen=True)
class Contender:
    """A program that may be the best that is known."""

    dojo: Dojo
    cost: float
    """As it was measured last."""
    beside: tuple[str, float] | None = None
    """The text of the program where its search started, and how many times as fast as that it is."""

    @property
    def rival(self) -> Rival:
        """The same for races."""
        return Rival(Candidate.of(self.dojo), self.cost)


class Incumbents:
    """Who is the incumbent of a problem."""

    def __init__(self, start: Dojo, costs: Costs, memory: Memory) -> None:
        self._start = start
        self._costs = costs
        self._memory = memory

    def rated(self, dojos: Sequence[Dojo]) -> list[Contender]:
        """Programs from elsewhere, by files, with their costs. Those that fail are left out."""
        found: list[Contender] = []
        for dojo in dojos:
            candidate = Candidate.of(dojo)
            (evaluation,) = self._costs.evaluate([(candidate, dojo.trace)], None)
            if evaluation.is_ok and self._costs.match(candidate, None).evaluation.is_ok:
                found.append(Contender(dojo, evaluation.cost))
        return found

    def replace(self, one: Contender | None, before: Contender | None) -> None:
        """Make a program the incumbent, if there is none, or if that is the one `before`, which it has beaten."""
        if one is not None:
            self._keep(one, "" if before is None else before.dojo.fingerprint)

    def best(self, others: Sequence[Contender], own: Contender | None, *, play: bool) -> Known | None:
        """The best of programs from elsewhere, of the incumbent and of a search's own best, and make it the incumbent.

        Each has to beat those before it. If they may not `play`, what was decided before counts; where something is
        not decided the incumbent stays.
        """
        held = self._held()
        best: Contender | None = None
        is_decided = True
        for one in (each for each in (*others, held, own) if each is not None):
            if best is None or one.dojo.fingerprint == best.dojo.fingerprint:
                best = one
                continue
            beats = self._costs.beats(one.rival, best.rival, play=play)
            is_decided &= beats is not None
            best = one if beats else best
        if best is None:
            return None
        if is_decided and best is not held:
            self._keep(best, None)
        return Known(best.dojo, best.cost, is_own=best is own)

    def _held(self) -> Contender | None:
        """The incumbent; None where its moves are those of another pdojo."""
        found = self._memory.best()
        if found is None:
            return None
        dojo = self._start.fork()
        if dojo.become(step.resolved for step in found.trace.steps) or dojo.fingerprint != found.fingerprint:
            return None
        return Contender(dojo, found.cost)

    def _keep(self, one: Contender, over: str | None) -> None:
        is_timed = self._costs.is_timed
        beside = one.beside if is_timed else None
        self._memory.keep_incumbent(one.dojo.trace, one.dojo.text, one.cost, timed=is_timed, beside=beside, over=over)
