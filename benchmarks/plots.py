"""Plots of a benchmark: speeds relative to the fastest peer, and the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers import LIBRARIES
from benchmarks.records import OURS, Record
from benchmarks.report import best_of
from pdojo.backends.measure import Ok

MISSING = "plots are left out: pip install matplotlib"


def write_plots(records: Sequence[Record], output: Path) -> list[Path]:
    """Two plots for each number of threads, stored with the results; none without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    written: list[Path] = []
    for threads in sorted({record.threads for record in records}):
        chosen = [r for r in records if r.threads == threads and r.fastest_peer is not None]
        for name, draw in (("bars", _bars), ("roofline", _roofline)):
            figure = draw(chosen if name == "bars" else [r for r in records if r.threads == threads])
            path = output.with_name(f"{output.stem}-{threads}-threads-{name}.png")
            figure.savefig(path, dpi=120, bbox_inches="tight")
            import_module("matplotlib.pyplot").close(figure)
            written.append(path)
    return written


def _bars(records: Sequence[Record]) -> Any:
    """Bars of the speed of each library's best variant; 1 is the fastest peer."""
    pyplot: Any = import_module("matplotlib.pyplot")
    libraries = [OURS, *dict.fromkeys(row.library for r in records for row in r.rows if row.library != OURS)]
    figure, axes = pyplot.subplots(figsize=(max(6, 1.1 * len(records)), 4.5))
    width = 0.8 / len(libraries)
    for number, library in enumerate(libraries):
        heights = [_speed(record, library) for record in records]
        places = [place - 0.4 + (number + 0.5) * width for place in range(len(records))]
        axes.bar(places, heights, width, label=LIBRARIES[library].title if library in LIBRARIES else library)
    for place, record in enumerate(records):
        found = record.data.get("roofline")
        peer = record.fastest_peer
        if found is not None and peer is not None and isinstance(peer.outcome, Ok):
            limit = peer.outcome.median / found["seconds"]
            axes.plot([place - 0.4, place + 0.4], [limit, limit], color="black", linewidth=1, linestyle=":")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(records)), [record.label for record in records], rotation=45, ha="right")
    axes.set_ylabel("speed, the fastest peer is 1 (dotted: roofline)")
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
