"""Timing of programs in turns, checked against the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from pdojo.backends.measure import (
    KernelReference,
    MeasuredProgram,
    Ok,
    Options,
    Outcome,
    cost_of,
)
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.passes.verification.running import Stopwatch
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.contract.racing import Race

FRESH = 1 << 62
"""Offset of the seeds of the last measurement's inputs, beyond the seeds of searches."""
SECONDS = 2.5
"""Seconds of samples in the last measurement; the plain kernel's samples take at most as many more."""


MeasuredRow: TypeAlias = tuple[str, KernelOp, int]
"""A title, a program and its number of moves."""


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

    def beside(self, other: Timed) -> Race | None:
        """The race with a program of the same measurement: the samples of their common turns; None if they share no
        turns.
        """
        mine, its = self.outcome, other.outcome
        if not (isinstance(mine, Ok) and isinstance(its, Ok)):
            return None
        shared = set(mine.turns) & set(its.turns)
        return Race(_on_turns(mine, shared), _on_turns(its, shared)) if shared else None


def _on_turns(outcome: Ok, turns: AbstractSet[int]) -> Evaluation:
    samples = [seconds for turn, seconds in zip(outcome.turns, outcome.samples, strict=True) if turn in turns]
    return Evaluation(outcome.median, detail={**outcome.to_json(), "samples": samples, "all_samples": outcome.samples})


def measure(
    programs: Sequence[MeasuredRow],
    plain: KernelOp,
    machine: Machine,
    seed: int,
    tell: Callable[[str], None],
) -> list[Timed]:
    """Check programs on fresh inputs against the kernel `plain`, and time them in turns: steadily, and `plain` briefly.

    Equal programs are timed once. `tell` receives the current phase.
    """
    wanted = [MeasuredProgram.of(kernel, machine) for _, kernel, _ in programs]
    distinct = {program.text: program for program in wanted}
    titles = {program.text: title for program, (title, _, _) in reversed(list(zip(wanted, programs, strict=True)))}
    shown = [titles[text] for text in distinct]
    options = Options(threads=machine.threads, seed=seed, steady=True, total=SECONDS, brief=True)
    reference = KernelReference(MeasuredProgram.of(plain, machine).text, compiled=True)
    with Stopwatch(machine, reference, options) as watch:
        outcomes = watch.compare(list(distinct.values()), lambda event: tell(f"{shown[event.index]}: {event.phase}"))
    found = dict(zip(distinct, outcomes, strict=True))
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]
