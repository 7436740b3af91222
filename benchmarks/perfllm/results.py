"""The file of results as JSON lines: the conditions first, then references and cells.

Each line is one write. A line truncated by a kill is dropped at the next write.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import strftime
from typing import Self, cast

from benchmarks.origin import JSON, installed
from benchmarks.perfllm.grid import Grid, Task
from benchmarks.records import append_line, drop_rest, read_text, whole_lines
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import UsageError
from pdojo.search.evaluators.named import version_of

FORMAT = 1
_PACKAGES = ("torch", "transformers", "scikit-learn", "numpy")


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
    """Seconds by the driver's phase (`pdojo.search.contract.progress.PHASES`)."""
    parts: Mapping[str, float]
    """Fractions of the time by the sampled stack (`sampling.PARTS`)."""
    wall: float
    """Seconds of the process, including its start."""
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
        """The cell of a line. Raises KeyError, TypeError or ValueError for other data."""
        root = data["root"]
        points = tuple(
            Point(int(number), float(seconds), 0.0 if cost is None or root is None else root / cost)
            for number, seconds, cost in data["history"]
        )
        made = data["commit"]
        commit = "unknown" if made is None else made["commit"][:12] + (" with changes" if made["is_changed"] else "")
        names = ("task", "method", "seed", "budget", "made", "seconds", "processor_seconds", "jobs")
        names += ("failures", "spent", "parts", "wall")
        return Done(**{name: data[name] for name in names}, points=points, commit=commit)


@dataclass
class Results:
    """Everything in a file."""

    conditions: JSON
    """Grid, processor and versions, common to all lines."""
    references: dict[str, Reference] = field(default_factory=dict[str, Reference])
    """References by task."""
    cells: dict[tuple[str, str, int], Done] = field(default_factory=dict[tuple[str, str, int], Done])

    @staticmethod
    def read(path: Path) -> Results:
        """The results in a file. Raises UsageError if there are none."""
        return _parsed(path, whole_lines(read_text(path)))

    def add(self, data: JSON) -> None:
        """Add a line. Raises KeyError, TypeError or ValueError for other data."""
        if data["kind"] == "conditions":
            self.conditions = {name: value for name, value in data.items() if name not in ("kind", "started")}
        elif data["kind"] == "reference":
            self.references[data["task"]] = Reference(*(data[n] for n in ("unit", "plain", "expert", "moves")))
        elif data["kind"] == "cell":
            found = Done.from_json(data)
            self.cells[found.key] = found
        else:
            raise ValueError(f"no line of an experiment: {data['kind']}")


class Ledger:
    """The file of a running experiment, to which finished work is appended.

    One process at a time writes to a file.
    """

    def __init__(self, path: Path, grid: Grid) -> None:
        """Open or create the file. Raises UsageError if it is of another experiment, or if it cannot be written."""
        now = conditions(grid)
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None
        try:
            self.results = self._begun(path, grid, now)
        except BaseException:
            os.close(self._file)
            raise

    def _begun(self, path: Path, grid: Grid, now: JSON) -> Results:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another process writes to '{path}'; name another file with -o") from None
        text = read_text(path)
        whole = whole_lines(text)
        if not whole:
            if text:
                raise UsageError(f"'{path}' has no results of this experiment; name another file with -o")
            append_line(path, {"kind": "conditions", "started": strftime("%Y-%m-%dT%H:%M:%S%z"), **now})
            return Results(now)
        results = _parsed(path, whole)
        _check(path, results, grid, now)
        drop_rest(path, whole)
        return results

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def add(self, data: JSON) -> None:
        """Append a line to the file and to the results. Raises OSError if the disk is full."""
        append_line(self._path, data)
        self.results.add(data)


def conditions(grid: Grid) -> JSON:
    """The conditions of results, besides the cells, which must not change within a file."""
    kinds = {(task.evaluator, task.machine) for task in grid.tasks}
    versions = {name: version_of(name, known_machine(machine)) for name, machine in sorted(kinds)}
    packages = {name: installed(name) for name in _PACKAGES}
    facts: JSON = {"processor": environment()["processor"], "evaluators": versions, "packages": packages}
    return {"format": FORMAT, "grid": grid.name, **json.loads(json.dumps(facts))}


def _parsed(path: Path, lines: list[str]) -> Results:
    if not lines:
        raise UsageError(f"'{path}' has no results of this experiment")
    results = Results({})
    for number, line in enumerate(lines, 1):
        try:
            results.add(json.loads(line))
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            raise UsageError(
                f"'{path}' has no results of this experiment: line {number} is none of its lines"
            ) from None
    if results.conditions.get("format") != FORMAT:
        raise UsageError(f"'{path}' has no conditions of format {FORMAT}, which this version reads")
    return results


def _check(path: Path, results: Results, grid: Grid, now: JSON) -> None:
    """Raise UsageError if the file is of another experiment: only comparable results share a table."""
    changed = next((name for name in now if results.conditions.get(name) != now[name]), None)
    if changed is not None:
        before, after = results.conditions.get(changed), now[changed]
        if isinstance(before, dict) and isinstance(after, dict):
            old, new = cast(JSON, before), cast(JSON, after)
            changed = next(name for name in {**old, **new} if old.get(name) != new.get(name))
            before, after = old.get(changed), new.get(changed)
        raise UsageError(f"'{path}' has another {changed}: {before}, now {after}; name another file with -o")
    budgets: dict[str, Task] = {task.label: task for task in grid.tasks}
    for done in results.cells.values():
        task = budgets.get(done.task)
        if task is not None and task.evaluations != done.budget:
            raise UsageError(
                f"'{path}' has searches of {done.budget} evaluations for {done.task}, not {task.evaluations}: "
                "strategies plan for their budget; name another file with -o"
            )
