"""The drawn kernels beside plain C: a table, means, and a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from benchmarks.origin import JSON
from benchmarks.records import Record, geometric_mean
from benchmarks.snitch.figures import cycles_of, simulated
from benchmarks.snitch.job import COMPILER
from benchmarks.tables import number, table

DRAWN = ("greedy", "heuristic")
"""The default strategies."""
HEADINGS = ("", COMPILER, *DRAWN, "times as fast as C", "FPU")


def means_of(records: Sequence[Record]) -> dict[str, JSON]:
    """By strategy and type: geometric mean beside plain C, least ratio, slower kernels, mean FPU utilisation."""
    found: dict[str, JSON] = {}
    for strategy in dict.fromkeys(row.variant for record in records for row in record.rows if row.library != COMPILER):
        for dtype in ("f64", "f32"):
            mine = [record for record in records if record.data["dtype"] == dtype]
            ratios = [ratio for record in mine if (ratio := ratio_of(record, strategy)) is not None]
            used = [outcome.utilisation for r in mine if (outcome := simulated(r, strategy)) is not None]
            found[f"{strategy}, {dtype}"] = {
                "kernels": len(ratios),
                "geometric_mean": geometric_mean(ratios),
                "least": min(ratios, default=None),
                "slower": sum(ratio < 1 for ratio in ratios),
                "fpu": sum(used) / len(used) if used else None,
            }
    return found


def ratio_of(record: Record, strategy: str) -> float | None:
    """How many times as fast as plain C a strategy's program is; None if either has no result."""
    plain, ours = cycles_of(record, COMPILER), cycles_of(record, strategy)
    return None if plain is None or ours is None else plain / ours


def print_drawn(console: Console, records: Sequence[Record]) -> None:
    """Print all kernels, and the means."""
    console.print(Rule("Kernels drawn by a fixed seed", align="left"))
    console.print(table(HEADINGS, [[escape(cell) for cell in _cells(record)] for record in records]))
    for line in _lines(records):
        console.print(line, highlight=False, soft_wrap=True)


def page_of(records: Sequence[Record]) -> str:
    """Means and all kernels as Markdown."""
    rows = [_cells(record) for record in records]
    lines = [*(f"- {line}" for line in _lines(records)), "", *(f"| {' | '.join(r)} |" for r in (HEADINGS, *rows))]
    lines.insert(len(lines) - len(rows), f"| {' | '.join('---' for _ in HEADINGS)} |")
    return "\n".join([*lines, ""])


def _cells(record: Record) -> list[str]:
    ours = simulated(record, "heuristic")
    cycles = [cycles_of(record, by) for by in (COMPILER, *DRAWN)]
    used = "-" if ours is None else f"{ours.utilisation:.2f}"
    return [record.label, *(number(each, "d") for each in cycles), number(ratio_of(record, "heuristic")), used]


def _lines(records: Sequence[Record]) -> list[str]:
    return [
        f"{name}: {number(mean['geometric_mean'])} times as fast as plain C, geometric mean over {mean['kernels']} "
        f"(least {number(mean['least'])}, {mean['slower']} slower); FPU utilisation {number(mean['fpu'])}, mean"
        for name, mean in means_of(records).items()
    ]
