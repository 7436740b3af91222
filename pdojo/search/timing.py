"""Timing of programs in turns, on inputs that no search has used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pdojo.backends.backend import backend_of
from pdojo.backends.measure import KernelReference, MeasuredProgram, Options, Outcome, cost_of
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


def measure(
    programs: Sequence[tuple[str, KernelOp, int]], machine: Machine, seed: int, tell: Callable[[str], None]
) -> list[Timed]:
    """Check programs on fresh inputs against the first one, which is plain, and time them in turns.

    A program comes with a title and its number of moves; equal ones are timed once. `tell` receives the current phase.
    """
    wanted = [MeasuredProgram.of(kernel, machine) for _, kernel, _ in programs]
    distinct = {program.text: program for program in wanted}
    titles = {program.text: title for program, (title, _, _) in reversed(list(zip(wanted, programs, strict=True)))}
    shown = [titles[text] for text in distinct]
    with backend_of(machine).runs() as runs:
        outcomes = runs.compare(
            list(distinct.values()),
            Options(threads=machine.threads, seed=seed),
            KernelReference(wanted[0].text),
            lambda event: tell(f"{shown[event.index]}: {event.phase}"),
        )
    found = dict(zip(distinct, outcomes, strict=True))
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]
