"""What a search tells while it runs, and what it gives in the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TypeAlias

from pdojo.errors import UsageError
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import Evaluation
from pdojo.search.node import Node
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Budget:
    """When a search ends: whichever limit is reached first. Raises UsageError if there is none."""

    evaluations: int | None = None
    """New programs beside the root."""
    seconds: float | None = None
    """Without pauses: what a run that goes on took before counts."""

    def __post_init__(self) -> None:
        if self.evaluations is None and self.seconds is None:
            raise UsageError("a search needs a budget: a number of evaluations, or a time")
        for name, given in (("evaluations", self.evaluations), ("seconds", self.seconds)):
            if given is not None and not given >= 0:
                raise UsageError(f"a budget of {name} is not negative, as {given} is")


class Ending(Enum):
    """Why a search ended."""

    EVALUATIONS = "the budget of evaluations is used up"
    SECONDS = "the time is up"
    EXHAUSTED = "there is nothing new to propose"
    INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class Row:
    """A line of a search's history: one new program."""

    number: int
    """0 is the root."""
    seconds: float
    """Since the start, pauses left out."""
    cost: float
    """As the strategy was told; infinite where the program failed."""
    failure: str
    best: float
    """Cost of the best program so far, as in `Progress`; infinite without one."""
    is_best: bool
    """Whether this is the best program since then, and did not lose its place by failing or in the last match."""


PHASES = ("propose", "lower", "compile", "run", "check", "match", "store", "evaluate")
"""What time is spent on. `evaluate` is what evaluators do not account for, `match` the checks of new bests."""


@dataclass(frozen=True)
class Progress:
    """How a search stands."""

    evaluations: int
    """New programs so far, beside the root."""
    known: int
    """How many of those had been evaluated by earlier searches."""
    repeated: int
    """Proposals that led to a program of this search."""
    seconds: float
    rate: float
    """Evaluations that were made and not remembered, per second of this process."""
    cost: float
    """Of the last program."""
    root: float
    """Cost of the root."""
    best: float
    """Cost of the best program, by the measure of the root: `root / best` is how many times as fast it is.

    Where programs are timed that was measured in turns with the root, when the program became the best.
    """
    is_measured: bool
    """Whether it was; the processors may have been busy just then."""
    undecided: int
    """Programs that may be better than the best, which races did not show because others kept the processors busy."""
    failures: Mapping[str, int]
    """By kind."""
    spent: Mapping[str, float]
    """Seconds by phase (`PHASES`). Where evaluators use several processors at once these are more than the clock's."""
    doing: str = ""
    """What the evaluator does now."""


Listener: TypeAlias = Callable[[Progress], None]
"""Is told after every evaluation, and when the evaluator does something else."""


@dataclass(frozen=True)
class Known:
    """The best program that is known of a problem."""

    dojo: Dojo
    cost: float
    """As it was measured last. Where programs are timed, costs of different minutes say nothing of each other."""
    is_own: bool
    """Whether it is the best of this search; else it comes from another one, or from the rivals, and the best of this
    search was not shown to be better."""


@dataclass(frozen=True)
class Result:
    """What a search found."""

    best: Node | None
    """The best program of the search; None if not even the root could be run."""
    root: Node
    known: Known | None
    """The best program of all searches of the problem, under the same settings of the evaluator."""
    history: tuple[Row, ...]
    examples: Mapping[str, Evaluation]
    """For each kind of failure the first program's."""
    ending: Ending
    progress: Progress

    @property
    def cost(self) -> float:
        """Of the best program, as in `Progress`; infinite where there is none."""
        return self.progress.best

    @property
    def trace(self) -> Trace:
        """The moves that lead to the best program."""
        return (self.best or self.root).trace


@dataclass
class Times:
    """Seconds by phase."""

    spent: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, phase: str, seconds: float) -> None:
        """Account for time."""
        self.spent[phase] = self.spent.get(phase, 0.0) + seconds

    @contextmanager
    def of(self, phase: str) -> Generator[None, None, None]:
        """Account for the time within."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(phase, perf_counter() - start)
