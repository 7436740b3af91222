"""Variants: the programs of an expert pass for other answers to its tuning parameters; the fastest wins by racing.

First the program of the pass's preferences races with the programs that differ from it in one answer, then with the
program of all winning answers. The winning answers are stored by kind of kernel; the next kernel of the kind starts
from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from pdojo.passes.common.parameters import ParameterValues
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.search.contract.evaluation import Candidate
from pdojo.search.contract.racing import STAGES, Race, Timing, TimingRequest, race
from pdojo.search.database.decisions import DecisionMemory

MOST = 16
"""Greatest number of timed programs."""
SECONDS = 4.0
"""Time limit in seconds for all turns together, without starting processes and compiling; a turn in progress is
finished.
"""
MAKING = 0.75
"""Fraction of the time limit after which no further programs are made."""
SINGLES = 0.75
"""Greatest fraction of the remaining time for races of single answers; the combined answers race last."""
EARLY = 0.5
"""Greatest fraction of a race's remaining time for a stage before the last one."""

Remake = Callable[[ParameterValues], ScheduledKernel]
"""Runs the pass on the plain kernel with the given answers."""


@dataclass(frozen=True)
class Variant:
    """A program of the pass, and its answers that differ from the pass's preferences."""

    decisions: ParameterValues
    tuning: ScheduledKernel

    @property
    def candidate(self) -> Candidate:
        """The program, for races."""
        return Candidate.of(self.tuning.game.fork())

    @property
    def title(self) -> str:
        """The answers, for people."""
        return ", ".join(f"{q}: {a}" for q, a in self.decisions.items()) or "the pass's preferences"


@dataclass(frozen=True)
class Raced:
    """The result of racing the variants of a pass."""

    best: Variant
    start: Variant
    """The variant that all others raced with: of the stored answers, or of the pass's preferences."""
    others: tuple[tuple[Variant, Race], ...]
    """The other variants with their last races against the start; empty if the answers were known."""
    seconds: float

    @property
    def undecided(self) -> tuple[tuple[Variant, Race], ...]:
        """The variants whose races do not decide if they are faster than the start."""
        return tuple(each for each in self.others if each[1].is_undecided)

    @property
    def race(self) -> Race | None:
        """The best variant's race with the start; None if it is the start."""
        return next((found for variant, found in self.others if variant is self.best), None)

    @property
    def gain(self) -> float:
        """The speed-up of the best variant over the start, in turns; 1 if it is the start."""
        return max((1 / r.ratio for v, r in self.others if v is self.best and r.ratio), default=1.0)


