"""Tuning tasks: a kernel, its machine, and the expert pass's program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.kernels import Workload
from pdojo.passes.common.parameters import ParameterValues
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class TuningTask:
    """A kernel to tune."""

    title: str
    """The name in messages and tables."""
    workload: Workload | None
    """The workload; None if the kernel is not the library's."""
    begun: ScheduledKernel
    """The kernel after the given trace, before the expert pass."""
    source: Workload | str | None
    """A source for the kernel at other sizes: its workload, or its text in the notation; None if there is neither."""
    expert: str
    """The name of the pass, or `none`."""
    trace: Trace | None = None
    """The trace that was replayed before the pass; None if there was none."""
    raced: ScheduledKernel | None = None
    """The variant of the pass that won a race; None for the pass's preferences."""
    family: str = ""
    """The name of the kernel of which this one is a version; '' if it is none."""

    @cached_property
    def passed(self) -> ScheduledKernel:
        """The kernel after the given trace and the expert pass."""
        return self._made({}) if self.raced is None else self.raced

    @property
    def machine(self) -> Machine:
        """The machine to tune for."""
        return self.begun.game.machine

    @property
    def alignment(self) -> str:
        """Alignment of the arrays in bytes: one number, or one per array if they differ."""
        return " ".join(map(str, self.begun.game.trace.alignments))

    @property
    def plain(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self.begun.before

    def start(self, where: str) -> Game:
        """The start of a search: the plain kernel (`plain`), or the pass's program (`pass`)."""
        game = (self.begun if where == "plain" else self.passed).game.fork()
        if where == "plain":
            game.become([])
        return game

    def remade(self, decisions: ParameterValues) -> ScheduledKernel:
        """The trace and the pass, with decisions for the pass's tuning parameters."""
        return self._made(decisions) if decisions or self.raced is not None else self.passed

    def _made(self, decisions: ParameterValues) -> ScheduledKernel:
        if self.expert == "none":
            return self.begun
        return make_moves(self.plain, self.machine, self.expert, self.trace, decisions)

    @property
    def slug(self) -> str:
        """The title as a file name."""
        known = Path(self.title).stem if self.workload is None else self.title
        return re.sub(r"[^\w.=-]+", "-", known).strip("-.") or "kernel"
