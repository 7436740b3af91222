"""Emulation of device code on a CPU by fibers, in several ways that together expose races and missing waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_at, parameters_of
from pdojo.backends.gpu.fibers import WAYS, Fibers, Order, compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE

_WARP = 32
"""Threads of an emulated warp; a warp of a machine with fewer threads is a part of it."""
_POISON = 0xA5
"""The byte that fills unwritten memory."""
_SECONDS = 120.0
"""Time limit of one way, in seconds."""


def emulate(
    kernel: KernelOp,
    machine: Machine,
    inputs: Mapping[str, NDArray[Any]],
    *,
    library: bool,
    sizes: Mapping[str, int] | None = None,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    notice: Callable[[], None] | None = None,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Run a kernel's device code in several ways; yields the name of each way with the arrays written.

    `library` selects the C library's elementary functions; False selects pdojo's. `sizes` has the values of the
    kernel's sizes (None: the greatest). `notice` is called if the compiler
    takes long. Raises LoweringError if device code cannot express the kernel or there is no C++ compiler, FiberError
    for undefined behaviour on a GPU.
    """
    made = device_text(kernel, spelling=FiberSpelling(library=library), machine=machine)
    (text,) = made.kernels
    yield from emulate_text(
        made.text,
        text.nest.symbol,
        parameters_of(text.nest),
        inputs,
        sizes={n: s.high for n, s in text.nest.sizes.items()} if sizes is None else sizes,
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
    sizes: Mapping[str, int],
    warp: int,
    workspace: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
    notice: Callable[[], None] | None = None,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Run the function `symbol` of a text in several ways; yields the name of each way with the arrays written.

    The function takes the arrays of the parameters, the sizes, then a workspace of `workspace` bytes. Raises the
    errors of `emulate`.
    """
    compiled = compile_fibers(text, warp=warp, notice=notice)
    yield from emulate_compiled(compiled, symbol, parameters, inputs, sizes=sizes, workspace=workspace, ways=ways)


def emulate_compiled(
    compiled: Fibers,
    symbol: str,
    parameters: Sequence[Parameter],
    inputs: Mapping[str, NDArray[Any]],
    *,
    sizes: Mapping[str, int],
    workspace: int,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Like `emulate_text`, for a compiled text. Raises FiberError."""
    parameters = parameters_at(parameters, sizes)
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
        given = [*arrays.values(), *sizes.values(), memory]
        compiled.run(symbol, given, late=late, order=order, seconds=_SECONDS)
        number = order if isinstance(order, str) else "shuffled"
        name = f"asynchronous copies {'late' if late else 'early'}, threads {number}"
        yield name, {p.name: arrays[p.name] for p in parameters if p.written}
