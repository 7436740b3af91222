"""Kernels as device code, run by the fibers of a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from differential.compiled import Arrays
from pdojo.backends.arrays import parameters_of
from pdojo.backends.c.names import Names
from pdojo.backends.gpu.fibers import WAYS, Order, compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of

MACHINES = {32: "nvidia-sm90", 64: "amd-gfx942"}
"""A machine for each size of warps."""
_PATTERN = 0xA5


def run_fibers(
    kernel: KernelOp,
    inputs: Arrays,
    *,
    warp: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    compiler: str | None = None,
) -> list[Arrays]:
    """The arrays that the device code of a kernel writes, for each way to run it; outputs are poisoned before."""
    described = machine(MACHINES[warp])
    made = device_text(kernel, spelling=FiberSpelling(library=warp == 32), machine=described)
    return run_text(
        made.text, kernel, inputs, warp=warp, ways=ways, compiler=compiler, scratch=made.kernels[0].workspace.size_bytes
    )


def run_text(
    text: str,
    kernel: KernelOp,
    inputs: Arrays,
    *,
    warp: int,
    scratch: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    compiler: str | None = None,
) -> list[Arrays]:
    """The arrays that a text for fibers writes, which has the interface of a kernel's."""
    compiled = compile_fibers(text, warp=warp, compiler=compiler)
    nest = nest_of(kernel)
    found: list[Arrays] = []
    for late, order in ways:
        arrays: Arrays = {}
        for parameter in parameters_of(nest):
            array = np.empty(parameter.shape, INTERFACE[parameter.dtype])
            array.reshape(-1).view(np.uint8)[...] = _PATTERN
            if parameter.name in inputs:
                array[...] = inputs[parameter.name]
            array.flags.writeable = parameter.written
            arrays[parameter.name] = array
        workspace = np.full(max(scratch, 1), _PATTERN, np.uint8)
        compiled.run(Names().fresh(nest.name), [*arrays.values(), workspace], late=late, order=order, seconds=120)
        found.append({p.name: arrays[p.name] for p in parameters_of(nest) if p.written})
    return found
