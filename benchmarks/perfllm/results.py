"""The results of an experiment: references and finished cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.origin import JSON


@dataclass(frozen=True)
class Reference:
    """The reference costs of a task's searches, in `unit`."""

    unit: str
    plain: float
    expert: float
    moves: int
    """Number of moves of the expert heuristic."""


@dataclass(frozen=True)
class Point:
    """The best program of a search from this point on."""

    evaluations: int
    seconds: float
    """Seconds on the run's clock."""
    factor: float
    """Speed-up over the plain program; 0 if no program ran."""


@dataclass(frozen=True)
class Done:
    """A finished cell."""

    task: str
    method: str
    seed: int
    budget: int
    made: int
    """Number of evaluations until the end."""
    seconds: float
    """Seconds on the run's clock."""
    processor_seconds: float
    """Processor seconds of the search and its simulators or compilers."""
    jobs: int
    """Number of concurrent cells."""
    points: tuple[Point, ...]
    """The best programs in order. Timed factors come from different matches, so that a later one may be less."""
    failures: Mapping[str, int]
    spent: Mapping[str, float]
    """Seconds by phase of the search (`pdojo.search.contract.progress.PHASES`)."""
    parts: Mapping[str, float]
    """Fractions of the time by the sampled stack (`sampling.PARTS`)."""
    commit: str

    @property
    def key(self) -> tuple[str, str, int]:
        """The same key as `Cell.key`."""
        return self.task, self.method, self.seed

    def after(self, evaluations: float) -> float:
        """The factor of the best after this many evaluations; 0 before the first."""
        return next((p.factor for p in reversed(self.points) if p.evaluations <= evaluations), 0.0)

    def at(self, seconds: float) -> float:
        """The factor of the best after this many seconds of the run; a search that ended earlier keeps its last one."""
        return next((p.factor for p in reversed(self.points) if p.seconds <= seconds), 0.0)

    @staticmethod
    def from_json(data: JSON) -> Done:
        """The cell of a record. Raises KeyError, TypeError or ValueError for other data."""
        root = data["root"]
        points = tuple(
            Point(int(number), float(seconds), 0.0 if cost is None or root is None else root / cost)
            for number, seconds, cost in data["history"]
        )
        made = data["commit"]
        commit = "unknown" if made is None else made["commit"][:12] + (" with changes" if made["is_changed"] else "")
        names = ("task", "method", "seed", "budget", "made", "seconds", "processor_seconds", "jobs")
        names += ("failures", "spent", "parts")
        return Done(**{name: data[name] for name in names}, points=points, commit=commit)
