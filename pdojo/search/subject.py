"""What is tuned: a kernel, its machine, and what the expert pass makes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.kernels import Workload
from pdojo.search.dojo import Dojo
from pdojo.search.tuning import Tuning


@dataclass(frozen=True)
class Subject:
    """A kernel to tune."""

    title: str
    """How messages and tables call it."""
    workload: Workload | None
    """None for a kernel that is not the library's."""
    passed: Tuning
    """The kernel after the trace that was given and the expert pass."""
    source: Workload | str | None
    """What gives the kernel at other sizes: its workload, or its text in the notation; None if it has neither."""
    expert: str
    """The name of the pass, or `none`."""

    @property
    def machine(self) -> Machine:
        """The machine that it is tuned for."""
        return self.passed.game.machine

    @property
    def alignment(self) -> str:
        """Bytes to which callers align the arrays: one number, or one for each where they differ."""
        return " ".join(map(str, self.passed.game.trace.alignments))

    @property
    def plain(self) -> KernelOp:
        """The kernel before the first move, in canonical form."""
        return self.passed.before

    def start(self, where: str) -> Dojo:
        """The state that a search starts from: the plain kernel (`plain`), or what the pass made of it (`pass`)."""
        dojo = Dojo.of(self.passed.game)
        if where == "plain":
            dojo.become([])
        return dojo

    @property
    def slug(self) -> str:
        """The title as the name of a file."""
        known = Path(self.title).stem if self.workload is None else self.title
        return re.sub(r"[^\w.=-]+", "-", known).strip("-.") or "kernel"
