"""What a search wants to know of programs: their cost, or how they failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import comb, inf
from statistics import median
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pdojo.backends.measure import Program
from pdojo.dialect.nest import Nest
from pdojo.search.dojo import Dojo, fingerprint_of

JSON: TypeAlias = dict[str, Any]
NOT_TIMED = "NotTimed"
"""Failure of a program in a duel that ended before it was timed, by no fault of its own."""
CHANCE = 0.05
"""Of a program that is as fast as the best to win a duel by luck, at most, where enough samples were taken."""


@dataclass(frozen=True)
class Candidate:
    """A program to evaluate."""

    program: Program
    fingerprint: str
    """Of the program's canonical text."""
    nest: Nest | None = field(default=None, compare=False, repr=False)
    """The program as it is in this process; None where only its text is known."""

    @staticmethod
    def of(dojo: Dojo) -> Candidate:
        """The program of a state."""
        text = dojo.text
        return Candidate(Program(text, dojo.machine), fingerprint_of(text), dojo.game.program.nest)


def seed_of_duel(seed: int, rivals: Sequence[Candidate]) -> int:
    """Of the inputs of a duel, in every process: those of all others are others, also of the same two the other way."""
    text = " ".join([str(seed), *(rival.fingerprint for rival in rivals)])
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big")


@dataclass(frozen=True)
class Evaluation:
    """A cost, or the way in which a program failed."""

    cost: float
    """Less is better, in the evaluator's unit; infinite where the program failed."""
    failure: str = ""
    """Kind of the failure: the name of an outcome, such as `Timeout`; '' where there is none."""
    detail: JSON = field(default_factory=dict[str, Any], compare=False)
    """What else is known: the outcome of a measurement, the parts of a model."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)
    """Where the time went: `lower`, `compile`, `run`, `check`."""

    @staticmethod
    def failed(kind: str, detail: JSON, seconds: Mapping[str, float] | None = None) -> Evaluation:
        """The evaluation of a program that failed."""
        return Evaluation(inf, kind, detail, seconds or {})

    @property
    def is_ok(self) -> bool:
        """Whether there is a cost."""
        return not self.failure

    @property
    def failed_itself(self) -> bool:
        """Whether the program failed, and not one that it was to be timed beside."""
        return self.failure not in ("", NOT_TIMED)

    @property
    def samples(self) -> Sequence[float]:
        """The times that the cost was made of, in the order in which they were taken; none where it was computed."""
        return self.detail.get("samples", ())

    def beats(self, other: Evaluation) -> bool:
        """Whether the cost is less than another one, found under equal conditions, by more than chance would make it.

        Where both were timed in turns, that is a sign test: what disturbs one sample disturbs the other's sample that
        was taken next to it as well, so that these are compared, and as many have to be less as happens to a program
        that is as fast in one of twenty duels (`CHANCE`). Where too few were taken for that, all have to be.
        """
        if not self.cost < other.cost:
            return False
        pairs = neighbours(self.samples, other.samples)
        return sum(one < two for one, two in pairs) >= _wins_needed(len(pairs))


def neighbours(some: Sequence[float], others: Sequence[float]) -> list[tuple[float, float]]:
    """Samples that were taken next to each other, where both are spread over the same turns.

    Who takes fewer than there are turns takes each at the end of its part of them.
    """
    count = min(len(some), len(others))
    return [(_due(some, k, count), _due(others, k, count)) for k in range(count)]


def _due(samples: Sequence[float], part: int, parts: int) -> float:
    """The last sample within a part of the turns."""
    return samples[((part + 1) * len(samples) - 1) // parts]


def _wins_needed(pairs: int) -> int:
    """The fewest wins that chance brings about no more often than `CHANCE`; all where even these are not so rare."""
    ways, needed = 1, pairs
    while needed > 0 and ways + comb(pairs, needed - 1) <= CHANCE * 2**pairs:
        needed -= 1
        ways += comb(pairs, needed)
    return needed


@dataclass(frozen=True)
class Anchor:
    """A program whose cost is known."""

    candidate: Candidate
    cost: float

    def scaled(self, evaluation: Evaluation, now: Evaluation) -> Evaluation:
        """What a program would have cost when the anchor cost what it does, where both cost as said here now.

        It stays what it is where the anchor could not be timed.
        """
        return self._times(evaluation, now, lambda: evaluation.cost / now.cost)

    def scaled_in_turns(self, evaluation: Evaluation, now: Evaluation) -> Evaluation:
        """The same, where both were timed in turns: the median of how each sample compares with the one beside it.

        Also within a second the machine may be faster for a moment, which only one of them meets.
        """
        pairs = neighbours(evaluation.samples, now.samples)
        return self._times(evaluation, now, lambda: median(one / two for one, two in pairs))

    def _times(self, evaluation: Evaluation, now: Evaluation, ratio: Callable[[], float]) -> Evaluation:
        if not (evaluation.is_ok and now.is_ok):
            return evaluation
        detail = {**evaluation.detail, "anchor": {"program": self.candidate.fingerprint, "now": now.cost}}
        return replace(evaluation, cost=ratio() * self.cost, detail=detail)


Listener: TypeAlias = Callable[[str], None]
"""Is told what an evaluator does now, in a few words, for progress displays."""


class Evaluator(Protocol):
    """Gives programs their cost."""

    name: str
    """`runtime`, `analytical`, `cycles`."""
    unit: str
    """Of costs: `s`, `cycles`, or '' for a model's number."""
    batch: int
    """Programs that are best evaluated together."""
    deterministic: bool
    """Whether a program always gets the same cost."""

    @property
    def settings(self) -> JSON:
        """Everything that costs depend on beside the program: machine, options, tool chain; equal ones share costs."""
        ...

    def expect(self, candidate: Candidate) -> None:
        """The program will be among the next ones to evaluate: what may be done beside other work may begin."""
        ...

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterable[Evaluation]:
        """The cost of each program, in order, each as soon as it is known: it is stored before the next is awaited."""
        ...

    def confirm(
        self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
    ) -> list[Evaluation]:
        """Evaluations of a program that seems to be the best, and of the best so far, under equal conditions.

        The first one is right on fresh inputs, or has failed; the second is left out where there is no best. A best
        that fails here, by itself, is the best no longer; an infinite cost without a failure is that of a program that
        was not timed.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@runtime_checkable
class Refining(Protocol):
    """An evaluator whose first costs are rough. They come, and are stored, one by one; then leaders are compared."""

    def refine(
        self, found: Mapping[str, Evaluation], best: float, listener: Listener | None = None
    ) -> dict[str, Evaluation]:
        """Better costs, by fingerprint, of those that may be the best of all, whose cost so far is `best`.

        `found` are programs of the last `evaluate`.
        """
        ...


@runtime_checkable
class Anchored(Protocol):
    """An evaluator on a machine that is now faster and now slower.

    The best so far is timed with each batch, and all costs are as they would have been when its own was measured.
    """

    anchor: Anchor | None
    """The best so far, where there is one."""
