"""The machine of a kernel's device code."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.ops import KernelOp


def device_of(kernel: KernelOp, default: str) -> Machine:
    """The machine that a kernel names if it is a GPU, else the machine `default`."""
    named = None if kernel.machine is None else known_machine(kernel.machine.data)
    return named if named is not None and named.gpu.block_threads else known_machine(default)
