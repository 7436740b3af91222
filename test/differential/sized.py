"""Values of the sizes of kernels, and kernels in gpu form at such values, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from differential.compiled import Arrays
from differential.gpu_ir import Device, Memory
from pdojo.backends.calling.arrays import parameters_at, parameters_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import CARRIERS, from_interface, to_interface
from pdojo.dialect.view.build import nest_of


def values_of(kernel: KernelOp, blocks: tuple[int, ...]) -> Iterator[dict[str, int]]:
    """The ends of the ranges of all sizes, the values beside them, and those around multiples of blocks."""
    sizes = kernel.known_sizes().values()
    for at in ("low", "high"):
        yield {s.name: getattr(s, at) for s in sizes}
    yield {s.name: min(s.low + s.step, s.high) for s in sizes}
    yield {s.name: max(s.high - s.step, s.low) for s in sizes}
    for block in blocks:
        for more in (-1, 0, 1):
            yield {s.name: min(max((block + more) // s.step * s.step, s.low), s.high) for s in sizes}


def run_in_gpu_form(device: Device, kernel: KernelOp, inputs: Arrays, values: Mapping[str, int]) -> Arrays:
    """The arrays that the gpu form of a kernel writes for values of its sizes."""
    nest = nest_of(kernel)
    memories: dict[str, Memory] = {}
    parameters = parameters_at(parameters_of(nest), values)
    for p in parameters:
        given = inputs.get(p.name)
        memory = np.full(p.shape, np.nan, CARRIERS[p.dtype]) if given is None else from_interface(given, p.dtype)
        memories[p.name] = Memory(np.asarray(memory), p.dtype)
    device.call(nest.name, [*memories.values(), *values.values()])
    return {p.name: to_interface(memories[p.name].values, p.dtype) for p in parameters if p.written}
