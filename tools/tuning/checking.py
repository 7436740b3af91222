"""Is the tuned program right, and what did it gain: the exact oracle, and all programs in turns on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo_tools.tables import Row, load_note, measurements
from rich.console import Console

from pdojo.backends.arrays import parameters_of
from pdojo.backends.measure import KernelReference, Ok, Options, Outcome, Program, Worker
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.errors import InvalidKernel, MeasurementError
from pdojo.search.tuning import OracleVerdict, Tuning, check_meaning

FRESH = 1 << 62
"""Is added to the seed of the last measurement's inputs: no search has had those."""


@dataclass(frozen=True)
class Timed:
    """A program and its times."""

    title: str
    outcome: Outcome
    moves: int

    @property
    def median(self) -> float:
        """Seconds; infinite where it failed."""
        return self.outcome.median if isinstance(self.outcome, Ok) else inf


def verify(console: Console, tuning: Tuning) -> str:
    """The exact oracle on small sizes, where the trace fits them; returns what it said. Raises InvalidKernel."""
    verdict = check_meaning(tuning)
    match verdict:
        case OracleVerdict.EQUIVALENT:
            said = "exact oracle at reduced sizes: the same meaning"
        case OracleVerdict():
            said = f"exact oracle: not applicable, {verdict.value}"
        case difference:
            raise InvalidKernel(f"the tuned program means something else: {difference}; please report this trace")
    console.print(said, highlight=False)
    return said


def measure(
    console: Console, programs: Sequence[tuple[str, KernelOp, int]], machine: Machine, seed: int
) -> list[Timed]:
    """Check programs on fresh inputs against the first one, which is plain, and time them in turns.

    Programs come with a title and their number of moves; equal ones are timed once.
    """
    wanted = [Program.of(kernel, machine) for _, kernel, _ in programs]
    distinct = {program.text: program for program in wanted}
    titles = {program.text: title for program, (title, _, _) in reversed(list(zip(wanted, programs, strict=True)))}
    shown = [titles[text] for text in distinct]
    with Worker() as worker, console.status("measuring", refresh_per_second=1) as status:
        outcomes = worker.compare(
            list(distinct.values()),
            Options(threads=machine.threads, seed=seed),
            KernelReference(wanted[0].text),
            lambda event: status.update(f"{shown[event.index]}: {event.phase}"),
        )
    found = dict(zip(distinct, outcomes, strict=True))
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]


def print_times(console: Console, timed: Sequence[Timed], plain: KernelOp) -> None:
    """The table, and how many times as fast the last one is. Raises MeasurementError where it failed."""
    rows = [Row(each.title, each.outcome, each.moves) for each in timed]
    console.print(measurements(rows, data_bytes(parameters_of(nest_of(plain)))))
    note = load_note([each.outcome for each in timed])
    if note is not None:
        console.print(note, style="yellow", soft_wrap=True)
    *others, last = timed
    if not isinstance(last.outcome, Ok):
        raise MeasurementError(f"the tuned program: {last.outcome.summary}")
    for other in others:
        if isinstance(other.outcome, Ok):
            console.print(f"{other.median / last.median:.2f} times as fast as {other.title}", highlight=False)
