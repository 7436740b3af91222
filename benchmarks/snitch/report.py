"""Tables and plots of Figures 8 and 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from benchmarks.plots import grouped_bars
from benchmarks.records import OURS, Record
from benchmarks.snitch.baselines import SOURCE
from benchmarks.snitch.figures import OTHERS, best, cycles_of, part_of_peak, simulated, summary
from benchmarks.snitch.job import COMPILER, STRATEGIES
from benchmarks.tables import first_line, number, table
from pdojo.backends.measure import SimulatedOnSnitch


def print_figures(console: Console, records: Sequence[Record]) -> None:
    """Print both figures as tables, and the means."""
    shown = [s for s in STRATEGIES if any(row.variant == s for r in records for row in r.rows if row.library == OURS)]
    console.print(Rule("Figure 8: strategies", align="left"))
    console.print(_figure_8(records, shown))
    console.print(
        "of peak: operations that the kernel needs, over one for each lane of a register in a cycle; FPU: instructions "
        "that the FPU took for each cycle; fma: operations done over fused multiply-adds of full width",
        highlight=False,
    )
    console.print(Rule("Figure 9: beside others", align="left"))
    console.print(_figure_9(records))
    console.print(
        f"gcc -O2, handwritten, xDSL: {SOURCE}; plain C, and ours: simulated here; / X: ours is so many times as fast",
        highlight=False,
    )
    _print_means(console, records)
    _print_notes(console, records)


def _figure_8(records: Sequence[Record], strategies: Sequence[str]) -> Table:
    headings = ["", *(heading for strategy in strategies for heading in (strategy, "of peak", "FPU", "fma")), "result"]
    rows = (
        [escape(_name(record)), *(cell for s in strategies for cell in _parts(record, s)), _verdict(record)]
        for record in records
    )
    return table(headings, rows, words=(0, len(headings) - 1))


def _parts(record: Record, strategy: str) -> list[str]:
    found = simulated(record, strategy)
    if found is None:
        return ["-", "", "", ""]
    peak = part_of_peak(record, found.cycles)
    return [f"{found.cycles:,}", f"{peak:.0%}", f"{found.utilisation:.0%}", f"{found.fraction_of_peak:.0%}"]


def _verdict(record: Record) -> str:
    """The verdict on all strategies' results: exact, correct or missing."""
    ours = [row for row in record.rows if row.library == OURS]
    failed = [row.variant for row in ours if not isinstance(row.outcome, SimulatedOnSnitch)]
    if failed:
        return f"[red]no result: {', '.join(failed)}[/red]"
    exact = all(isinstance(row.outcome, SimulatedOnSnitch) and row.outcome.same_bits for row in ours)
    return "[green]exact[/green]" if exact else "[green]right[/green]"


def _figure_9(records: Sequence[Record]) -> Table:
    headings = ("", "ours", "by", COMPILER, *OTHERS, *(f"/ {by}" for by in (COMPILER, *OTHERS)))
    return table(headings, map(_beside_others, records), words=(0, 2))


def _beside_others(record: Record) -> list[str]:
    winner = best(record)
    others = [cycles_of(record, by) for by in (COMPILER, *OTHERS)]
    cells = [number(cycles, ",") for cycles in others]
    if winner is None:
        return [escape(_name(record)), "-", "", *cells, *[""] * len(others)]
    strategy, found = winner
    ratios = ["" if cycles is None else f"{cycles / found.cycles:.2f}" for cycles in others]
    return [escape(_name(record)), f"{found.cycles:,}", strategy, *cells, *ratios]


def _print_means(console: Console, records: Sequence[Record]) -> None:
    figures = summary(records)
    searched = figures["search"]
    if searched["kernels"]:
        text = f"{searched['reached']} of {searched['kernels']} kernels"
        console.print(f"the search from the naive program reaches the heuristic pass on {text}", highlight=False)
    for name, found in figures["means"].items():
        if found["geometric_mean"] is not None:
            console.print(
                f"{name}: {found['geometric_mean']:.2f} times as fast, geometric mean over {found['kernels']} "
                f"(least {found['least']:.2f})",
                highlight=False,
            )


def _print_notes(console: Console, records: Sequence[Record]) -> None:
    """Print dividers, lost NaN and failures."""
    divided = list(dict.fromkeys(r.data["title"] for r in records if r.data["divider_added"]))
    if divided:
        console.print(f"on a core with a divider: {', '.join(divided)}", highlight=False, soft_wrap=True)
    lossy = list(dict.fromkeys(r.data["title"] for r in records if "numbers" in r.data["numerics"]))
    if lossy:
        console.print(
            f"permitted to lose NaN in a maximum (numerics numbers): {', '.join(lossy)}",
            highlight=False,
            soft_wrap=True,
        )
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        for row in record.rows:
            if not isinstance(row.outcome, SimulatedOnSnitch):
                style = "red" if row.library == OURS else "yellow"
                reasons.setdefault((style, row.variant, first_line(row.outcome.summary, 200)), []).append(_name(record))
    for (style, variant, reason), names in reasons.items():
        console.print(
            f"no result of {variant} for {', '.join(names)}: {reason}", style=style, markup=False, soft_wrap=True
        )


def _name(record: Record) -> str:
    return f"{record.data['title']} {record.data['dtype']}"


def figures_of(records: Sequence[Record]) -> dict[str, Callable[[], object]]:
    """Both figures for each type, by name."""
    figures: dict[str, Callable[[], object]] = {}
    for dtype in dict.fromkeys(record.data["dtype"] for record in records):
        mine = [record for record in records if record.data["dtype"] == dtype]
        known = [record for record in mine if record.data["baselines"]]
        for name, chosen, bars in (("figure8", mine, STRATEGIES), ("figure9", known, (*STRATEGIES, COMPILER, *OTHERS))):
            if chosen:
                figures[f"{dtype}-{name}"] = partial(_bars, chosen, bars, dtype)
    return figures


def _bars(records: Sequence[Record], bars: Sequence[str], dtype: str) -> Any:
    """Fractions of the peak, with a bar per kernel and program."""
    heights: dict[str, list[float]] = {}
    for by in bars:
        cycles = [cycles_of(record, by) for record in records]
        if any(cycles):
            label = by if by in STRATEGIES or by == COMPILER else f"{by} (RTL)"
            heights[label] = [part_of_peak(r, c) if c else 0.0 for r, c in zip(records, cycles, strict=True)]
    figure, axes = grouped_bars([record.data["title"] for record in records], heights, f"part of the peak, {dtype}")
    axes.legend(fontsize="small", ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
