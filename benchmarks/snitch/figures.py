"""The data of Figures 8 and 9: fractions of the peak, our cycles against others', geometric means."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.origin import JSON
from benchmarks.records import OURS, Record, geometric_mean
from benchmarks.snitch.job import COMPILER, SEARCH, STRATEGIES
from pdojo.backends.measure import SimulatedOnSnitch

OTHERS = ("gcc -O2", "handwritten", "xDSL")
"""Authors with known cycles on RTL."""


def simulated(record: Record, strategy: str, library: str = OURS) -> SimulatedOnSnitch | None:
    """The outcome of a strategy; None if there is none or it failed. '' matches any variant of another library."""
    for row in record.rows:
        if row.library == library and strategy in ("", row.variant):
            return row.outcome if isinstance(row.outcome, SimulatedOnSnitch) else None
    return None


def best(record: Record) -> tuple[str, SimulatedOnSnitch] | None:
    """The strategy with the fewest cycles, the first of equal ones; None if all failed."""
    found = [(s, each) for s in STRATEGIES if (each := simulated(record, s)) is not None]
    return min(found, key=lambda pair: pair[1].cycles) if found else None


def part_of_peak(record: Record, cycles: int) -> float:
    """The paper's fraction of the peak: the required operations, at one per lane and cycle."""
    return record.data["required_operations"] / (record.data["lanes"] * cycles)


def cycles_of(record: Record, by: str) -> int | None:
    """Cycles of a strategy, of another author's program on RTL, or of plain C here; None if unknown."""
    if by in record.data["baselines"]:
        return record.data["baselines"][by]
    found = simulated(record, "", COMPILER) if by == COMPILER else simulated(record, by)
    return None if found is None else found.cycles


def mean(records: Sequence[Record], slow: str, fast: str) -> JSON:
    """The geometric mean of the speed-ups of `fast` over `slow`; `best` is our best."""
    ratios: list[float] = []
    for record in records:
        one = cycles_of(record, slow)
        winner = best(record)
        other = (None if winner is None else winner[1].cycles) if fast == "best" else cycles_of(record, fast)
        if one is not None and other is not None:
            ratios.append(one / other)
    return {"geometric_mean": geometric_mean(ratios), "kernels": len(ratios), "least": min(ratios, default=None)}


def summary(records: Sequence[Record]) -> JSON:
    """All means, and the programs without a result."""
    failed = [
        f"{record.label}: {row.variant}"
        for record in records
        for row in record.rows
        if row.library == OURS and not isinstance(row.outcome, SimulatedOnSnitch)
    ]
    means = {f"{fast} over {slow}": mean(records, slow, fast) for slow, fast in COMPARED}
    dtypes = sorted({record.data["dtype"] for record in records}, reverse=True)
    for slow, fast in BY_TYPE if len(dtypes) > 1 else ():
        for dtype in dtypes:
            mine = [record for record in records if record.data["dtype"] == dtype]
            means[f"{fast} over {slow}, {dtype}"] = mean(mine, slow, fast)
    return {"kernels": len(records), "means": means, "without_result": failed, "search": _reached(records)}


def _reached(records: Sequence[Record]) -> JSON:
    """Numbers of kernels: with both results, and among them with a search that needs at most the heuristic pass's
    cycles.
    """
    pairs = [(cycles_of(record, SEARCH), cycles_of(record, "heuristic")) for record in records]
    both = [(found, other) for found, other in pairs if found is not None and other is not None]
    return {"kernels": len(both), "reached": sum(found <= other for found, other in both)}


COMPARED = (
    ("naive", "greedy"),
    ("naive", "heuristic"),
    ("naive", "transformed"),
    ("naive", SEARCH),
    ("heuristic", SEARCH),
    ("handwritten", "heuristic"),
    ("handwritten", "transformed"),
    ("handwritten", "best"),
    ("xDSL", "best"),
    ("gcc -O2", "best"),
    (COMPILER, "naive"),
    (COMPILER, "heuristic"),
    (COMPILER, "best"),
)
"""Pairs to compare, the expected slower one first."""
BY_TYPE = ((COMPILER, "naive"), (COMPILER, "heuristic"))
"""Pairs whose means are also given by type."""
