"""Summaries of a fuzz run, as tables and as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.table import Table

from pdojo.transforms.move import Move
from qa.fuzzing.jobs import Found, FuzzPlan, Report
from qa.random_kernels.coverage import TABLE_2, Coverage
from qa.traces import TraceCounts
from qa.walks import Counts


@dataclass
class Totals:
    """The sums over all processes of a run."""

    counts: Counts = field(default_factory=Counts)
    traces: TraceCounts = field(default_factory=TraceCounts)
    features: Coverage = field(default_factory=Coverage)
    failures: list[Report] = field(default_factory=list[Report])
    seconds: float = 0.0
    interrupted: bool = False

    def add_unfinished(self, moves: Iterable[str]) -> None:
        """Add the judged moves of an unfinished walk."""
        self.counts.moves.update(Move.parse(move).name for move in moves)

    def add(self, found: Found) -> None:
        """Add one walk or trace."""
        self.counts.add(found.counts)
        self.traces.add(found.traces)
        self.features.kernels += found.features.kernels
        self.features.features.update(found.features.features)
        if found.failure is not None:
            self.failures.append(found.failure)

    def line(self, started: float, begun: int = 0) -> str:
        """The progress on a line; `begun` is the number of moves of unfinished walks."""
        elapsed = max(time.monotonic() - started, 1e-9)
        if self.traces.traces:
            text = f"{self.traces.traces} traces, {self.traces.traces / elapsed:.1f}/s"
        else:
            moves = self.counts.total + begun
            text = f"{moves} moves, {moves / elapsed:.1f}/s"
        return text + (f", [red]{len(self.failures)} failures[/red]" if self.failures else "")


def tables(plan: FuzzPlan, totals: Totals) -> list[Table]:
    """Tables of moves by family, and of kernels by feature."""
    return [_moves(plan, totals), _features(totals.features)]


def _moves(plan: FuzzPlan, totals: Totals) -> Table:
    counts, traces = totals.counts, totals.traces
    table = Table(title="\n".join(headlines(plan, totals)), title_justify="left")
    table.add_column("family")
    table.add_column("moves", justify="right")
    moves = traces.moves if plan.traces else counts.moves
    if not plan.traces:
        table.add_column("refused", justify="right")
    for name in sorted(moves | counts.refused, key=lambda name: (-moves[name], name)):
        table.add_row(name, str(moves[name]), *([] if plan.traces else [str(counts.refused[name])]))
    table.add_section()
    table.add_row("all", str(moves.total()), *([] if plan.traces else [str(counts.refused.total())]))
    return table


def headlines(plan: FuzzPlan, totals: Totals) -> list[str]:
    """The summary in two lines."""
    seconds, counts, traces = max(totals.seconds, 1e-9), totals.counts, totals.traces
    machines = ", ".join(plan.machines)
    if plan.traces:
        first = f"{traces.traces} traces, {traces.traces / seconds:.1f}/s"
        second = (
            f"all undone, {traces.replayed} replayed, {traces.edited} without one move: {traces.kept} later kept, "
            f"{traces.skipped} skipped; {traces.executed} compared by execution"
        )
    else:
        first = f"{counts.total} moves in {counts.walks} walks, {counts.total / seconds:.1f} moves/s"
        sets = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.sets.items())) or "none"
        second = f"all by exact arithmetic; by integer sets: {sets}; {counts.compiled} states compiled"
        if counts.not_lowered:
            second += f", {counts.not_lowered.total()} that the backend cannot express"
    end = ", interrupted" if totals.interrupted else ""
    return [f"seed {plan.seed}, {machines}: {first}, {seconds:.0f} s, {len(totals.failures)} failures{end}", second]


def _features(coverage: Coverage) -> Table:
    table = Table(title=f"features of {coverage.kernels} kernels", title_justify="left")
    table.add_column("feature")
    table.add_column("kernels", justify="right")
    for name in TABLE_2:
        table.add_row(f"{name} (Table 2)", str(coverage.features[name]))
    table.add_section()
    for name in sorted(set(coverage.features) - set(TABLE_2)):
        table.add_row(name, str(coverage.features[name]))
    return table


def as_json(plan: FuzzPlan, processes: int, totals: Totals) -> str:
    """The summary as JSON."""
    counts, traces = totals.counts, totals.traces
    found = {
        "seed": plan.seed,
        "machines": plan.machines,
        "processes": processes,
        "seconds": round(totals.seconds, 1),
        "interrupted": totals.interrupted,
        "walks": counts.walks,
        "moves": dict(counts.moves),
        "refused": dict(counts.refused),
        "integer_sets": dict(counts.sets),
        "compiled": counts.compiled,
        "not_lowered": dict(counts.not_lowered),
        "traces": {
            "traces": traces.traces,
            "moves": dict(traces.moves),
            "lengths": {str(n): k for n, k in sorted(traces.lengths.items())},
            "replayed": traces.replayed,
            "edited": traces.edited,
            "kept": traces.kept,
            "skipped": traces.skipped,
            "executed": traces.executed,
        },
        "kernels": totals.features.kernels,
        "features": dict(sorted(totals.features.features.items())),
        "failures": [vars(report) for report in totals.failures],
    }
    return json.dumps(found, indent=2) + "\n"
