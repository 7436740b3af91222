"""Racing: candidates are timed in turns with the incumbent, in stages that fewer and fewer candidates reach.

A machine's speed varies by a quarter within minutes, and other programs use its processors. A disturbance hits
neighbouring samples alike, so only samples of one round are compared. More noise makes more races undecided, but wins
none. This module knows neither clocks nor processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from statistics import median
from typing import Protocol, runtime_checkable

from pdojo.search.contract.evaluation import Candidate, Evaluation, Evaluator, Listener

STAGES = (3, 9, 45)
"""Total number of rounds at the end of each stage."""
CHANCE = 0.05
"""Greatest probability that a program as fast as the incumbent wins by luck."""


@dataclass(frozen=True)
class Race:
    """The result of a program timed in turns with another one. Both evaluations keep `samples` in their detail."""

    evaluation: Evaluation
    """The program's median, or its failure."""
    other: Evaluation | None = None
    """Evaluation of the other program; None if there was none."""

    @cached_property
    def ratios(self) -> list[float]:
        """The program's sample divided by the other program's, indexed by round; empty unless both were timed."""
        if self.other is None or not (self.evaluation.is_ok and self.other.is_ok):
            return []
        pairs = zip(self.evaluation.detail["samples"], self.other.detail["samples"], strict=True)
        return [mine / other for mine, other in pairs]

    @property
    def ratio(self) -> float | None:
        """Median of the ratios: below 1 if the program is faster; None unless both were timed."""
        return median(self.ratios) if self.ratios else None

    @property
    def wins(self) -> int:
        """Number of rounds in which the program was faster."""
        return sum(ratio < 1 for ratio in self.ratios)

    @property
    def fastest(self) -> float | None:
        """Ratio of the fastest samples, for information only; None unless both were timed."""
        if self.other is None or not self.ratios:
            return None
        return min(self.evaluation.detail["samples"]) / min(self.other.detail["samples"])

    @property
    def won(self) -> bool:
        """True if the sign test (`CHANCE`) shows that the program is faster."""
        return bool(self.ratios) and self.wins >= wins_needed(len(self.ratios))

    @property
    def lost(self) -> bool:
        """True if the sign test shows that the other program is faster."""
        return bool(self.ratios) and sum(ratio > 1 for ratio in self.ratios) >= wins_needed(len(self.ratios))

    @property
    def is_undecided(self) -> bool:
        """True if both programs were timed, and the sign test shows neither to be faster."""
        return bool(self.ratios) and not (self.won or self.lost)

    @property
    def verdict(self) -> str:
        """The median of the speed-ups, and whether the race is decided, in words."""
        if self.fastest is None:
            return "not compared"
        rounds = len(self.ratios)
        needed = wins_needed(rounds)
        decided = ", which decide" if not self.is_undecided else f": undecided ({needed} would decide)"
        if needed > rounds:
            decided = ": too few to decide"
        return f"{1 / self.fastest:.2f} by the fastest samples; faster in {self.wins} of {rounds} pairs{decided}"

    @property
    def goes_on(self) -> bool:
        """True if the program may still win: it won one round of the first stage, or most rounds by the end of a later
        one.

        A limit of time may cut a stage short: a race with fewer rounds than the first stage always goes on.
        """
        if not self.ratios:
            return False
        if len(self.ratios) < STAGES[0]:
            return True
        return self.wins >= (1 if len(self.ratios) <= STAGES[0] else len(self.ratios) // 2 + 1)

    def then(self, later: Race) -> Race:
        """This race with later rounds appended. A failure in the later rounds replaces the earlier ones."""
        if not self.ratios or not later.ratios:
            return later
        assert self.other is not None
        assert later.other is not None
        return Race(_joined(self.evaluation, later.evaluation), _joined(self.other, later.other))


def _joined(one: Evaluation, other: Evaluation) -> Evaluation:
    samples = [*one.detail["samples"], *other.detail["samples"]]
    seconds = {phase: one.seconds.get(phase, 0.0) + spent for phase, spent in other.seconds.items()}
    return replace(other, cost=median(samples), detail={**other.detail, "samples": samples}, seconds=seconds)


def wins_needed(rounds: int) -> int:
    """The fewest wins whose probability by chance is at most `CHANCE`; `rounds` + 1 if no number is so rare."""
    ways, needed = 0, rounds + 1
    while needed > 0 and ways + comb(rounds, needed - 1) <= CHANCE * 2**rounds:
        needed -= 1
        ways += comb(rounds, needed)
    return needed


@dataclass(frozen=True)
class TimingRequest:
    """A request to time programs in turns."""

    candidates: Sequence[Candidate]
    beside: Candidate | None
    """The program to compare with; None if there is none."""
    rounds: int
    """Number of rounds, unless they take too long; at least 5."""
    inputs: int | None = None
    """Number of the input set that checks results; None in races, which check nothing."""
    seconds: float | None = None
    """Limit of seconds for all rounds; None for only the limit of each program's samples."""


@runtime_checkable
class Timing(Evaluator, Protocol):
    """An evaluator that measures times. Times vary from moment to moment, so programs race."""

    def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> Sequence[Race]:
        """Time programs in turns, with `wanted.beside` if given; returns a race for each, in order."""
        ...


def race(
    candidates: Sequence[Candidate], heat: Callable[[Sequence[Candidate], int], Sequence[Race]]
) -> Iterator[tuple[Candidate, Race]]:
    """Yield each program with its race once it can no longer win, or has run all stages."""
    left: list[tuple[Candidate, Race | None]] = [(candidate, None) for candidate in candidates]
    run = 0
    for rounds in STAGES:
        if not left:
            return
        found = heat([candidate for candidate, _ in left], rounds - run)
        run, staying = rounds, list[tuple[Candidate, Race | None]]()
        for (candidate, before), latest in zip(left, found, strict=True):
            stands = latest if before is None else before.then(latest)
            if rounds < STAGES[-1] and stands.goes_on:
                staying.append((candidate, stands))
            else:
                yield candidate, stands
        left = staying
