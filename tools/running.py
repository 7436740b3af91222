"""The work of `pdojo-run`: runs, checks, times and saves a kernel."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from numpy.typing import NDArray
from pdojo_tools.moves import report_trace
from pdojo_tools.outputs import write_json
from pdojo_tools.phases import phase
from pdojo_tools.programs import load_kernel, machine_for
from rich.console import Console

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.calls import run_on_random
from pdojo.backends.common.binding import binding_note
from pdojo.backends.measure import KernelReference, MeasuredProgram, Ok, Options, Outcome, Success
from pdojo.backends.measure.arrays import data_bytes
from pdojo.backends.measure.outcome import GUARD_PAGES
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.errors import MeasurementError, UsageError
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from pdojo.transforms.trace import Trace

TIMING = 3.0
"""Seconds of timing; a longer first call is repeated at most twice."""
INTERPRETED = 1 << 28
"""Limit of statement instances for the interpreter as the reference of a transformed kernel: some seconds."""
PHASES = {
    "compile": "compiling",
    "run": "running once",
    GUARD_PAGES: "running between guard pages",
    "allocate": "preparing",
    "time": "timing",
    "simulate": "simulating",
}
"""Phases of a measurement in words."""


def run(given: argparse.Namespace) -> None:
    """Run the kernel of the command line. Raises PdojoError."""
    trace = None if given.trace is None else Trace.load(given.trace)
    loaded = load_kernel(given.program, given.kernel, shape=given.shape, dtype=given.dtype)
    plain = kernel = assume_alignment(loaded, given.align, trace)
    machine = machine_for(kernel, given.machine, given.threads, trust=given.trust_machine)
    if trace is not None:
        kernel = make_moves(kernel, machine, None, trace).after
        report_trace(str(given.trace), len(trace.steps), trace, kernel)
    facts: dict[str, Any] = {"kernel": kernel.sym_name.data, "machine": machine.name, "threads": machine.threads}
    reference = _reference(plain, kernel, machine)
    backend = backend_of(machine)
    if given.check or given.time:
        options = Options(
            machine.threads, cold=given.cold, check=given.check, seed=given.seed, steady=given.time, total=TIMING
        )
        if not given.time:
            options = replace(options, samples=1, budget=0)
        with backend.runs() as runs:
            program = MeasuredProgram.of(kernel, machine)
            by = "code of the plain kernel" if reference.compiled else "interpreter"
            phases = {**PHASES, "reference": f"the {by} computes the right results"}
            with phase(Console(stderr=True), "running") as tell:
                (outcome,) = runs.compare([program], options, reference, lambda event: tell(phases[event.phase]))
        success = _success(kernel, machine, outcome)
        _report(kernel, machine, success, sys.stderr if given.json else sys.stdout, timed=given.time)
        facts |= _facts(kernel, success, timed=given.time)
    if given.output is not None:
        _save(given.output, run_on_random(kernel, machine, given.seed))
        facts["output"] = given.output
        (sys.stderr if given.json else sys.stdout).write(f"saved inputs and outputs in {given.output}\n")
    if given.json:
        write_json(facts)


def _reference(plain: KernelOp, kernel: KernelOp, machine: Machine) -> KernelReference:
    """The source of the correct results: the interpreter, or plain code if the interpreter would take long.

    Plain code is independent of the moves, but not of the backend; so it is no reference for a kernel without moves.
    """
    text = print_notation(plain)
    is_large = count_instances(nest_of(plain)) > INTERPRETED
    moved = text != print_notation(kernel)
    return KernelReference(text, compiled=moved and is_large and not backend_of(machine).is_simulated)


def _success(kernel: KernelOp, machine: Machine, outcome: Outcome) -> Success:
    """The outcome. Raises MeasurementError if it is a failure."""
    name = kernel.sym_name.data
    if not isinstance(outcome, Success):
        detail = getattr(outcome, "detail", "")
        raise MeasurementError(
            f"kernel '{name}' on {machine.name}: {outcome.summary}" + (f"\n{detail}" if detail else "")
        )
    return outcome


def _facts(kernel: KernelOp, outcome: Success, *, timed: bool) -> dict[str, Any]:
    """The outcome for programs."""
    return {
        "right": outcome.rightness,
        "check": None if outcome.check is None else asdict(outcome.check),
        "cost": outcome.cost if timed else None,
        "unit": outcome.unit,
        "bytes": data_bytes(parameters_of(nest_of(kernel))),
        "outcome": outcome.to_json() if timed else None,
    }


def _report(kernel: KernelOp, machine: Machine, outcome: Success, output: TextIO, *, timed: bool) -> None:
    """Print the outcome for people."""
    name, write = kernel.sym_name.data, output.write
    threads = "thread" if machine.threads == 1 else "threads"
    how = "simulated"
    if isinstance(outcome, Ok):
        how = f"{machine.threads} {threads}, compiled in {outcome.compile_seconds:.2f} s"
    write(f"kernel '{name}' on {machine.name}, {how}\n")
    if outcome.check is not None:
        bits = "; the interpreter gives this very program the same bits" if outcome.rightness == "exact" else ""
        error = f"largest error {outcome.check.error:.1%} of what is allowed"
        by = outcome.check.reference.replace("plain code", "plain kernel's code, which no moves were made on")
        write(f"right: agrees with the {by}; {error}{bits}\n")
    if not timed:
        return
    if not isinstance(outcome, Ok):
        write(f"{outcome.summary}\n")
        return
    from pdojo_tools.tables import timing_notes

    rate = data_bytes(parameters_of(nest_of(kernel))) / outcome.median
    write(f"time: median {outcome.median * 1e3:.4g} ms, minimum {outcome.minimum * 1e3:.4g} ms, ")
    write(f"spread {outcome.spread:.0%} of {len(outcome.samples)} samples, {rate / 1e9:.3g} GB/s\n")
    if note := binding_note(nest_of(kernel), machine):
        write(f"{note}\n")
    for note in timing_notes([(name, outcome)]):
        sys.stderr.write(f"warning: {note}\n")


def _save(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an .npz file in one step."""
    import numpy as np

    target = Path(path)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pdojo-run-") as folder:
            complete = Path(folder) / "arrays.npz"
            np.savez(complete, allow_pickle=False, **dict(arrays))
            os.replace(complete, target)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None
