"""Tables of results on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.gpu.parent import Results

OURS = "pdojo: "


def best(times: Mapping[str, float]) -> tuple[str, float]:
    """Our fastest program and its time."""
    ours = {name: seconds for name, seconds in times.items() if name.startswith(OURS)}
    name = min(ours, key=lambda each: ours[each])
    return name.removeprefix(OURS), ours[name]


def geometric_mean(ratios: Iterable[float]) -> float:
    """The geometric mean; NaN of none."""
    found = [log(ratio) for ratio in ratios]
    return exp(sum(found) / len(found)) if found else float("nan")


def print_tables(results: Results, console: Console) -> None:
    """The checks that failed, and a row for each timed kernel."""
    checks = {key: r for key, r in results.done.items() if key.startswith("check ")}
    right = sum("error" not in r for r in checks.values())
    console.print(f"{results.device.get('name', 'no device')}: {right} of {len(checks)} kernels right")
    for key in results.failures:
        console.print(f"  {key}: {results.done[key]['error']}", markup=False)
    rows = {key.removeprefix("time "): r for key, r in results.done.items() if key.startswith("time ") and "warm" in r}
    for kind in ("warm", "cold"):
        if rows:
            console.print(_table(kind, rows, results.device))


def _table(kind: str, rows: Mapping[str, dict[str, Any]], device: Mapping[str, Any]) -> Table:
    """Times in microseconds, other implementations' times over ours, errors against float64."""
    peers = sorted({name for r in rows.values() for name in r[kind] if not name.startswith(OURS)})
    table = Table(title=f"{kind}: times of others over ours")
    for heading in ("kernel", "us", "of copy", "TFLOP/s", "error", *peers, "program"):
        table.add_column(heading, justify="left" if heading in ("kernel", "program") else "right")
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    for kernel, row in rows.items():
        name, seconds = best(row[kind])
        cells = [f"{seconds * 1e6:.1f}", f"{row['bytes'] / seconds / device['copy']:.0%}"]
        cells += [f"{row['flops'] / seconds / 1e12:.1f}", f"{row['errors'][OURS + name]:.1e}"]
        for peer in peers:
            ratio = row[kind][peer] / seconds if peer in row[kind] else None
            cells.append("" if ratio is None else f"{ratio:.2f} ({row['errors'][peer]:.0e})")
            if ratio is not None:
                ratios[peer].append(ratio)
        table.add_row(kernel, *cells, name)
    means = [f"{geometric_mean(ratios[peer]):.2f}" for peer in peers]
    table.add_row("geometric mean", "", "", "", "", *means, "")
    return table
