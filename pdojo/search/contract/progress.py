"""Progress and results of searches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pdojo.search.contract.evaluation import Evaluation
    from pdojo.search.contract.node import Node
    from pdojo.search.contract.racing import Race
    from pdojo.transforms.game import Game
    from pdojo.transforms.trace import Trace


class Ending(Enum):
    """The reason why a search ended."""

    EVALUATIONS = "the budget of evaluations is used up"
    SECONDS = "the time is up"
    EXHAUSTED = "there is nothing new to propose"
    INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class HistoryRow:
    """One new program in the history of a search."""

    number: int
    """0 is the root."""
    seconds: float
    """Seconds since the start, without pauses."""
    cost: float
    """The cost that the strategy received; infinite after a failure."""
    failure: str
    best: float
    """Cost of the incumbent, as in `Progress`; infinite without one."""
    is_best: bool
    """True if this program became the incumbent and neither failed nor lost its last match."""


PHASES = ("propose", "lower", "compile", "run", "check", "match", "store", "evaluate")
"""Phases of a search. `evaluate` is evaluation time of no other phase; `match` is checks of new bests."""


@dataclass(frozen=True)
class Progress:
    """The state of a search."""

    evaluations: int
    """Number of new programs, without the root."""
    known: int
    """Number of new programs that earlier searches had evaluated."""
    repeated: int
    """Number of proposals that repeated a program of this search."""
    seconds: float
    rate: float
    """Evaluations made per second of this process, without those found in the database."""
    cost: float
    """Cost of the last program."""
    root: float
    """Cost of the root."""
    best: float
    """Cost of the incumbent relative to the root's; `root / best` is the speed-up.

    For timed programs it is from the match with the root when the program became the incumbent.
    """
    is_measured: bool
    """False if the root or the incumbent failed in their match."""
    match: Race | None
    """The incumbent's match with the root; None for computed costs, for the root, and without an incumbent."""
    failures: Mapping[str, int]
    """Number of failures, keyed by kind."""
    spent: Mapping[str, float]
    """Seconds by phase (`PHASES`). Their sum exceeds the clock time if evaluators use several processors at once."""
    doing: str = ""
    """The evaluator's current activity."""


Listener: TypeAlias = Callable[[Progress], None]
"""Called after every evaluation, and when the evaluator's activity changes."""


@dataclass(frozen=True)
class KnownBest:
    """The best known program of a problem."""

    game: Game
    cost: float
    """The last measured cost. Timed costs of different minutes are not comparable."""
    is_own: bool
    """True if it is the best of this search; False if it comes from another search or the rivals, and this search's
    best was not shown to beat it.
    """


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    best: Node | None
    """The best program of the search; None if even the root could not run."""
    root: Node
    known: KnownBest | None
    """The best program of all searches of the problem under the same settings of the evaluator."""
    history: tuple[HistoryRow, ...]
    examples: Mapping[str, Evaluation]
    """The first failure of each kind."""
    ending: Ending
    progress: Progress

    @property
    def cost(self) -> float:
        """Cost of the best program, as in `Progress`; infinite if there is none."""
        return self.progress.best

    @property
    def trace(self) -> Trace:
        """The moves to the best program."""
        return (self.best or self.root).trace


@dataclass
class Times:
    """Seconds by phase."""

    spent: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, phase: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self.spent[phase] = self.spent.get(phase, 0.0) + seconds

    @contextmanager
    def of(self, phase: str) -> Generator[None, None, None]:
        """Add the time of the block to a phase."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(phase, perf_counter() - start)
