"""Programs and what they cost, all in turns on inputs that no search has had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pdojo.backends.backend import backend_of
from pdojo.backends.measure import KernelReference, Options, Outcome, Program, cost_of
from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp

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


def measure(
    programs: Sequence[tuple[str, KernelOp, int]], machine: Machine, seed: int, tell: Callable[[str], None]
) -> list[Timed]:
    """Check programs on fresh inputs against the first one, which is plain, and time them in turns.

    Programs come with a title and their number of moves; equal ones are timed once. `tell` is told what is done now.
    """
    wanted = [Program.of(kernel, machine) for _, kernel, _ in programs]
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
