"""Convergence curves of searches, their statistics, and their file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import TypeAlias, cast

from pdojo_tools.outputs import write_output

from pdojo.errors import UsageError
from pdojo.files import exists, read_text
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.progress import SearchResult

FORMAT = 2
LARGEST = 1 << 28
"""Greatest size of a comparison file in bytes."""
NEAR = 0.95
"""Fraction of the best known program's speed at which a search has arrived."""


@dataclass(frozen=True)
class Curve:
    """One search: the incumbent's cost after each evaluation."""

    kernel: str
    strategy: str
    neighbourhood: str
    seed: int
    best: tuple[float, ...]
    """Costs from the root, number 0, to the budget; infinite before a program ran. Timed costs are multiples of the
    root's, measured in turns with it.
    """
    evaluations: int
    """Number of evaluations; the curve is constant afterwards."""
    failures: Mapping[str, int]
    ending: str
    seconds: float

    @staticmethod
    def of(key: Key, result: SearchResult, budget: int, scale: float = 1.0) -> Curve:
        """The curve of a finished search; costs are divided by `scale`."""
        best: list[float] = []
        for row in result.history:
            best.append(row.best / scale if row.is_best else best[-1] if best else inf)
        level = [best[-1]] * (budget + 1 - len(best))
        progress = result.progress
        return Curve(
            *key, (*best, *level), progress.evaluations, dict(progress.failures), result.ending.value, progress.seconds
        )

    @property
    def key(self) -> Key:
        """Identifies the search within a comparison."""
        return self.kernel, self.strategy, self.neighbourhood, self.seed

    @property
    def kind(self) -> Kind:
        """The strategy and neighbourhood, shared by searches of several seeds."""
        return self.strategy, self.neighbourhood

    def to_json(self) -> JSON:
        """As plain data; null for infinity."""
        return {**asdict(self), "best": [cost if isfinite(cost) else None for cost in self.best]}

    @staticmethod
    def from_json(data: JSON) -> Curve:
        """The inverse of `to_json`. Raises TypeError or KeyError for other data."""
        best = tuple(inf if cost is None else float(cost) for cost in data["best"])
        values: JSON = {**data, "best": best}
        return Curve(**values)

    def arrival(self, best: float) -> float:
        """Number of evaluations until a program has `NEAR` of the best known speed; infinite if none has."""
        return next((k for k, cost in enumerate(self.best) if inf > best >= NEAR * cost), inf)


