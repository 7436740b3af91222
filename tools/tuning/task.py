"""The tuning task of a command line."""

from __future__ import annotations

import argparse

from pdojo_tools.programs import load_named, machine_for

from pdojo.dialect.machines.machine import Machine
from pdojo.search.tuning.scheduled_kernel import assume_alignment, make_moves
from pdojo.search.tuning.task import TuningTask
from pdojo.transforms.trace import Trace


def subject_of(title: str, given: argparse.Namespace, host: Machine | None = None) -> TuningTask:
    """The task that a word of the command line names. Raises PdojoError for a bad kernel or trace.

    `host` replaces the machine of that name.
    """
    found = load_named(title, given.kernel, shape=given.shape, dtype=given.dtype)
    machine = machine_for(found.kernel, given.machine, given.threads, host, trust=given.trust_machine)
    trace = None if given.trace is None else Trace.load(given.trace)
    begun = make_moves(assume_alignment(found.kernel, given.align, trace), machine, None, trace)
    return TuningTask(found.title, found.workload, begun, found.source, given.expert, trace)
