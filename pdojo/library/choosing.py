"""The moves of each program: known or tuned ones, or those of the expert pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from pdojo.dialect.assumptions import with_alignment
from pdojo.library.entries import PlannedEntry
from pdojo.library.levels import Level
from pdojo.passes.scheduled_kernel import PASS, ScheduledKernel, make_moves
from pdojo.transforms.trace import Trace

How = Literal["plain", "pass", "database", "tuned", "adapted"]
"""Where moves come from; `adapted` are the moves of the aligned variant as far as they are legal."""


@dataclass(frozen=True)
class Choice:
    """The program of a variant."""

    tuning: ScheduledKernel
    how: How

    @property
    def trace(self) -> Trace:
        """The moves from the plain kernel."""
        return self.tuning.game.trace


class Tuner(Protocol):
    """Gives the moves of programs of the level that this computer measures."""

    def known(self, entry: PlannedEntry, level: Level) -> Trace | None:
        """The known moves of the aligned variant; None if it must be tuned."""
        ...

    def tune(self, entry: PlannedEntry, level: Level) -> Trace:
        """The moves of the aligned variant after tuning, known from now on.

        Raises MeasurementError or InvalidKernel if tuning fails.
        """
        ...


class Chooser:
    """Chooses the programs of a library; without a tuner, only levels that are not measured have programs."""

    def __init__(self, tuner: Tuner | None) -> None:
        self.tuner = tuner

    def choose(self, entry: PlannedEntry, level: Level, align: int, aligned: Trace | None = None) -> Choice:
        """The program of an entry for a level and an alignment; `aligned` are the moves of the aligned variant.

        Raises MeasurementError or InvalidKernel if tuning fails, and the errors of the pass.
        """
        plain = with_alignment(entry.kernel, align)
        machine = level.tuned
        if not entry.is_tuned:
            return Choice(make_moves(plain, machine, None), "plain")
        if not (level.is_measured and entry.is_timed):
            return Choice(make_moves(plain, machine, PASS), "pass")
        if aligned is not None:
            made = make_moves(plain, machine, None)
            made.game.become(step.resolved for step in aligned.steps)
            return Choice(made, "adapted")
        assert self.tuner is not None
        known = self.tuner.known(entry, level)
        if known is not None:
            return Choice(make_moves(plain, machine, None, known), "database")
        return Choice(make_moves(plain, machine, None, self.tuner.tune(entry, level)), "tuned")

    def is_known(self, entry: PlannedEntry, level: Level) -> bool:
        """Whether a program of the measured level need not be tuned."""
        return self.tuner is not None and self.tuner.known(entry, level) is not None
