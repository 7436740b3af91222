"""What the tools print: programs, traces, and tables of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.backends.bandwidth import Bandwidth
from pdojo.backends.measure import Ok, Outcome, Simulated
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.search.tuning import Tuning


@dataclass(frozen=True)
class Row:
    """A line of a table of measurements."""

    title: str
    outcome: Outcome
    moves: int | None = None
    """Length of the trace; None for what is no program of ours."""


def many(count: int, what: str) -> str:
    """`1 move`, `2 moves`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def print_program(console: Console, title: str, kernel: KernelOp) -> None:
    """A program in the notation, under a heading."""
    console.print(Rule(escape(title), align="left"))
    console.print(print_notation(kernel), markup=False, highlight=False, soft_wrap=True)


def print_trace(console: Console, title: str, tuning: Tuning) -> None:
    """The moves of a trace, with the reasons of those that an expert pass made."""
    steps = tuning.game.trace.steps
    console.print(Rule(escape(f"{title}: {len(steps)} moves"), align="left"))
    reasons = [""] * (len(steps) - len(tuning.notes)) + [note.why for note in tuning.notes]
    width = max((len(str(step.move)) for step in steps), default=0)
    for number, (step, why) in enumerate(zip(steps, reasons, strict=True)):
        line = f"{number:3}  {step.move!s:{width}}  {why}".rstrip()
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def measurements(rows: Sequence[Row], traffic: int, copy: Bandwidth | None = None) -> Table:
    """Times, and the rate at which `traffic` bytes a call were moved in the median time."""
    table = Table()
    table.add_column("", no_wrap=True)
    headings = ["moves", "median ms", "min ms", "spread", "GB/s"]
    for heading in [*headings, "of copy"] if copy else headings:
        table.add_column(heading, justify="right")
    table.add_column("result")
    for row in rows:
        table.add_row(*_cells(row, traffic, copy))
    return table


def _cells(row: Row, traffic: int, copy: Bandwidth | None) -> list[str]:
    moves = "" if row.moves is None else str(row.moves)
    outcome = row.outcome
    if not isinstance(outcome, Ok):
        empty = [""] * (5 if copy else 4)
        return [escape(row.title), moves, *empty, f"[red]{escape(outcome.summary)}[/red]"]
    rate = traffic / outcome.median
    cells = [
        escape(row.title),
        moves,
        f"{outcome.median * 1e3:.3f}",
        f"{outcome.minimum * 1e3:.3f}",
        f"{outcome.spread:.0%}",
        f"{rate / 1e9:.1f}",
    ]
    if copy:
        cells.append(f"{rate / copy.bytes_per_second:.0%}")
    return [*cells, "not checked" if outcome.check is None else "[green]right[/green]"]


def simulations(rows: Sequence[Row]) -> Table:
    """Cycles on a simulated core, and how busy its FPU was."""
    table = Table()
    table.add_column("", no_wrap=True)
    for heading in ("moves", "cycles", "instructions", "FPU busy", "of peak"):
        table.add_column(heading, justify="right")
    table.add_column("result")
    for row in rows:
        moves, outcome = "" if row.moves is None else str(row.moves), row.outcome
        if isinstance(outcome, Simulated):
            counts = f"{outcome.cycles:,}", f"{outcome.instructions:,}"
            cells = [*counts, f"{outcome.utilisation:.1%}", f"{outcome.fraction_of_peak:.1%}", right(outcome)]
        else:
            cells = ["", "", "", "", f"[red]{escape(outcome.summary)}[/red]"]
        table.add_row(escape(row.title), moves, *cells)
    return table


def right(outcome: Simulated) -> str:
    """How right a simulated program was: `exact` where it has the interpreter's bits on this very program."""
    if outcome.check is None:
        return "not checked"
    return "[green]exact[/green]" if outcome.same_bits else "[green]right[/green]"


def load_note(outcomes: Sequence[Outcome]) -> str | None:
    """A warning where others kept the processors busy during the measurement."""
    return busy_note(o.foreign_load for o in outcomes if isinstance(o, Ok))


def busy_note(loads: Iterable[float | None]) -> str | None:
    """The same, from the processors that others kept busy."""
    most = max((load for load in loads if load is not None), default=0.0)
    if most < 0.1:
        return None
    return f"other programs kept {most:.1f} processors busy meanwhile: these times are not the machine's best"
