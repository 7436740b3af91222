"""Kernels on a simulated Snitch core: outputs poisoned first, guard zones, inputs and the stack above checked after."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.compiled import GUARD, Arrays
from pdojo.backends.arrays import Parameter, parameters_of
from pdojo.backends.snitch.assembler import TCDM_BASE, assemble
from pdojo.backends.snitch.simulator import Configuration, Result, simulate
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.machine import Machine, machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rounding import INTERFACE

SNITCH = machine("snitch")
DIVIDES = machine("snitch-xdiv")
_POISON = 0xFF
"""NaN in every float, -1 in every integer."""
_ALIGNMENT = 64
_STACK_TOP = 1 << 10
"""Bytes above the stack pointer that belong to the caller."""
REGISTERS = 8
"""Arguments in registers."""


def run_snitch(
    program: KernelOp, inputs: Arrays, described: Machine = DIVIDES, *, limit: int = 2_000_000
) -> tuple[Arrays, Result]:
    """Run a kernel; the arrays that it writes, and what the simulator says."""
    source = snitch_source(program, described)
    assembled = assemble(source.text, source.name)
    configuration = Configuration.of(described)
    memory = bytearray([_POISON]) * configuration.memory_bytes
    parameters = parameters_of(nest_of(program))
    places, end = _places(parameters, _rounded(len(assembled.data)))
    for parameter in parameters:
        if parameter.name in inputs:
            at = places[parameter.name]
            data = np.ascontiguousarray(inputs[parameter.name], INTERFACE[parameter.dtype]).tobytes()
            memory[at : at + len(data)] = data
    addresses = [TCDM_BASE + places[p.name] for p in parameters]
    if source.workspace_bytes:
        addresses.append(TCDM_BASE + end)
        end = _rounded(end + source.workspace_bytes) + GUARD
    stack = configuration.memory_bytes - _STACK_TOP
    assert end + source.stack_bytes <= stack, "the kernel is too large for the memory"
    for number, address in enumerate(addresses[REGISTERS:]):
        memory[stack + 4 * number : stack + 4 * number + 4] = address.to_bytes(4, "little")
    before = bytes(memory)
    registers = {f"a{k}": address for k, address in enumerate(addresses[:REGISTERS])} | {"sp": TCDM_BASE + stack}
    result = simulate(assembled, configuration, entry=source.name, arguments=registers, memory=memory, limit=limit)
    assert memory[stack:] == before[stack:], "the caller's stack was written"
    _check_guards(parameters, places, bytes(memory), before)
    return _outputs(parameters, places, bytes(memory)), result


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _places(parameters: tuple[Parameter, ...], start: int) -> tuple[dict[str, int], int]:
    """Offsets of the arrays, a guard zone before each, and of what follows them."""
    places: dict[str, int] = {}
    at = start + GUARD
    for parameter in parameters:
        places[parameter.name] = at
        at = _rounded(at + _size(parameter)) + GUARD
    return places, at


def _size(parameter: Parameter) -> int:
    return int(np.prod(parameter.shape, dtype=np.int64)) * INTERFACE[parameter.dtype].itemsize


def _check_guards(parameters: tuple[Parameter, ...], places: dict[str, int], after: bytes, before: bytes) -> None:
    for parameter in parameters:
        at, size = places[parameter.name], _size(parameter)
        assert after[at - GUARD : at] == before[at - GUARD : at], f"memory before '{parameter.name}' was written"
        end = at + size
        assert after[end : end + GUARD // 2] == before[end : end + GUARD // 2], f"memory behind '{parameter.name}'"
        if not parameter.written:
            assert after[at:end] == before[at:end], parameter.name


def _outputs(parameters: tuple[Parameter, ...], places: dict[str, int], memory: bytes) -> Arrays:
    found: Arrays = {}
    for parameter in parameters:
        if parameter.written:
            at = places[parameter.name]
            data: Any = np.frombuffer(memory[at : at + _size(parameter)], INTERFACE[parameter.dtype])
            found[parameter.name] = data.reshape(parameter.shape)
    return found
