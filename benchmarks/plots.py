"""Plots of a benchmark: speeds relative to the fastest peer, and the roofline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.peers import LIBRARIES
from benchmarks.records import OURS, Record
from benchmarks.report import best_of
from pdojo.backends.measure import Ok


def print_drawn(console: Console, paths: Sequence[Path]) -> None:
    """Print the names of plots, or why there are none."""
    shown = f"plots in {', '.join(map(str, paths))}" if paths else "plots are left out: pip install matplotlib"
    console.print(shown, highlight=False, soft_wrap=True)


def draw(figures: Mapping[str, Callable[[], object]], output: Path) -> list[Path]:
    """Draw figures and store them with the results as OUTPUT-NAME.png; none without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    import_module("matplotlib").use("Agg")
    written: list[Path] = []
    for name, figure_of in figures.items():
        figure: Any = figure_of()
        written.append(output.with_name(f"{output.stem}-{name}.png"))
        figure.savefig(written[-1], dpi=120, bbox_inches="tight")
        import_module("matplotlib.pyplot").close(figure)
    return written


def grouped_bars(groups: Sequence[str], heights: Mapping[str, Sequence[float]], measure: str) -> tuple[Any, Any]:
    """A figure and its axes: for each group a bar of each series, beside a line at 1."""
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(max(6, len(groups)), 4.5))
    width = 0.8 / max(1, len(heights))
    for number, (label, series) in enumerate(heights.items()):
        axes.bar([place - 0.4 + (number + 0.5) * width for place in range(len(groups))], series, width, label=label)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(groups)), groups, rotation=45, ha="right")
    axes.set_ylabel(measure)
    return figure, axes


def figures_of(records: Sequence[Record]) -> dict[str, Callable[[], object]]:
    """Two plots for each number of threads, by name."""
    figures: dict[str, Callable[[], object]] = {}
    for threads in sorted({record.threads for record in records}):
        chosen = [record for record in records if record.threads == threads]
        figures[f"{threads}-threads-bars"] = partial(_bars, [r for r in chosen if r.fastest_peer is not None])
        figures[f"{threads}-threads-roofline"] = partial(_roofline, chosen)
    return figures


def _bars(records: Sequence[Record]) -> Any:
    """Bars of the speed of each library's best variant; 1 is the fastest peer."""
    libraries = [OURS, *dict.fromkeys(row.library for r in records for row in r.rows if row.library != OURS)]
    heights = {
        LIBRARIES[name].title if name in LIBRARIES else name: [_speed(record, name) for record in records]
        for name in libraries
    }
    measure = "speed, the fastest peer is 1 (dotted: roofline)"
    figure, axes = grouped_bars([record.label for record in records], heights, measure)
    for place, record in enumerate(records):
        found = record.data.get("roofline")
        peer = record.fastest_peer
        if found is not None and peer is not None and isinstance(peer.outcome, Ok):
            limit = peer.outcome.median / found["seconds"]
            axes.plot([place - 0.4, place + 0.4], [limit, limit], color="black", linewidth=1, linestyle=":")
    axes.legend(fontsize="small", ncols=2)
    return figure


def _speed(record: Record, library: str) -> float:
    row, peer = best_of(record, library), record.fastest_peer
    if row is None or peer is None or not isinstance(row.outcome, Ok) or not isinstance(peer.outcome, Ok):
        return 0.0
    return peer.outcome.median / row.outcome.median


def _roofline(records: Sequence[Record]) -> Any:
    """Operations per second over operations per byte; each kernel has the bandwidth of its footprint."""
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 5))
    shown = [r for r in records if "roofline" in r.data and r.data["operations"]]
    for record in shown:
        intensity = record.data["operations"] / (record.data["read_bytes"] + record.data["written_bytes"])
        limit = record.data["operations"] / record.data["roofline"]["seconds"] / 1e9
        axes.plot(intensity, limit, "_", color="black", markersize=12)
        for row, mark in ((record.ours, "o"), (record.fastest_peer, "x")):
            if row is not None and isinstance(row.outcome, Ok):
                rate = record.data["operations"] / row.outcome.median / 1e9
                axes.plot(intensity, rate, mark, color="tab:blue" if mark == "o" else "tab:orange")
        axes.annotate(record.label, (intensity, limit), fontsize="x-small", rotation=30)
    peaks = [r.data["roofline"]["peak"]["flops_per_second"] / 1e9 for r in shown if r.data["roofline"]["peak"]]
    if peaks:
        axes.axhline(max(peaks), color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte that must move")
    axes.set_ylabel("GFLOP/s (bar: limit, dot: pdojo, cross: fastest peer)")
    return figure
