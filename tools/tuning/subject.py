"""What is tuned: a kernel, its machine, and what the expert pass makes of it."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from pdojo_tools.programs import aligned, library_workload, load_kernel, machine_for, text_of

from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.kernels import Workload
from pdojo.search.dojo import Dojo
from pdojo.search.tuning import Tuning, tune
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Subject:
    """A kernel of the command line."""

    title: str
    """As it was given."""
    workload: Workload | None
    """None for kernels of files."""
    passed: Tuning
    """The kernel after the trace that was given and the expert pass."""
    source: Workload | str | None
    """What gives the kernel at other sizes: its workload, or its text in the notation; None where it has neither."""
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


def subject_of(title: str, given: argparse.Namespace, host: Machine | None = None) -> Subject:
    """The subject that a word of the command line names. Raises PdojoError for what is no kernel or no trace of it.

    `host` is what the machine of that name is; this one by default.
    """
    kernel = load_kernel(title, given.kernel, shape=given.shape, dtype=given.dtype)
    machine = machine_for(kernel, given.machine, given.threads, host, trust=given.trust_machine)
    trace = None if given.trace is None else Trace.load(given.trace)
    expert = None if given.expert == "none" else given.expert
    passed = tune(aligned(kernel, given.align, trace), machine, expert, trace)
    found = library_workload(title, given.shape, given.dtype)
    source = text_of(title) if found is None else found
    return Subject(title if found is None else found.label, found, passed, source, given.expert)
