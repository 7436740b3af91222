"""A kernel on a simulated Snitch core: puts its arrays into the TCDM, calls it, and then checks all memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_at, parameters_of
from pdojo.backends.snitch.configuration import configuration_of
from pdojo.backends.snitch.targets import SnitchSource, snitch_source
from pdojo.dialect.affine import Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.indices import check_indices
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.sizes import solve_sizes
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError, MemoryDamage, UsageError
from pdojo.snitch_sim.assembler import TCDM_BASE, AssembledProgram, assemble
from pdojo.snitch_sim.simulator import Configuration, Result, simulate
from pdojo.snitch_sim.simulator.simulate import CYCLES

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Interface arrays by name."""

GUARD = 256
"""Bytes of the guard zone on either side of an array: one row of all banks."""
ALIGNMENT = 64
"""Least alignment of arrays in bytes."""
CALLER = 1 << 10
"""Bytes above the stack pointer that belong to the caller's frame."""
_POISON = np.uint16(0xFFFE)
"""Contents of unwritten memory: a NaN of every float type, and an integer whose bits are not all ones."""
_IN_REGISTERS = 8
"""Number of arguments in registers (a0 to a7); the others are on the stack."""


@dataclass(frozen=True)
class SimulatedRun:
    """The result of one call of a kernel."""

    outputs: dict[str, NDArray[Any]]
    """The arrays that the kernel writes."""
    result: Result
    """The simulator's result."""


@dataclass(frozen=True)
class Places:
    """The layout of the memory, as offsets in bytes."""

    arrays: dict[str, int]
    workspace: int
    end: int
    """The end of the last guard zone."""
    stack: int
    """The stack pointer at the call."""


