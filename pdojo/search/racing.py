"""Racing: programs are timed in turns with the best so far, in stages that fewer and fewer reach; luck decides little.

A machine is now faster and now slower, by a quarter within minutes. What disturbs one sample disturbs its neighbour
too, so that only samples of one turn are compared. Nothing here knows clocks or processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from statistics import median
from typing import Protocol, runtime_checkable

from pdojo.search.evaluation import Candidate, Evaluation, Evaluator, Listener

STAGES = (3, 9, 45)
"""Rounds of a program that goes through to the end of each stage."""
CHANCE = 0.05
"""Of a program that is as fast as the incumbent to win by luck, at most."""
LOAD = 0.1
"""Processors that others may keep busy meanwhile, on average; rounds with more decide nothing."""


@dataclass(frozen=True)
class Race:
    """How a program did beside another one, in turns. Both evaluations have their `samples` in their detail."""

    evaluation: Evaluation
    """Of the program: its median, or how it failed."""
    other: Evaluation | None = None
    """Of the one beside it; None if there was none."""

    @cached_property
    def ratios(self) -> list[float]:
        """Round by round, the program's sample over the other one's; none where not both were timed."""
        if self.other is None or not (self.evaluation.is_ok and self.other.is_ok):
            return []
        pairs = zip(self.evaluation.detail["samples"], self.other.detail["samples"], strict=True)
        return [mine / other for mine, other in pairs]

    @property
    def ratio(self) -> float | None:
        """Times the other one's time that the program takes, by the median; None if not both were timed."""
        return median(self.ratios) if self.ratios else None

    @property
    def wins(self) -> int:
        """Rounds in which the program was faster."""
        return sum(ratio < 1 for ratio in self.ratios)

    @property
    def is_undecided(self) -> bool:
        """Whether others kept the processors busy, so that nothing follows from who was faster."""
        load = self.evaluation.detail.get("foreign_load")
        return self.other is not None and self.evaluation.is_ok and load is not None and load > LOAD

    @property
    def won(self) -> bool:
        """Whether the program is faster by more than luck: a sign test (`CHANCE`)."""
        return bool(self.ratios) and not self.is_undecided and self.wins >= wins_needed(len(self.ratios))

    @property
    def reverse(self) -> Race:
        """The same for the other one, which there must be; the load is that of the two."""
        assert self.other is not None
        load = {"foreign_load": self.evaluation.detail.get("foreign_load")}
        return Race(replace(self.other, detail={**self.other.detail, **load}), self.evaluation)

    @property
    def lost(self) -> bool:
        """Whether the other one is faster by more than luck."""
        return self.other is not None and self.reverse.won

    @property
    def goes_on(self) -> bool:
        """Whether it may still win: it won a round of the first stage, and most rounds after the second."""
        if not self.ratios or self.is_undecided:
            return False
        return self.wins >= (1 if len(self.ratios) <= STAGES[0] else len(self.ratios) // 2 + 1)

    def then(self, later: Race) -> Race:
        """This and the rounds after it. A failure counts, and so does the load of the later rounds."""
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
    """The fewest wins that chance brings about no more often than `CHANCE`; all where even these are not so rare."""
    ways, needed = 1, rounds
    while needed > 0 and ways + comb(rounds, needed - 1) <= CHANCE * 2**rounds:
        needed -= 1
        ways += comb(rounds, needed)
    return needed


@dataclass(frozen=True)
class Heat:
    """Programs to be timed in turns."""

    candidates: Sequence[Candidate]
    beside: Candidate | None
    """What they are compared with."""
    rounds: int
    """Turns, if these do not take too long; 3 at least."""
    inputs: int | None = None
    """Results are compared with the plain kernel's, on the inputs of that number; those of races have none."""


@runtime_checkable
class Timing(Evaluator, Protocol):
    """An evaluator by which costs depend on the moment, so that programs race."""

    def heat(self, wanted: Heat, listener: Listener | None = None) -> Sequence[Race]:
        """Time programs in turns with the one beside them, if there is one; how each did, in order."""
        ...


def race(
    candidates: Sequence[Candidate], heat: Callable[[Sequence[Candidate], int], Sequence[Race]]
) -> Iterator[tuple[Candidate, Race]]:
    """Each program and how it did, as it leaves the race: it cannot win any more, or has run all stages."""
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
