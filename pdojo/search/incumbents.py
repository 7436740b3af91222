"""The best that is known of a problem: of all searches in a database, and of files. It is beaten in turns, or stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.search.costs import Costs, Rival
from pdojo.search.database import Memory
from pdojo.search.database.rows import now
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
    since: str = ""
    """When it became the incumbent, where it is that."""

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
        """Make a program the incumbent, if there is none, or if that is the one `before`, which it has just beaten.

        What was the incumbent before is not made it again: a run that goes on repeats what others know better by now.
        """
        if one is not None:
            self._keep(one, "" if before is None else before.dojo.fingerprint, once=True)

    def best(self, others: Sequence[Contender], own: Contender | None, *, play: bool) -> Known | None:
        """The best of programs from elsewhere, of the incumbent and of a search's own best, without those that failed.

        Each has to beat those before it; what was decided before the incumbent became that does not count, and if
        they may not `play`, only what was decided. What has beaten the incumbent takes its place.
        """
        # The races that make a program the incumbent count for what comes later.
        since = now()
        held, name = self._held()
        best: Contender | None = None
        for one in (each for each in (*others, held, own) if each is not None):
            if self._costs.failure(one.rival.candidate) is not None:
                continue
            if best is None or one.dojo.fingerprint == best.dojo.fingerprint or self._beats(one, best, play):
                best = one
        if best is None:
            return None
        if held is None:
            is_incumbent = play
        else:
            is_same = best.dojo.fingerprint == held.dojo.fingerprint
            is_incumbent = best is not held if is_same else self._beats(best, held, play)
        if is_incumbent:
            self._keep(best, name, since=since)
        return Known(best.dojo, best.cost, is_own=best is own)

    def _beats(self, one: Contender, other: Contender, play: bool) -> bool:
        return bool(self._costs.beats(one.rival, other.rival, play=play, since=max(one.since, other.since)))

    def _held(self) -> tuple[Contender | None, str]:
        """The incumbent, None if its moves are those of another pdojo; and its fingerprint, '' if there is none."""
        found = self._memory.best()
        if found is None:
            return None, ""
        dojo = self._start.fork()
        if dojo.become(step.resolved for step in found.trace.steps) or dojo.fingerprint != found.fingerprint:
            return None, found.fingerprint
        return Contender(dojo, found.cost, since=found.since), found.fingerprint

    def _keep(self, one: Contender, over: str, *, once: bool = False, since: str = "") -> None:
        timed = self._costs.is_timed
        beside = one.beside if timed else None
        trace, text = one.dojo.trace, one.dojo.text
        self._memory.keep_incumbent(
            trace, text, one.cost, timed=timed, over=over, once=once, beside=beside, since=since
        )