@dataclass(frozen=True)
class SimulatedKernel:
    """A kernel as assembly, which can be called any number of times."""

    source: SnitchSource
    program: AssembledProgram
    parameters: tuple[Parameter, ...]
    configuration: Configuration
    sizes: tuple[Size, ...] = ()
    values: tuple[int, ...] = ()
    """The values of the sizes in a call."""

    def run(
        self, inputs: Arrays, *, sizes: Mapping[str, int] | None = None, limit: int = CYCLES, trace: bool = False
    ) -> SimulatedRun:
        """Call the kernel on arrays for all parameters that it reads, and with sizes that no shape gives.

        Outputs and free memory are poisoned before the call. Raises CycleLimit above `limit` cycles, Deadlock,
        MemoryDamage if anything but outputs, workspace and stack frame has changed, and SimulationError, their base
        class, for operations that the hardware lacks; UsageError for arrays that do not fit the interface;
        LoweringError if the arrays together do not fit the memory; IndexOutOfRange for an index that it refuses.
        """
        if not self.sizes:
            return self._run(inputs, limit, trace=trace)
        extents = {p.name: p.extents for p in self.parameters}
        shapes = {name: array.shape for name, array in inputs.items()}
        values = solve_sizes(self.source.name, self.sizes, extents, shapes, sizes or {})
        known = replace(self, parameters=(*parameters_at(self.parameters, values),), values=(*values.values(),))
        return known._run(inputs, limit, trace=trace)

    def _run(self, inputs: Arrays, limit: int, *, trace: bool) -> SimulatedRun:
        """`run` for sizes of the given `values`."""
        places = self._places()
        values = {size.name: value for size, value in zip(self.sizes, self.values, strict=True)}
        for parameter in self.parameters:
            if parameter.indices is not None and parameter.name in inputs:
                check_indices(self.source.name, parameter.indices, inputs[parameter.name], values)
        memory = bytearray(np.full(self.configuration.memory_bytes // 2, _POISON).tobytes())
        memory[: len(self.program.data)] = self.program.data
        for parameter in self.parameters:
            if parameter.intent is not Intent.OUT:
                data = _data(parameter, inputs)
                at = places.arrays[parameter.name]
                memory[at : at + len(data)] = data
        registers = self._arguments(places, memory)
        before = bytes(memory)
        result = simulate(
            self.program,
            self.configuration,
            entry=self.source.name,
            arguments=registers,
            memory=memory,
            limit=limit,
            trace=trace,
        )
        after = bytes(memory)
        self._check(places, before, after)
        written = (p for p in self.parameters if p.written)
        return SimulatedRun({p.name: _array(p, after, places.arrays[p.name]) for p in written}, result)

    def _arguments(self, places: Places, memory: bytearray) -> dict[str, int]:
        """The registers of the call; further arguments are stored on the stack."""
        addresses = [TCDM_BASE + places.arrays[name] for name in self.source.arguments]
        addresses += self.values
        if self.source.workspace_bytes:
            addresses.append(TCDM_BASE + places.workspace)
        for number, address in enumerate(addresses[_IN_REGISTERS:]):
            at = places.stack + 4 * number
            memory[at : at + 4] = address.to_bytes(4, "little")
        registers = {f"a{k}": address for k, address in enumerate(addresses[:_IN_REGISTERS])}
        return {**registers, "sp": TCDM_BASE + places.stack}

    def _places(self) -> Places:
        arrays: dict[str, int] = {}
        at = _rounded(len(self.program.data), ALIGNMENT) + GUARD
        for parameter in self.parameters:
            arrays[parameter.name] = at = _rounded(at, max(ALIGNMENT, parameter.alignment))
            at = _rounded(at + _size(parameter), ALIGNMENT) + GUARD
        workspace = at
        if self.source.workspace_bytes:
            at = _rounded(at + self.source.workspace_bytes, ALIGNMENT) + GUARD
        stack = self.configuration.memory_bytes - CALLER
        if at + self.source.stack_bytes > stack:
            taken = at + self.source.stack_bytes + CALLER
            raise LoweringError(
                f"kernel '{self.source.name}': arrays, workspace and stack with guard zones take {taken} bytes, and "
                f"the memory of {self.configuration.name} has {self.configuration.memory_bytes}"
            )
        return Places(arrays, workspace, at, stack)

    def _check(self, places: Places, before: bytes, after: bytes) -> None:
        """Raise MemoryDamage if the kernel has changed memory outside its outputs, workspace and stack frame."""
        changed = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
        own = [(places.arrays[p.name], _size(p)) for p in self.parameters if p.written]
        own.append((places.workspace, self.source.workspace_bytes))
        own.append((places.stack - self.source.stack_bytes, self.source.stack_bytes))
        for start, size in own:
            changed[start : start + size] = False
        wrong = np.flatnonzero(changed)
        if wrong.size:
            raise MemoryDamage(
                f"kernel '{self.source.name}' wrote {wrong.size} bytes that are not its own, the first "
                f"{self._where(places, int(wrong[0]))}"
            )

    def _where(self, places: Places, offset: int) -> str:
        if offset >= places.stack:
            return "in the caller's stack"
        if offset >= places.end:
            return "in free memory"
        for parameter in reversed(self.parameters):
            start, size = places.arrays[parameter.name], _size(parameter)
            if offset >= start + size:
                return f"{offset - start - size} bytes behind array '{parameter.name}'"
            if offset >= start:
                return f"in array '{parameter.name}', which it only reads"
        return "before the arrays"


def load(kernel: KernelOp, machine: Machine) -> SimulatedKernel:
    """A kernel for the simulator of a machine; raises LoweringError if the core lacks what it uses."""
    configuration = configuration_of(machine)
    source = snitch_source(kernel, machine)
    nest, program = nest_of(kernel), assemble(source.text, source.name)
    return SimulatedKernel(source, program, parameters_of(nest), configuration, (*nest.sizes.values(),))


def _data(parameter: Parameter, inputs: Arrays) -> bytes:
    """The bytes of an input. Raises UsageError if it does not fit the parameter."""
    if parameter.name not in inputs:
        raise UsageError(f"array '{parameter.name}' is missing")
    array, wanted = inputs[parameter.name], INTERFACE[parameter.dtype]
    if array.dtype != wanted or array.shape != parameter.shape:
        raise UsageError(
            f"array '{parameter.name}' is {array.dtype} {array.shape}, and the kernel takes {wanted} {parameter.shape}"
        )
    return np.ascontiguousarray(array).tobytes()


def _array(parameter: Parameter, memory: bytes, at: int) -> NDArray[Any]:
    data: NDArray[Any] = np.frombuffer(memory[at : at + _size(parameter)], INTERFACE[parameter.dtype])
    return data.reshape(parameter.shape)


def _size(parameter: Parameter) -> int:
    return prod(parameter.shape) * INTERFACE[parameter.dtype].itemsize


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
