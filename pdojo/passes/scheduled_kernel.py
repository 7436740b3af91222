"""A scheduled kernel: the moves of a trace, followed by an expert pass's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import IllegalMove, LocationError
from pdojo.passes.common.builder import Note
from pdojo.passes.common.parameters import ParameterValues, TuningParameter
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

PASS = "heuristic"
"""The expert pass of models and libraries."""
Scheduler: TypeAlias = Callable[[KernelOp, Machine], KernelOp | None]
"""Gives a program for a plain kernel on a machine; None if it knows none."""


@dataclass
class ScheduledKernel:
    """A kernel and the moves made on it."""

    game: Game
    notes: list[Note] = field(default_factory=list[Note])
    """The expert pass's notes on its moves."""
    choices: tuple[TuningParameter, ...] = ()
    """The tuning parameters of the pass, with the chosen answers."""

    @property
    def before(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self.game.initial.kernel

    @property
    def after(self) -> KernelOp:
        """The tuned kernel."""
        return self.game.kernel


def assume_alignment(kernel: KernelOp, given: int | None, trace: Trace | None = None) -> KernelOp:
    """A copy with the callers' alignment: `given`, else the trace's, else the default."""
    if given is not None:
        return with_alignment(kernel, given)
    return with_alignment(kernel, *(trace.alignments if trace and trace.alignments else (ALIGNMENT,)))


def make_moves(
    kernel: KernelOp,
    machine: Machine,
    expert: str | None,
    trace: Trace | None = None,
    decisions: ParameterValues | None = None,
) -> ScheduledKernel:
    """Replay a trace, then run an expert pass; either may be None. `decisions` set the pass's tuning parameters.

    Raises IllegalMove or LocationError, with the number of the move, for a trace that does not apply.
    """
    tuning = ScheduledKernel(Game(kernel, machine))
    for number, step in enumerate(trace.steps if trace else ()):
        try:
            tuning.game.apply(step.resolved)
        except (IllegalMove, LocationError) as error:
            differs = trace.missing(kernel) if trace else ""
            raise type(error)(f"move {number} of the trace, {step.move}: {error}{differs}") from None
    if expert is not None:
        played = run_pass(expert, tuning.game, decisions)
        tuning.notes, tuning.choices = played.notes, played.choices
    return tuning
