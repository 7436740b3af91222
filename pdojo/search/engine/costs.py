"""Costs of programs: looked up in the database, else computed by the evaluator and stored at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from pdojo.search.contract.evaluation import Candidate, Computing, Evaluation, Evaluator
from pdojo.search.contract.progress import Times
from pdojo.search.contract.racing import STAGES, Race, Timing, TimingRequest, race
from pdojo.search.database import SearchMemory, StoredRun
from pdojo.transforms.trace import Trace

PROMISING = 1.1
"""A known program races with the incumbent if its cost is at most this multiple of the incumbent's."""
CHECKS = 3
"""Number of input sets that check new bests."""
LAST = CHECKS
"""The set of inputs of last matches, which decide which of two programs is better."""


@dataclass(frozen=True)
class RaceEntry:
    """A program and the cost that the strategy received."""

    candidate: Candidate
    told: float


class IncumbentFailed(Exception):
    """Raised if the incumbent fails in a race; the race's other results are void."""

    def __init__(self, failure: Evaluation) -> None:
        super().__init__(failure.failure)
        self.failure = failure


class Costs:
    """An evaluator with a memory, which decides which programs beat the incumbent.

    Computed costs compare directly. Timed programs race: a program's cost is the incumbent's cost times the ratio in
    their race, and the winner of the race is better.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        memory: SearchMemory,
        times: Times,
        doing: Callable[[str], None],
        log: StoredRun | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._memory = memory
        self._log = log
        self._times = times
        self._doing = doing
        self._races: dict[str, Race] = {}
        """Races of the last `evaluate`, keyed by fingerprint."""
        self.remembered = 0
        """Number of evaluations found in the memory."""
        self.made = 0
        """Number of evaluations made by the evaluator."""

    def expect(self, candidate: Candidate) -> None:
        """Announce a program of the next batch."""
        if self._find(candidate) is None:
            self._evaluator.expect(candidate)

    def failure(self, candidate: Candidate) -> Evaluation | None:
        """The known failure of a program; None if none is known."""
        found = self._memory.find(candidate.fingerprint)
        return None if found is None or found.is_ok else found

    def evaluate(self, programs: Sequence[tuple[Candidate, Trace]], best: RaceEntry | None) -> Iterator[Evaluation]:
        """Yield the cost of each of the distinct `programs`, in order.

        Each evaluation is stored before the next one is made. Raises IncumbentFailed before the first one if `best`
        failed.
        """
        with self._times.of("store"):
            known = {candidate.fingerprint: self._find(candidate) for candidate, _ in programs}
        self.remembered += sum(found is not None for found in known.values())
        if isinstance(self._evaluator, Timing):
            yield from self._raced(self._evaluator, programs, known, best)
            return
        assert isinstance(self._evaluator, Computing)
        missing = [candidate for candidate, _ in programs if known[candidate.fingerprint] is None]
        with self._times.of("evaluate"):
            computed = iter(self._evaluator.evaluate(missing, self._doing) if missing else ())
        for program in programs:
            found = known[program[0].fingerprint]
            if found is None:
                with self._times.of("evaluate"):
                    evaluation = next(computed)
                found = self._keep(program, evaluation)
            yield found

    def better(self, rivals: Sequence[RaceEntry], best: RaceEntry | None) -> list[str]:
        """Fingerprints of the programs of the last `evaluate` that beat the incumbent, the best first."""
        found = {rival.candidate.fingerprint: rival.told for rival in rivals if best is None or rival.told < best.told}
        if best is not None and isinstance(self._evaluator, Timing):
            races = {each: self._races.get(each) for each in (rival.candidate.fingerprint for rival in rivals)}
            found = {each: race.ratio or 0.0 for each, race in races.items() if race is not None and race.won}
        return sorted(found, key=lambda each: found[each])

    def match(self, candidate: Candidate, beside: Candidate | None, *, is_last: bool = False) -> Race:
        """Evaluate a program on fresh inputs; a timed one races with `beside`, for all rounds if `is_last`."""
        against, inputs = None, int(candidate.fingerprint[:8], 16) % CHECKS
        if is_last and self.is_timed:
            inputs = LAST
        if self.is_timed and beside is not None and candidate.fingerprint != beside.fingerprint:
            against = beside
        found = self._memory.find_race(candidate.fingerprint, against and against.fingerprint, inputs)
        if found is None:
            self._doing("the last match" if is_last else "checking a new best")
            with self._times.of("match"):
                if isinstance(self._evaluator, Timing):
                    rounds = STAGES[-1] if is_last else STAGES[1]
                    (found,) = self._evaluator.heat(TimingRequest([candidate], against, rounds, inputs), self._doing)
                else:
                    assert isinstance(self._evaluator, Computing)
                    found = Race(self._evaluator.check(candidate))
            with self._times.of("store"):
                text = against and against.program.text
                found = self._memory.keep_race(candidate.program.text, text, inputs, found)
        return found

    def beats(self, one: RaceEntry, other: RaceEntry, *, play: bool) -> bool:
        """True if the program `one` is better than `other`.

        Timed programs compare only by a last match; without a stored one, the two play it if `play` is set.
        """
        if not isinstance(self._evaluator, Timing):
            return one.told < other.told
        found = self._memory.find_race(other.candidate.fingerprint, one.candidate.fingerprint, LAST)
        if found is not None:
            return _loses(found)
        found = self._memory.find_race(one.candidate.fingerprint, other.candidate.fingerprint, LAST)
        if found is None and play:
            found = self.match(one.candidate, other.candidate, is_last=True)
        return found is not None and _beats(found)

    @property
    def is_timed(self) -> bool:
        """True if programs race; False if their costs are computed."""
        return isinstance(self._evaluator, Timing)

    def _find(self, candidate: Candidate) -> Evaluation | None:
        """The stored evaluation of a program.

        A program in the run's log keeps its first measurement, so a resumed run meets a later failure at the same point
        as before.
        """
        fingerprint = candidate.fingerprint
        return self._memory.find(fingerprint, alone=self._log is not None and self._log.has(fingerprint))

    def _keep(self, program: tuple[Candidate, Trace], evaluation: Evaluation) -> Evaluation:
        assert evaluation.is_ok == isfinite(evaluation.cost), f"a program has a cost or has failed: {evaluation}"
        self.made += 1
        for phase, seconds in evaluation.seconds.items():
            self._times.add(phase, seconds)
            self._times.add("evaluate", -seconds)
        with self._times.of("store"):
            return self._memory.keep(program[0].program.text, program[1], evaluation)

    def _raced(
        self,
        evaluator: Timing,
        programs: Sequence[tuple[Candidate, Trace]],
        known: dict[str, Evaluation | None],
        best: RaceEntry | None,
    ) -> Iterator[Evaluation]:
        """Race the new and the promising programs; store each new one as it leaves the race."""
        against = best and best.candidate
        other, text = (None, None) if against is None else (against.fingerprint, against.program.text)
        new = {each.fingerprint: (each, trace) for each, trace in programs if known[each.fingerprint] is None}
        self._races = {}
        entrants: list[Candidate] = []
        for candidate, _ in programs:
            told = known[candidate.fingerprint]
            found = None if told is None else self._memory.find_race(candidate.fingerprint, other, None)
            if found is not None:
                self._note(candidate, found)
            elif told is None or (best is not None and told.is_ok and told.cost <= PROMISING * best.told):
                entrants.append(candidate)

        def heat(left: Sequence[Candidate], rounds: int) -> Sequence[Race]:
            with self._times.of("evaluate"):
                return evaluator.heat(TimingRequest(left, against, rounds), self._doing)

        for candidate, result in race(entrants, heat):
            with self._times.of("store"):
                found = self._memory.keep_race(candidate.program.text, text, None, result)
            self._note(candidate, found)
            if candidate.fingerprint in new:
                known[candidate.fingerprint] = self._keep(new[candidate.fingerprint], _told(found, best))
        yield from (found for found in known.values() if found is not None)

    def _note(self, candidate: Candidate, found: Race) -> None:
        if found.other is not None and not found.other.is_ok:
            raise IncumbentFailed(found.other)
        self._races[candidate.fingerprint] = found


def _beats(found: Race) -> bool:
    """True if the race was won, or only the other program failed."""
    return found.won or (found.evaluation.is_ok and found.other is not None and not found.other.is_ok)


def _loses(found: Race) -> bool:
    """True if the race was lost, or only this program failed."""
    return found.lost or (not found.evaluation.is_ok and found.other is not None and found.other.is_ok)


def _told(found: Race, best: RaceEntry | None) -> Evaluation:
    """The evaluation for the strategy, without samples; these stay with the race."""
    evaluation = found.evaluation
    if not evaluation.is_ok:
        return evaluation
    detail = {key: value for key, value in evaluation.detail.items() if key != "samples"}
    if best is None or found.ratio is None:
        return replace(evaluation, detail=detail)
    raced = {"against": best.candidate.fingerprint, "ratio": found.ratio, "rounds": len(found.ratios)}
    return replace(evaluation, cost=best.told * found.ratio, detail={**detail, "race": raced})
