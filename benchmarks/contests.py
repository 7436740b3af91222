"""Ours against other implementations by pairs of samples of one turn: ratios, a table, a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.markup import escape

from benchmarks.chart import Bar, Panel, drawn
from benchmarks.origin import JSON, processor_of
from benchmarks.peers import LIBRARIES
from benchmarks.perfllm.statistics import sign_test
from benchmarks.records import Record, Row, fastest, geometric_mean
from benchmarks.report import title
from benchmarks.tables import number, table
from pdojo.backends.measure import Ok

PROCESS = "pdojo in process"
"""The title of a library entry's program as code that pdojo compiles."""
CONSTANT = "pdojo for each size"
"""The title of programs for constant sizes, beside one for all sizes."""
CERTAIN = 0.05
"""Least p of a sign test at which two implementations count as equal."""


@dataclass(frozen=True)
class Contest:
    """Ours against another implementation, by pairs of samples of one turn."""

    other: Row
    ratios: Sequence[float]
    """The other's time over ours, for each turn."""

    @staticmethod
    def of(record: Record, other: Row | None) -> Contest | None:
        """The contest in a record; None if one of the two has no times."""
        ours = record.ours
        if ours is None or other is None or not isinstance(ours.outcome, Ok) or not isinstance(other.outcome, Ok):
            return None
        own = dict(zip(ours.outcome.turns, ours.outcome.samples, strict=True))
        theirs = zip(other.outcome.turns, other.outcome.samples, strict=True)
        ratios = [seconds / own[turn] for turn, seconds in theirs if turn in own]
        return Contest(other, ratios) if ratios else None

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    @property
    def decided(self) -> str:
        """The number of pairs in which ours is faster, and the result of a sign test."""
        faster, slower = sum(r > 1 for r in self.ratios), sum(r < 1 for r in self.ratios)
        word = "faster" if faster > slower else "slower"
        if sign_test(faster, slower) >= CERTAIN:
            word = "equal"
        return f"{word}, {faster} of {len(self.ratios)} pairs"


def peer_of(record: Record) -> Row | None:
    """The fastest implementation of other libraries."""
    return fastest(row for row in record.rows if row.library in LIBRARIES)


def in_process(record: Record) -> Row | None:
    """A library entry's program as code that pdojo compiles."""
    return fastest(row for row in record.rows if row.library == PROCESS)


def print_contests(console: Console, _: JSON, records: Sequence[Record]) -> None:
    """Print one line for each record, and the geometric means of the ratios."""
    headings = ["", "threads", "ms", "fastest other", "ms", "other / ours", "pairs"]
    with_process = any(in_process(record) is not None for record in records)
    rows = [_line(record) for record in records]
    if with_process:
        headings.append("in process / ours")
        for row, record in zip(rows, records, strict=True):
            own = Contest.of(record, in_process(record))
            row.append(number(None if own is None else own.ratio, ".3f"))
    console.print(table(headings, rows, words=(0, 3, 6)))
    for name, ratios in ratios_of(records).items():
        mean = geometric_mean(list(ratios.values()))
        if mean is not None:
            least = min(ratios, key=lambda label: ratios[label])
            over = f"geometric mean over {len(ratios)} (least {ratios[least]:.3f}, {least})"
            console.print(f"{mean:.3f} times as fast as {name}, {over}", highlight=False, soft_wrap=True)


def means_of(records: Sequence[Record]) -> JSON:
    """The geometric means of the ratios, by the other implementation."""
    return {name: geometric_mean(list(ratios.values())) for name, ratios in ratios_of(records).items()}


def ratios_of(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """The medians of pairs, by the other implementation and the label."""
    found: dict[str, dict[str, float]] = {}
    for record in records:
        rows = {"the fastest other library": peer_of(record)}
        rows |= {row.library: row for row in record.rows if row.library in (PROCESS, CONSTANT)}
        for library in dict.fromkeys(row.library for row in record.rows if row.library in LIBRARIES):
            rows[LIBRARIES[library].title] = fastest(row for row in record.rows if row.library == library)
        for name, row in rows.items():
            contest = Contest.of(record, row)
            if contest is not None:
                found.setdefault(name, {})[record.label] = contest.ratio
    return found


def _line(record: Record) -> list[str]:
    peer = peer_of(record)
    contest = Contest.of(record, peer)
    milliseconds = None if peer is None or not isinstance(peer.outcome, Ok) else peer.outcome.median * 1e3
    failed = "" if record.median is not None or record.ours is None else record.ours.outcome.summary
    return [
        escape(record.label),
        str(record.threads),
        number(None if record.median is None else record.median * 1e3, ".4g"),
        escape(failed) if peer is None else escape(title(peer)),
        number(milliseconds, ".4g"),
        number(None if contest is None else contest.ratio, ".3f"),
        "" if contest is None else contest.decided,
    ]


def chart_of(records: Sequence[Record], settings: JSON) -> str | None:
    """A chart of the ratios to the fastest other library; None if no record has one."""
    bars: list[Bar] = []
    for record in records:
        contest = Contest.of(record, peer_of(record))
        name = "" if contest is None else LIBRARIES[contest.other.library].title
        bars.append(Bar(record.label, None if contest is None else contest.ratio, name))
    if all(bar.ratio is None for bar in bars):
        return None
    threads = max(record.threads for record in records)
    machine = f"{processor_of(settings) or 'unknown processor'}, {threads} thread{'s' * (threads > 1)}"
    names = [LIBRARIES[name].title for name in settings["libraries"]]
    return drawn([Panel(machine, settings["started"][:10], names, True, bars)])
