"""Timing of programs in turns, checked against the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from pdojo.backends.backend import Runs, backend_of
from pdojo.backends.measure import Event, KernelReference, MeasuredProgram, Options, Outcome, cost_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp

FRESH = 1 << 62
"""Offset of the seed of the last measurement's inputs: no search has such seeds."""


@dataclass(frozen=True)
class Timed:
    """A program and its measurement."""

    title: str
    outcome: Outcome
    moves: int

    @property
    def cost(self) -> float:
        """Seconds or simulated cycles; infinite after a failure."""
        return cost_of(self.outcome)


class Stopwatch:
    """Times programs and compares their results with those of the plain program, a text in the notation.

    Processes are started once. One thread measures; another one may call `interrupt`.
    """

    def __init__(self, machine: Machine, plain: str, options: Options | None = None) -> None:
        self._machine = machine
        self._reference = KernelReference(plain)
        self._options = options or Options(threads=machine.threads)
        self._started: Runs | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def compare(self, programs: Sequence[MeasuredProgram], listen: Callable[[Event], None]) -> list[Outcome]:
        """Time programs in turns. Raises MeasurementError if it fails or is interrupted."""
        if self._started is None:
            self._started = backend_of(self._machine).runs()
        return self._started.compare(programs, self._options, self._reference, listen)

    def interrupt(self) -> None:
        """Interrupt the current measurement."""
        if self._started is not None:
            self._started.interrupt()

    def close(self) -> None:
        """End all processes; no measurement may be running."""
        if self._started is not None:
            self._started.close()


def measure(
    programs: Sequence[tuple[str, KernelOp, int]], machine: Machine, seed: int, tell: Callable[[str], None]
) -> list[Timed]:
    """Check programs on fresh inputs against the first one, which is plain, and time them in turns, steadily.

    A program comes with a title and its number of moves; equal ones are timed once. `tell` receives the current phase.
    """
    wanted = [MeasuredProgram.of(kernel, machine) for _, kernel, _ in programs]
    distinct = {program.text: program for program in wanted}
    titles = {program.text: title for program, (title, _, _) in reversed(list(zip(wanted, programs, strict=True)))}
    shown = [titles[text] for text in distinct]
    with Stopwatch(machine, wanted[0].text, Options(threads=machine.threads, seed=seed, steady=True)) as watch:
        outcomes = watch.compare(list(distinct.values()), lambda event: tell(f"{shown[event.index]}: {event.phase}"))
    found = dict(zip(distinct, outcomes, strict=True))
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]
