"""Device code run on a CPU, by fibers, in all the ways that together show what its threads may do to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.gpu.fibers import WAYS, Fibers, Order, compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE

_WARP = 32
"""Threads of a warp of fibers: warps of a machine with fewer are parts of one."""
_POISON = 0xA5
"""The byte that fills what a kernel has not written."""
_SECONDS = 120.0
"""Most seconds of one way."""


def emulate(
    kernel: KernelOp,
    machine: Machine,
    inputs: Mapping[str, NDArray[Any]],
    *,
    library: bool,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    notice: Callable[[], None] | None = None,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """The name of each way to run the device code of a kernel, and the arrays that it writes.

    `library` is False for pdojo's elementary functions instead of those of the C library; `notice` is called if the
    compiler takes long. Raises LoweringError if device code cannot say the kernel or there is no C++ compiler,
    FiberError for what a GPU leaves undefined.
    """
    made = device_text(kernel, spelling=FiberSpelling(library=library), machine=machine)
    (text,) = made.kernels
    yield from emulate_text(
        made.text,
        text.nest.symbol,
        parameters_of(text.nest),
        inputs,
        warp=max(_WARP, machine.gpu.warp_size),
        workspace=text.workspace.size_bytes,
        ways=ways,
        notice=notice,
    )


def emulate_text(
    text: str,
    symbol: str,
    parameters: Sequence[Parameter],
    inputs: Mapping[str, NDArray[Any]],
    *,
    warp: int,
    workspace: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    notice: Callable[[], None] | None = None,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """The name of each way to run a text for fibers, and the arrays that its function `symbol` writes.

    The function takes the arrays of the parameters, and a workspace of so many bytes. Raises as `emulate` does.
    """
    compiled = compile_fibers(text, warp=warp, notice=notice)
    yield from emulate_compiled(compiled, symbol, parameters, inputs, workspace=workspace, ways=ways)


def emulate_compiled(
    compiled: Fibers,
    symbol: str,
    parameters: Sequence[Parameter],
    inputs: Mapping[str, NDArray[Any]],
    *,
    workspace: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """The same for a text that is compiled. Raises FiberError as `emulate` does."""
    for late, order in ways:
        arrays: dict[str, NDArray[Any]] = {}
        for parameter in parameters:
            array = np.empty(parameter.shape, INTERFACE[parameter.dtype])
            array.reshape(-1).view(np.uint8)[...] = _POISON
            if parameter.name in inputs:
                array[...] = inputs[parameter.name]
            array.flags.writeable = parameter.written
            arrays[parameter.name] = array
        memory = np.full(max(workspace, 1), _POISON, np.uint8)
        compiled.run(symbol, [*arrays.values(), memory], late=late, order=order, seconds=_SECONDS)
        number = order if isinstance(order, str) else "shuffled"
        name = f"asynchronous copies {'late' if late else 'early'}, threads {number}"
        yield name, {p.name: arrays[p.name] for p in parameters if p.written}
