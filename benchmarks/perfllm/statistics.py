"""Statistics of an experiment: fractions of the expert's speed, their spread over seeds, significant differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import comb, exp, inf, log
from random import Random
from statistics import geometric_mean, median

from benchmarks.origin import JSON
from benchmarks.perfllm.results import Done, Reference
from benchmarks.records import Record
from pdojo.errors import UsageError

NEAR = 0.95
"""Fraction of the expert heuristic's speed at which a search has reached it."""
LEVEL = 0.05
"""Level of tests, and one minus the coverage of intervals."""
RESAMPLES = 2000
"""Number of resamples of a bootstrap."""


@dataclass(frozen=True)
class Range:
    """Median, least and greatest of some values."""

    middle: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(values: Iterable[float]) -> Range:
        """The range of at least one value."""
        known = list(values)
        return Range(median(known), min(known), max(known), len(known))


@dataclass
class Findings:
    """The results of an experiment by task and method."""

    settings: JSON
    references: dict[str, Reference] = field(default_factory=dict[str, Reference])
    """References by task."""
    done: dict[tuple[str, str, int], Done] = field(default_factory=dict[tuple[str, str, int], Done])

    @staticmethod
    def of(settings: JSON, records: Sequence[Record]) -> Findings:
        """The findings of records. Raises UsageError if a record is of no experiment."""
        found = Findings(settings)
        for data in (record.data for record in records):
            try:
                if data["kind"] == "reference":
                    costs = (data[name] for name in ("unit", "plain", "expert", "moves"))
                    found.references[data["task"]] = Reference(*costs)
                else:
                    done = Done.from_json(data)
                    found.done[done.key] = done
            except (KeyError, TypeError, ValueError, ZeroDivisionError):
                raise UsageError(f"the record '{data['label']}' is of no experiment") from None
        return found

    @property
    def tasks(self) -> list[str]:
        """Labels of tasks with cells, in order of the file."""
        return list(dict.fromkeys(done.task for done in self.done.values()))

    @property
    def methods(self) -> list[str]:
        """Names of methods with cells, in order of the file."""
        return list(dict.fromkeys(done.method for done in self.done.values()))

    def cells(self, task: str | None = None, method: str | None = None) -> list[Done]:
        """The cells of a task and a method; None for all."""
        return [
            done
            for done in self.done.values()
            if (task is None or done.task == task) and (method is None or done.method == method)
        ]

    def share(self, task: str, factor: float) -> float:
        """The speed of a program as a fraction of the expert's: expert cost / cost.

        Raises KeyError if the expert's cost is unknown.
        """
        known = self.references[task]
        return factor * known.expert / known.plain

    def has_reference(self, task: str) -> bool:
        """True if the expert's cost is known."""
        return task in self.references

    def shares(self, task: str, method: str, best: Callable[[Done], float]) -> list[float]:
        """The fractions of all seeds, for the factor that `best` takes from each cell."""
        return [self.share(task, best(done)) for done in self.cells(task, method)]

    def final(self, done: Done) -> float:
        """The fraction of a cell's best program."""
        return self.share(done.task, done.after(done.budget))

    def arrival(self, done: Done) -> float:
        """Number of evaluations until `NEAR` of the expert's speed; infinite if not reached."""
        return self._reached(done, NEAR)

    def arrival_at_best(self, done: Done) -> float:
        """Number of evaluations until `NEAR` of the speed of the best program in any search of the task."""
        return self._reached(done, NEAR * max(map(self.final, self.cells(done.task))))

    def _reached(self, done: Done, share: float) -> float:
        return next((p.evaluations for p in done.points if self.share(done.task, p.factor) >= share), inf)


@dataclass(frozen=True)
class Standing:
    """A method's success at reaching the expert."""

    method: str
    reached: int
    """Number of tasks with a median over seeds of at least `NEAR`."""
    tasks: int
    cells_reached: int
    cells: int
    arrival: float
    """Median number of evaluations until then, over all cells; infinite if half of them never arrive."""
    arrival_at_best: float
    """The same until `NEAR` of the best program in any search of the task."""


