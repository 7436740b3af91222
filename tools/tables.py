"""Shared output of the tools: programs, traces, and tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.backends.calibration.bandwidth import Bandwidth
from pdojo.backends.measure import Ok, Outcome, Success
from pdojo.backends.measure.outcome import LOOP_ALIKE
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.passes.kind import Finding
from pdojo.passes.scheduled_kernel import ScheduledKernel


@dataclass(frozen=True)
class TableRow:
    """A row of a table of measurements."""

    title: str
    outcome: Outcome
    moves: int | None = None
    """Length of the trace; None for other libraries."""


def print_program(console: Console, title: str, kernel: KernelOp) -> None:
    """Print a program in the notation under a heading."""
    console.print(Rule(escape(title), align="left"))
    console.print(print_notation(kernel), markup=False, highlight=False, soft_wrap=True)


def print_trace(console: Console, title: str, tuning: ScheduledKernel) -> None:
    """Print the moves of a trace, with the expert pass's reasons."""
    steps = tuning.game.trace.steps
    console.print(Rule(escape(f"{title}: {len(steps)} moves"), align="left"))
    reasons = [""] * (len(steps) - len(tuning.notes)) + [note.why for note in tuning.notes]
    width = max((len(str(step.move)) for step in steps), default=0)
    for number, (step, why) in enumerate(zip(steps, reasons, strict=True)):
        line = f"{number:3}  {step.move!s:{width}}  {why}".rstrip()
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print what an audit found slow in a program."""
    for finding in findings:
        console.print(f"slow: {finding}", markup=False, highlight=False, soft_wrap=True)
    if not findings:
        console.print("the audit of the program finds nothing slow", highlight=False)


def measurements(rows: Sequence[TableRow], traffic: int, copy: Bandwidth | None = None) -> Table:
    """A table of outcomes; for times it includes the rate of moving `traffic` bytes in the median time."""
    found = next((row.outcome for row in rows if isinstance(row.outcome, Success)), None)
    rates = ["GB/s", "of copy"][: 2 if copy else 1] if isinstance(found, Ok) else []
    headings = [*(found.figures if found is not None else ["cost"]), *rates]
    table = Table()
    table.add_column("", no_wrap=True)
    for heading in ("moves", *headings):
        table.add_column(heading, justify="right")
    table.add_column("result")
    for row in rows:
        moves = "" if row.moves is None else str(row.moves)
        table.add_row(escape(row.title), moves, *_cells(row.outcome, len(headings), traffic, copy))
    return table


def _cells(outcome: Outcome, width: int, traffic: int, copy: Bandwidth | None) -> list[str]:
    if not isinstance(outcome, Success):
        return [*[""] * width, f"[red]{escape(outcome.summary)}[/red]"]
    cells = list(outcome.figures.values())
    if isinstance(outcome, Ok):
        rate = traffic / outcome.median
        cells += [f"{rate / 1e9:.1f}", *([f"{rate / copy.bytes_per_second:.0%}"] if copy else [])]
    return [*cells, outcome.rightness if outcome.check is None else f"[green]{outcome.rightness}[/green]"]


def timing_notes(named: Sequence[tuple[str, Outcome]]) -> list[str]:
    """Warnings about times: foreign load, plain loops that differ from samples, calls that never became steady."""
    timed = [(name, outcome) for name, outcome in named if isinstance(outcome, Ok)]
    differing = [f"{name} ({o.loop_call - 1:+.0%})" for name, o in timed if o.loop_call and not o.is_confirmed]
    unsteady = [name for name, o in timed if o.steady is not None and 2 * o.steady.unsteady > len(o.samples)]
    load = busy_note(outcome.foreign_load for _, outcome in timed)
    found = [] if load is None else [load]
    if differing:
        found.append(f"a plain loop differs by more than {LOOP_ALIKE:.0%} from the samples: {', '.join(differing)}")
    if unsteady:
        found.append(f"calls did not become steady before most samples: {', '.join(unsteady)}")
    return found


def busy_note(loads: Iterable[float | None]) -> str | None:
    """A warning if other programs kept many processors busy during measurements; None if few."""
    most = max((load for load in loads if load is not None), default=0.0)
    if most < 0.1:
        return None
    return f"other programs kept {most:.1f} processors busy meanwhile: these times are not the machine's best"
