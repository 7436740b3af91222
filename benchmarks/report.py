"""Tables of a benchmark: all rows of each workload, then one line for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdojo_tools.tables import timing_notes
from pdojo_tools.tuning.limits import duration, many
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from benchmarks.peers import LIBRARIES
from benchmarks.records import OURS, Record, Row, fastest, summary
from benchmarks.tables import first_line, number, table
from pdojo.backends.measure import Ok

HEADINGS = (
    *("", "median ms", "min ms", "spread", "first call", "of roofline", "times ours", "max error", "relative"),
    "result",
)


def print_record(console: Console, record: Record) -> None:
    """Print all implementations of one workload, the fastest first."""
    kind = "cold" if record.data["cold"] else "warm"
    threads = f"{record.threads} thread{'s' * (record.threads > 1)}"
    console.print(Rule(escape(f"{record.label}, {threads}, {kind}"), align="left"))
    tuned = any(row.tuning_seconds is not None for row in record.rows)
    shown = table((*HEADINGS, "looked for") if tuned else HEADINGS, (), words=(0, HEADINGS.index("result")))
    for row in sorted(record.rows, key=lambda row: row.outcome.median if isinstance(row.outcome, Ok) else 1e9):
        sought = [] if not tuned else ["" if row.tuning_seconds is None else duration(row.tuning_seconds)]
        shown.add_row(*_cells(record, row), *sought, style="bold" if row.library == OURS else None)
    console.print(shown)
    found = record.data.get("roofline")
    if found is not None:
        rate = found["copy"]["bytes_per_second"] / 1e9, found["read"]["bytes_per_second"] / 1e9
        peak = "" if found["peak"] is None else f", peak {found['peak']['flops_per_second'] / 1e9:.0f} GFLOP/s"
        console.print(
            f"roofline {found['seconds'] * 1e3:.4g} ms, bound by {found['bound']}: copy {rate[0]:.1f} GB/s, "
            f"read {rate[1]:.1f} GB/s at this footprint{peak}",
            highlight=False,
            soft_wrap=True,
        )
    for text in record.data.get("notes", ()):
        console.print(escape(text), highlight=False, soft_wrap=True)
    error = record.data.get("error")
    for text in (
        *timing_notes([(title(row), row.outcome) for row in record.rows]),
        *([] if error is None else [error]),
    ):
        console.print(escape(text), style="yellow", soft_wrap=True)


def title(row: Row) -> str:
    """The name of a row for people."""
    name = LIBRARIES[row.library].title if row.library in LIBRARIES else row.library
    return f"{name}: {row.variant}" if row.variant else name


def _cells(record: Record, row: Row) -> list[str]:
    outcome = row.outcome
    if not isinstance(outcome, Ok):
        return [escape(title(row)), *[""] * 8, f"[red]{escape(first_line(outcome.summary, 100))}[/red]"]
    check = outcome.check
    return [
        escape(title(row)),
        f"{outcome.median * 1e3:.4g}",
        f"{outcome.minimum * 1e3:.4g}",
        f"{outcome.spread:.0%}",
        number(outcome.first_call),
        number(record.share_of_roofline(row), ".0%"),
        number(record.ratio_to(row)),
        "" if check is None else f"{check.absolute:.1e}",
        "" if check is None else f"{check.relative:.1e}",
        "not checked" if check is None else "[green]right[/green]",
    ]


def print_summary(console: Console, records: Sequence[Record]) -> None:
    """Print one line for each workload, and the geometric means."""
    for threads, means in summary(records).items():
        console.print(Rule(f"{threads} threads" if threads != "1" else "1 thread", align="left"))
        console.print(_overview([r for r in records if str(r.threads) == threads]))
        _print_means(console, means)


def _overview(records: Sequence[Record]) -> Table:
    ours, peer = ("pass ms", "ours ms", "of roofline"), ("fastest peer", "ms", "of roofline")
    headings = ("", *ours, *peer, "ratio", "of minima", "errors")
    return table(headings, map(_line, records), words=(0, 4))


def _line(record: Record) -> list[str]:
    peer = record.fastest_peer
    return [
        escape(record.label),
        _milliseconds(record.passed or record.ours),
        _milliseconds(record.ours),
        number(record.share_of_roofline(record.ours), ".0%"),
        "-" if peer is None else escape(title(peer)),
        _milliseconds(peer),
        number(record.share_of_roofline(peer), ".0%"),
        number(record.ratio),
        number(record.ratio_of_minima),
        f"{_error(record.ours)} / {_error(peer)}",
    ]


def _print_means(console: Console, means: dict[str, Any]) -> None:
    def line(text: str, mean: dict[str, Any]) -> None:
        value = mean["geometric_mean"]
        if value is not None:
            shown = f"{text}: {value:.3g} over {mean['workloads']} of {means['workloads']} (least {mean['least']:.3g})"
            console.print(shown, highlight=False, soft_wrap=True)

    line("times as fast as the fastest peer of each workload, geometric mean", means["fastest_peer"])
    line("the same by fastest samples", means["fastest_peer_by_minima"])
    for name, text in (("pass", "by medians"), ("pass_by_minima", "by fastest samples")):
        line(
            f"what was measured and chosen, times as fast as the pass's first program, {text}, geometric mean",
            means[name],
        )
    line("part of the roofline", means["roofline_share"])
    line("part of the roofline, fastest peer", means["fastest_peer_roofline_share"])
    for library, mean in means["libraries"].items():
        known = LIBRARIES[library].title if library in LIBRARIES else library
        line(f"times as fast as {known} at its best", mean)
    # Files of earlier versions have no such list.
    if unconfirmed := means.get("unconfirmed"):
        text = f"a plain loop differs from the samples of {many(len(unconfirmed), 'row')}: {'; '.join(unconfirmed)}"
        console.print(escape(text), style="yellow", highlight=False, soft_wrap=True)
    for name in means["without_result"]:
        console.print(f"our program has no result for {name}; the means leave it out", style="red", soft_wrap=True)


def best_of(record: Record, library: str) -> Row | None:
    """The fastest variant of a library."""
    return fastest(row for row in record.rows if row.library == library)


def _milliseconds(row: Row | None) -> str:
    return "-" if row is None or not isinstance(row.outcome, Ok) else f"{row.outcome.median * 1e3:.4g}"


def _error(row: Row | None) -> str:
    if row is None or not isinstance(row.outcome, Ok) or row.outcome.check is None:
        return "-"
    return f"{row.outcome.check.relative:.0e}"
