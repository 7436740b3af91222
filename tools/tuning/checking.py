"""Is the tuned program right, and what did it gain: the exact oracle, and all programs in turns on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from pdojo_tools.tables import Row, load_note, measurements
from rich.console import Console

from pdojo.backends.arrays import parameters_of
from pdojo.backends.backend import backend_of
from pdojo.backends.measure import KernelReference, Options, Outcome, Program, cost_of
from pdojo.backends.measure.arrays import data_bytes
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.errors import InvalidKernel, MeasurementError
from pdojo.kernels import Workload
from pdojo.search.deciding import Decision, decide
from pdojo.search.tuning import Tuning

FRESH = 1 << 62
"""Is added to the seed of the last measurement's inputs: no search has had those."""


@dataclass(frozen=True)
class Timed:
    """A program and its times."""

    title: str
    outcome: Outcome
    moves: int

    @property
    def cost(self) -> float:
        """Seconds, or simulated cycles; infinite where it failed."""
        return cost_of(self.outcome)


def unit_of(machine: Machine) -> str:
    """The unit of measurements for a machine."""
    return backend_of(machine).unit


def verify(console: Console, tuning: Tuning, source: Workload | str | None) -> Decision:
    """Decide whether the tuned program keeps its meaning, and print what was checked. Raises InvalidKernel."""
    with console.status("exact oracle", refresh_per_second=1):
        decision = decide(tuning, source)
    if decision.fault is not None:
        raise InvalidKernel(f"the tuned program means something else: {decision.fault}; please report this trace")
    console.print(decision.said, highlight=False, soft_wrap=True)
    return decision


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
    backend = backend_of(machine)
    doing = "simulating" if backend.is_simulated else "measuring"
    with backend.runs() as runs, console.status(doing, refresh_per_second=1) as status:
        outcomes = runs.compare(
            list(distinct.values()),
            Options(threads=machine.threads, seed=seed),
            KernelReference(wanted[0].text),
            lambda event: status.update(f"{shown[event.index]}: {event.phase}"),
        )
    return _named(programs, wanted, dict(zip(distinct, outcomes, strict=True)))


def _named(
    programs: Sequence[tuple[str, KernelOp, int]], wanted: Sequence[Program], found: Mapping[str, Outcome]
) -> list[Timed]:
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]


def print_times(console: Console, timed: Sequence[Timed], plain: KernelOp) -> None:
    """The table, and how many times as fast the last one is. Raises MeasurementError where it failed."""
    rows = [Row(each.title, each.outcome, each.moves) for each in timed]
    console.print(measurements(rows, data_bytes(parameters_of(nest_of(plain)))))
    note = load_note([each.outcome for each in timed])
    if note is not None:
        console.print(note, style="yellow", soft_wrap=True)
    *others, last = timed
    if last.cost == inf:
        raise MeasurementError(f"the tuned program: {last.outcome.summary}")
    for other in others:
        if other.cost < inf:
            console.print(f"{other.cost / last.cost:.2f} times as fast as {other.title}", highlight=False)