class VariantRace:
    """Races the variants of one pass."""

    def __init__(
        self,
        remake: Remake,
        timing: Timing,
        memory: DecisionMemory | None = None,
        tell: Callable[[str], None] = lambda _: None,
        *,
        most: int = MOST,
        seconds: float = SECONDS,
    ) -> None:
        self._remake = remake
        self._timing = timing
        self._memory = memory
        self._tell = tell
        self._most = most
        self._began = 0.0
        self._left, self._making = seconds, seconds * MAKING

    def run(self, *, again: bool = False) -> Raced:
        """Race the variants, and store the best answers. Ctrl-C raises KeyboardInterrupt, and nothing is stored.

        Stored answers for the same kernel are used without a race, unless `again`.
        """
        known = None if self._memory is None else self._memory.find()
        start = self._start({} if known is None else known.answers)
        self._began = perf_counter()
        if known is not None and known.is_own and not again:
            return self._result(start, start, [])
        texts = {start.candidate.program.text}
        others: list[tuple[Variant, Race]] = []
        others += self._raced(start, self._new(self._singles(start), texts, len(others)), SINGLES)
        if self._left > 0:
            others += self._raced(start, self._new(self._combined(start, others), texts, len(others)))
        won = [(found.ratio or 1.0, number) for number, (_, found) in enumerate(others) if found.won]
        result = self._result(others[min(won)[1]][0] if won else start, start, others)
        if self._memory is not None and others and (won or not any(_was_cut_short(found) for _, found in others)):
            self._memory.keep(result.best.decisions, result.gain)
        return result

    def _start(self, answers: ParameterValues) -> Variant:
        """The program of these answers; unknown and preferred answers are dropped."""
        made = self._remake(answers)
        valid = _valid(answers, made)
        return Variant(valid, made if valid == answers else self._remake(valid))

    def _result(self, best: Variant, start: Variant, others: Sequence[tuple[Variant, Race]]) -> Raced:
        return Raced(best, start, tuple(others), perf_counter() - self._began)

    def _singles(self, start: Variant) -> Iterator[Variant]:
        """Programs that differ from the start in one answer, the most preferred answers to all questions first."""
        wanted = [(rank, c.question, other) for c in start.tuning.choices for rank, other in enumerate(c.others)]
        for _, question, answer in sorted(wanted, key=lambda each: each[0]):
            if perf_counter() - self._began > self._making:
                return
            yield self._made({**start.decisions, question: answer})

    def _combined(self, start: Variant, others: Sequence[tuple[Variant, Race]]) -> Iterator[Variant]:
        """The program with the best answer to each question, if several questions have better answers."""
        won: dict[str, tuple[float, str]] = {}
        for variant, found in others:
            for question, answer in variant.decisions.items():
                if found.won and found.ratio is not None and start.decisions.get(question) != answer:
                    won[question] = min(won.get(question, (1.0, "")), (found.ratio, answer))
        if len(won) > 1:
            yield self._made({**start.decisions, **{question: answer for question, (_, answer) in won.items()}})

    def _new(self, variants: Iterable[Variant], texts: set[str], count: int) -> list[Variant]:
        """The variants with new programs, as many as may still be timed after `count`."""

        def is_new(variant: Variant) -> bool:
            text = variant.candidate.program.text
            found = text not in texts
            texts.add(text)
            return found

        return list(islice(filter(is_new, variants), self._most - 1 - count))

    def _made(self, decisions: ParameterValues) -> Variant:
        variant = Variant(decisions, self._remake(decisions))
        self._tell(f"variant {variant.title}")
        self._timing.expect(variant.candidate)
        return variant

    def _raced(self, start: Variant, variants: Sequence[Variant], share: float = 1.0) -> list[tuple[Variant, Race]]:
        """The variants with their races against the start, as far as a share of the remaining time allows."""
        if not variants:
            return []
        reserved = self._left * (1 - share)
        candidates = {variant.candidate.fingerprint: variant.candidate for variant in variants}
        standing: dict[str, Race] = {}

        def heat(racing: Sequence[Candidate], rounds: int) -> Sequence[Race]:
            left = self._left - reserved
            if standing and left <= 0:
                raise _TimeIsUpError
            is_last = rounds == STAGES[-1] - STAGES[-2]
            seconds = left * (1.0 if is_last else EARLY)
            begun = perf_counter()
            latest = self._timing.heat(TimingRequest(racing, start.candidate, rounds, seconds=seconds), self._tell)
            self._left -= min(perf_counter() - begun, seconds)
            for each, found in zip(racing, latest, strict=True):
                before = standing.get(each.fingerprint)
                standing[each.fingerprint] = found if before is None else before.then(found)
            return latest

        with suppress(_TimeIsUpError):
            for _ in race(list(candidates.values()), heat):
                pass
        return [(variant, standing[fingerprint]) for fingerprint, variant in zip(candidates, variants, strict=True)]


def _was_cut_short(found: Race) -> bool:
    """True if a race might have been decided with more time; an undecided result is then not stored."""
    return found.goes_on and len(found.ratios) < STAGES[1]


class _TimeIsUpError(Exception):
    """Raised when no further stage of a race may begin."""


def _valid(answers: ParameterValues, tuning: ScheduledKernel) -> ParameterValues:
    """The answers to the pass's own questions that differ from its preferences."""
    options = {choice.question: choice.options for choice in tuning.choices}
    return {q: a for q, a in answers.items() if a in options.get(q, ()) and a != options[q][0]}
