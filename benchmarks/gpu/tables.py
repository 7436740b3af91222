"""Tables of results on a GPU, which fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.gpu.parent import Results
from benchmarks.origin import JSON
from benchmarks.records import geometric_mean
from benchmarks.tables import number

OURS = "pdojo: "
INEXACT = 1e-5
"""Error above which a peer's error is printed."""


def best(times: Mapping[str, float]) -> tuple[str, float]:
    """Our fastest program and its time."""
    ours = {name: seconds for name, seconds in times.items() if name.startswith(OURS)}
    name = min(ours, key=lambda each: ours[each])
    return name, ours[name]


def print_results(results: Results, console: Console) -> None:
    """Print the checks and the failures, then tables of times, of the host's time per call, and of counters."""
    console.print(results.device.get("name", "no device"))
    for kind, what in (("small", "small programs"), ("check", "library kernels")):
        found = results.of(kind)
        if found:
            console.print(f"{sum('error' not in r for r in found.values())} of {len(found)} {what} right")
    for key in results.failures:
        console.print(f"  {key}: {results.done[key]['error']}", markup=False, soft_wrap=True)
    rows = {name: row for name, row in results.of("time").items() if "warm" in row}
    if rows:
        for kind in ("warm", "cold"):
            console.print(_times(kind, rows, results.device.get("copy", float("nan"))))
        _print_programs(rows, console)
        console.print(_hosts(rows))
    if "error" in results.counters:
        console.print(f"no counters: {results.counters['error']['error']}", markup=False)
    elif results.counters:
        console.print(_counters(results.counters))


def _table(title: str, headings: Iterable[str]) -> Table:
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="right" if column else "left", no_wrap=True)
    return table


def _peers(rows: Mapping[str, JSON]) -> list[str]:
    return list(dict.fromkeys(name for r in rows.values() for name in r["warm"] if not name.startswith(OURS)))


def _times(kind: str, rows: Mapping[str, JSON], copy: float) -> Table:
    """Microseconds of our fastest program, and PyTorch's times divided by it."""
    peers = _peers(rows)
    table = _table(f"{kind}: PyTorch's times over ours", ("kernel", "us", "of copy", "TFLOP/s", "error", *peers))
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    for kernel, row in rows.items():
        name, seconds = best(row[kind])
        cells = [f"{seconds * 1e6:.1f}", f"{row['bytes'] / seconds / copy:.0%}"]
        cells += [f"{row['flops'] / seconds / 1e12:.1f}", f"{row['errors'][name]:.0e}"]
        for peer in peers:
            if peer in row[kind]:
                ratios[peer].append(row[kind][peer] / seconds)
                cells.append(f"{ratios[peer][-1]:.2f}")
            else:
                cells.append("")
        table.add_row(kernel, *cells)
    table.add_row("geometric mean", "", "", "", "", *(number(geometric_mean(ratios[peer])) for peer in peers))
    return table


def _print_programs(rows: Mapping[str, JSON], console: Console) -> None:
    """Print our fastest programs other than the pass's own, with their speed-up over it; errors of inexact peers."""
    for kernel, row in rows.items():
        name, seconds = best(row["warm"])
        first = row["warm"][f"{OURS}the pass"]
        if name != f"{OURS}the pass":
            console.print(f"{kernel}: {first / seconds:.2f} by {name.removeprefix(OURS)}", markup=False)
        inexact = {peer: e for peer, e in row["errors"].items() if not peer.startswith(OURS) and e > INEXACT}
        if inexact:
            listed = ", ".join(f"{peer} {error:.0e}" for peer, error in inexact.items())
            console.print(f"{kernel}: errors of {listed}", markup=False)


def _hosts(rows: Mapping[str, JSON]) -> Table:
    """Host microseconds of a call outside of graphs."""
    peers = _peers(rows)
    table = _table("microseconds of the host for a call", ("kernel", "pdojo", *peers))
    for kernel, row in rows.items():
        host = row["host"]
        times = [host[f"{OURS}the pass"], *(host.get(peer, float("nan")) for peer in peers)]
        table.add_row(kernel, *(f"{seconds * 1e6:.1f}" for seconds in times))
    return table


def _counters(counters: Mapping[str, JSON]) -> Table:
    """Counters of our fastest programs."""
    headings = ("program", "launches", "us", "DRAM MB", "issue %", "warps %", "L2 hits %", "conflicts")
    table = _table("counters", headings)
    for name, found in counters.items():
        cells = [f"{found['launches']}", f"{found['seconds'] * 1e6:.1f}", f"{found['dram_bytes'] / 1e6:.1f}"]
        cells += [f"{found[key]:.0f}" for key in ("issue", "warps", "l2_hits")]
        table.add_row(name.split(",")[0], *cells, f"{found['bank_conflicts']:.0f}")
    return table