Key: TypeAlias = tuple[str, str, str, int]
Kind: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class ReferenceCosts:
    """Reference costs for a kernel's searches."""

    unit: str
    plain: float
    passed: float


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles over seeds; values may be infinite."""

    low: float
    middle: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Quartiles:
        """The spread of at least one value."""
        ordered = sorted(values)
        return Quartiles(*(_quantile(ordered, part) for part in (0.25, 0.5, 0.75)))


def _quantile(ordered: Sequence[float], part: float) -> float:
    """A quantile by linear interpolation."""
    place = part * (len(ordered) - 1)
    below = int(place)
    rest = place - below
    if rest == 0 or ordered[below] == inf:
        return ordered[below]
    return ordered[below] + rest * (ordered[below + 1] - ordered[below])


@dataclass(frozen=True)
class SearchStatistics:
    """The statistics of one kind of search on a kernel."""

    kernel: str
    strategy: str
    neighbourhood: str
    searches: int
    arrived: int
    """Number of searches that arrived (`NEAR`)."""
    arrival: Quartiles
    """Number of evaluations until arrival."""
    final: Quartiles
    """Speed of the best program found, relative to the best known."""
    failed: float
    """Fraction of failed programs."""


@dataclass
class SearchComparison:
    """All curves so far."""

    settings: JSON
    references: dict[str, ReferenceCosts] = field(default_factory=dict[str, ReferenceCosts])
    curves: dict[Key, Curve] = field(default_factory=dict[Key, Curve])

    def of_kernel(self, kernel: str) -> list[Curve]:
        """The curves of a kernel, in insertion order."""
        return [curve for curve in self.curves.values() if curve.kernel == kernel]

    def best_known(self, kernel: str) -> float:
        """The least cost of any search or of the pass."""
        known = self.references.get(kernel)
        seen = (cost for curve in self.of_kernel(kernel) for cost in curve.best)
        return min(seen, default=inf) if known is None else min(known.passed, *seen)

    def speeds(self, kernel: str, kind: Kind) -> list[Quartiles]:
        """The incumbent's speed after each evaluation, relative to the best known."""
        best = self.best_known(kernel)
        curves = [curve.best for curve in self.of_kernel(kernel) if curve.kind == kind]
        return [
            Quartiles.of(0.0 if cost == inf else best / cost for cost in costs) for costs in zip(*curves, strict=True)
        ]

    def standings(self) -> list[SearchStatistics]:
        """The standing of each kernel and kind of search."""
        found: list[SearchStatistics] = []
        for kernel in dict.fromkeys(curve.kernel for curve in self.curves.values()):
            best = self.best_known(kernel)
            curves = self.of_kernel(kernel)
            kinds = dict.fromkeys(curve.kind for curve in curves)
            found += [_standing(kernel, [c for c in curves if c.kind == kind], best) for kind in kinds]
        return found

    def to_json(self) -> JSON:
        """As plain data, with the statistics."""
        return {
            "format": FORMAT,
            "settings": self.settings,
            "references": {name: _finite(asdict(each)) for name, each in self.references.items()},
            "summary": [_finite(asdict(each)) for each in self.standings()],
            "curves": [curve.to_json() for curve in self.curves.values()],
        }

    def save(self, path: Path) -> None:
        """Write the file, in one step."""
        write_output(json.dumps(self.to_json()) + "\n", str(path))

    @staticmethod
    def open(path: Path, settings: JSON) -> SearchComparison:
        """The comparison in a file; a new one if there is no file. Raises UsageError if the settings differ."""
        if not exists(path):
            return SearchComparison(settings)
        try:
            data = json.loads(read_text(path, LARGEST))
            stored, form = dict(data["settings"]), data["format"]
            references = {
                name: ReferenceCosts(each["unit"], *(_cost(each[cost]) for cost in ("plain", "passed")))
                for name, each in data["references"].items()
            }
            curves = [Curve.from_json(curve) for curve in data["curves"]]
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(f"'{path}' exists, but is no comparison; name another file with -o") from None
        if form != FORMAT:
            raise UsageError(f"'{path}' has format {form}, and this version reads {FORMAT}; name another file with -o")
        changed = next((name for name in settings if stored.get(name) != settings[name]), None)
        if changed is not None:
            raise UsageError(
                f"'{path}' has another comparison: {changed} was {stored.get(changed)} and is {settings[changed]}; "
                "name another file with -o, or remove it"
            )
        return SearchComparison(stored, references, {curve.key: curve for curve in curves})


def _standing(kernel: str, curves: Sequence[Curve], best: float) -> SearchStatistics:
    arrivals = [curve.arrival(best) for curve in curves]
    programs = sum(curve.evaluations + 1 for curve in curves)
    return SearchStatistics(
        kernel,
        *curves[0].kind,
        len(curves),
        sum(isfinite(arrival) for arrival in arrivals),
        Quartiles.of(arrivals),
        Quartiles.of(0.0 if curve.best[-1] == inf else best / curve.best[-1] for curve in curves),
        sum(sum(curve.failures.values()) for curve in curves) / programs,
    )


def _cost(value: float | None) -> float:
    return inf if value is None else float(value)


def _finite(data: JSON) -> JSON:
    """The same data with null for infinity, which JSON lacks."""
    return {
        name: _finite(cast(JSON, each)) if isinstance(each, dict) else None if each == inf else each
        for name, each in data.items()
    }
