"""Summaries of a fuzz run, as tables and as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.table import Table

from pdojo.transforms.move import Move
from qa.fuzzing.jobs import Found, FuzzPlan, Report
from qa.kernel_coverage import TABLE_2
from qa.walks import Counts

TRACES = ("traces", "replayed", "edited", "kept", "skipped", "executed")
"""Counts of traces."""


@dataclass
class Totals:
    """The sums over all processes of a run."""

    counts: Counts = field(default_factory=Counts)
    failures: list[Report] = field(default_factory=list[Report])
    seconds: float = 0.0
    interrupted: bool = False

    def add_unfinished(self, moves: Iterable[str]) -> None:
        """Add the judged moves of an unfinished walk."""
        self.counts.update(("moves", Move.parse(move).name) for move in moves)

    def add(self, found: Found) -> None:
        """Add one walk or trace."""
        self.counts.update(found.counts)
        if found.failure is not None:
            self.failures.append(found.failure)

    def line(self, started: float, begun: int = 0) -> str:
        """The progress on a line; `begun` is the number of moves of unfinished walks."""
        elapsed = max(time.monotonic() - started, 1e-9)
        traces, moves = self.counts["traces", ""], self.counts.moves + begun
        text = f"{traces} traces, {traces / elapsed:.1f}/s" if traces else f"{moves} moves, {moves / elapsed:.1f}/s"
        return text + (f", [red]{len(self.failures)} failures[/red]" if self.failures else "")


def tables(plan: FuzzPlan, totals: Totals) -> list[Table]:
    """Tables of moves by family, and of kernels by feature."""
    return [_moves(plan, totals), _features(totals.counts)]


def _moves(plan: FuzzPlan, totals: Totals) -> Table:
    table = Table(title="\n".join(headlines(plan, totals)), title_justify="left")
    table.add_column("family")
    shown = {what: totals.counts.of(what) for what in ("moves", "refused")[: 1 if plan.traces else 2]}
    for what in shown:
        table.add_column(what, justify="right")
    moves = shown["moves"]
    for name in sorted({name for each in shown.values() for name in each}, key=lambda name: (-moves[name], name)):
        table.add_row(name, *(str(each[name]) for each in shown.values()))
    table.add_section()
    table.add_row("all", *(str(each.total()) for each in shown.values()))
    return table


def headlines(plan: FuzzPlan, totals: Totals) -> list[str]:
    """The summary in two lines."""
    seconds, counts = max(totals.seconds, 1e-9), totals.counts
    machines = ", ".join(plan.machines)
    number = {what: counts[what, ""] for what in TRACES}
    if plan.traces:
        first = f"{number['traces']} traces, {number['traces'] / seconds:.1f}/s"
        second = (
            f"all undone, {number['replayed']} replayed, {number['edited']} without one move: {number['kept']} later "
            f"kept, {number['skipped']} skipped; {number['executed']} compared by execution"
        )
    else:
        first = f"{counts.moves} moves in {counts['walks', '']} walks, {counts.moves / seconds:.1f} moves/s"
        sets = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.of("sets").items())) or "none"
        second = f"all by exact arithmetic; by integer sets: {sets}; {counts['compiled', '']} states compiled"
        if missing := counts.of("not lowered").total():
            second += f", {missing} that the backend cannot express"
    end = ", interrupted" if totals.interrupted else ""
    return [f"seed {plan.seed}, {machines}: {first}, {seconds:.0f} s, {len(totals.failures)} failures{end}", second]


def _features(counts: Counts) -> Table:
    features = counts.of("features")
    table = Table(title=f"features of {counts['kernels', '']} kernels", title_justify="left")
    table.add_column("feature")
    table.add_column("kernels", justify="right")
    for name in TABLE_2:
        table.add_row(f"{name} (Table 2)", str(features[name]))
    table.add_section()
    for name in sorted(set(features) - set(TABLE_2)):
        table.add_row(name, str(features[name]))
    return table


def as_json(plan: FuzzPlan, processes: int, totals: Totals) -> str:
    """The summary as JSON."""
    counts, moves = totals.counts, totals.counts.of("moves")
    lengths = sorted(counts.of("lengths").items(), key=lambda item: int(item[0]))
    found = {
        "seed": plan.seed,
        "machines": plan.machines,
        "processes": processes,
        "seconds": round(totals.seconds, 1),
        "interrupted": totals.interrupted,
        "walks": counts["walks", ""],
        "moves": {} if plan.traces else moves,
        "refused": counts.of("refused"),
        "integer_sets": counts.of("sets"),
        "compiled": counts["compiled", ""],
        "not_lowered": counts.of("not lowered"),
        "traces": {
            "moves": moves if plan.traces else {},
            "lengths": dict(lengths),
            **{what: counts[what, ""] for what in TRACES},
        },
        "kernels": counts["kernels", ""],
        "features": dict(sorted(counts.of("features").items())),
        "failures": [vars(report) for report in totals.failures],
    }
    return json.dumps(found, indent=2) + "\n"
