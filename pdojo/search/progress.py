"""What a search tells while it runs, and what it gives in the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TypeAlias

from pdojo.errors import UsageError
from pdojo.search.node import Node
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Budget:
    """When a search ends: whichever limit is reached first. Raises UsageError where there is none."""

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
    """Whether this is the best program since then, and did not lose its place by failing or in a return match."""


PHASES = ("propose", "lower", "compile", "run", "check", "duel", "store", "evaluate")
"""What time is spent on. `evaluate` is what evaluators do not account for, `duel` the timing beside the best."""


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
    """Cost of the best program in the duel that it won, which may be more than before.

    Where costs are told by the measure of the best, it is by that of the first: what that one cost alone, times how
    those after it compared with one another.
    """
    failures: Mapping[str, int]
    """By kind."""
    spent: Mapping[str, float]
    """Seconds by phase (`PHASES`). Where evaluators use several processors at once these are more than the clock's."""
    doing: str = ""
    """What the evaluator does now."""


Listener: TypeAlias = Callable[[Progress], None]
"""Is told after every evaluation, and when the evaluator does something else."""


@dataclass(frozen=True)
class Result:
    """What a search found."""

    best: Node | None
    """The best program; None where not even the root could be run."""
    root: Node
    history: tuple[Row, ...]
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