def standings(findings: Findings) -> list[Standing]:
    """The standing of each method, over the tasks with a known reference."""
    found: list[Standing] = []
    for method in findings.methods:
        cells = [done for done in findings.cells(method=method) if findings.has_reference(done.task)]
        tasks = list(dict.fromkeys(done.task for done in cells))
        finals = {task: [findings.final(done) for done in cells if done.task == task] for task in tasks}
        if not cells:
            continue
        found.append(
            Standing(
                method,
                sum(median(values) >= NEAR for values in finals.values()),
                len(tasks),
                sum(value >= NEAR for values in finals.values() for value in values),
                len(cells),
                median_of_infinite([findings.arrival(done) for done in cells]),
                median_of_infinite([findings.arrival_at_best(done) for done in cells]),
            )
        )
    return found


def median_of_infinite(values: Sequence[float]) -> float:
    """The median, the greater of two middle values: infinite if half of the values are."""
    return sorted(values)[len(values) // 2]


@dataclass(frozen=True)
class Contest:
    """A method compared with another one, on the same tasks and seeds."""

    method: str
    better: int
    worse: int
    equal: int
    p: float
    """p of the two-sided sign test, after Holm's correction for the number of methods."""
    ratio: float
    """Geometric mean of the speed-ups of its programs."""
    low: float
    high: float
    """Ends of the ratio's bootstrap interval: tasks are resampled, then the seeds of each."""

    @property
    def verdict(self) -> str:
        """The joint verdict of the test and of the interval."""
        if self.p >= LEVEL or self.low <= 1 <= self.high:
            return "not separable"
        return "faster" if self.ratio > 1 else "slower"


def contests(findings: Findings, against: str) -> list[Contest]:
    """All other methods against one, at the end of their budgets; methods without common pairs are left out."""
    found: list[Contest] = []
    base = {(done.task, done.seed): done.after(done.budget) for done in findings.cells(method=against)}
    for method in findings.methods:
        pairs: dict[str, list[float]] = {}
        for done in findings.cells(method=method):
            other, own = base.get((done.task, done.seed), 0.0), done.after(done.budget)
            if method != against and other > 0 and own > 0:
                pairs.setdefault(done.task, []).append(own / other)
        if pairs:
            ratios = [ratio for each in pairs.values() for ratio in each]
            better, worse = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
            low, high = interval(list(pairs.values()))
            mean = geometric_mean(ratios)
            p = sign_test(better, worse)
            found.append(Contest(method, better, worse, len(ratios) - better - worse, p, mean, low, high))
    corrected = holm([each.p for each in found])
    return [
        Contest(c.method, c.better, c.worse, c.equal, p, c.ratio, c.low, c.high)
        for c, p in zip(found, corrected, strict=True)
    ]


def sign_test(better: int, worse: int) -> float:
    """The two-sided p of these counts, if both signs were equally likely; ties do not count."""
    total, least = better + worse, min(better, worse)
    return min(1.0, 2 * sum(comb(total, k) for k in range(least + 1)) / 2**total)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of several p values, in the same order."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    found = [0.0] * len(values)
    least = 0.0
    for rank, k in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[k]))
        found[k] = least
    return found


def interval(groups: Sequence[Sequence[float]], seed: int = 0) -> tuple[float, float]:
    """The bootstrap interval of the geometric mean of grouped ratios: groups are resampled, then members of each."""
    random = Random(seed)
    logs = [[log(ratio) for ratio in group] for group in groups]
    means: list[float] = []
    for _ in range(RESAMPLES):
        drawn = [value for group in random.choices(logs, k=len(logs)) for value in random.choices(group, k=len(group))]
        means.append(sum(drawn) / len(drawn))
    means.sort()
    tail = round(LEVEL / 2 * RESAMPLES)
    return exp(means[tail]), exp(means[-1 - tail])
