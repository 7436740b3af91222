"""Kernels on a simulated Snitch core."""

from __future__ import annotations

from differential.compiled import Arrays
from pdojo.backends.snitch.executable import load
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.snitch_sim.simulator import Result

SNITCH = machine("snitch")
DIVIDES = machine("snitch-xdiv")


def run_snitch(
    program: KernelOp, inputs: Arrays, described: Machine = DIVIDES, *, limit: int = 2_000_000
) -> tuple[Arrays, Result]:
    """Run a kernel; the arrays that it writes, and what the simulator says."""
    run = load(program, described).run(inputs, limit=limit)
    return run.outputs, run.result
