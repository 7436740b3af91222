"""Kernels as device code, run by the fibers of a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from differential.compiled import Arrays
from differential.library import close
from pdojo.backends.c.names import Names
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.emulation import emulate_compiled
from pdojo.backends.gpu.fibers import REMEDY, WAYS, FiberError, Fibers, Order, compile_fibers, compilers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of

MACHINES = {32: "nvidia-sm90", 64: "amd-gfx942"}
"""A machine for each size of warps."""


def require_fibers() -> None:
    """Skip the test where no C++ compiler runs fibers."""
    if not compilers():
        pytest.skip(f"no C++ compiler here: {REMEDY}")


def run_fibers(
    kernel: KernelOp,
    inputs: Arrays,
    *,
    described: Machine,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that the device code of a kernel writes, for each way to run it; outputs are poisoned before.

    Machines with warps of 64 get pdojo's elementary functions, as HIP does.
    """
    warp = described.gpu.warp_size
    made = device_text(kernel, spelling=FiberSpelling(library=warp == 32), machine=described)
    return run_text(made.text, kernel, inputs, warp=warp, scratch=made.kernels[0].workspace.size_bytes, ways=ways)


def run_text(
    text: str,
    kernel: KernelOp,
    inputs: Arrays,
    *,
    warp: int,
    scratch: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that a text for fibers writes, which has the interface of a kernel's."""
    symbol = Names().fresh(nest_of(kernel).name)
    return run_compiled(compile_fibers(text, warp=warp), symbol, kernel, inputs, scratch=scratch, ways=ways)


def run_compiled(
    compiled: Fibers,
    symbol: str,
    kernel: KernelOp,
    inputs: Arrays,
    *,
    scratch: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that a function of a compiled text writes, which has the interface of a kernel's."""
    parameters = parameters_of(nest_of(kernel))
    run = emulate_compiled(compiled, symbol, parameters, inputs, workspace=scratch, ways=ways)
    return [found for _, found in run]


def is_noticed(
    text: str, program: KernelOp, final: KernelOp, inputs: Arrays, wanted: Arrays, *, warp: int, scratch: int
) -> bool:
    """Whether a text for fibers is an error, or gives other results than wanted, in one of the ways to run it."""
    try:
        for found in run_text(text, final, inputs, warp=warp, scratch=scratch):
            close(found, wanted, program)
    except (FiberError, AssertionError):
        return True
    return False
