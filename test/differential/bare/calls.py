"""Kernels on an emulated x86-64 processor with AVX-512, without an operating system.

All calls of a run share one start of the emulator. Pages between arrays are absent, and the pages of inputs are
read-only. Each call is made twice: with arrays that begin, and with arrays that end beside an absent page. An exception
ends a call, and the next one follows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from differential.bare.elf import link
from differential.bare.emulator import run_emulator, wrong_instruction
from differential.bare.memory import PAGE, PATTERN, WHOLE, Memory, Placed
from differential.bare.rom import ARGUMENTS, EXCEPTION, FIRST_RECORD, FUNCTIONS, PENDING, RECORD, RECORDS, RETURNED
from differential.compiled import Arrays
from pdojo.backends.calling.arrays import ALIGNMENT, Parameter, parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.described import described_object
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of

_PAGE_FAULT = 14
_NAMES = {0: "#DE", 6: "#UD", 8: "#DF", 12: "#SS", 13: "#GP", _PAGE_FAULT: "#PF", 17: "#AC", 19: "#XM"}


@dataclass(frozen=True)
class Call:
    """A kernel for a machine description, and its inputs."""

    kernel: KernelOp
    target: str
    inputs: Arrays
    code: bytes | None = None
    """An object file in place of the kernel's."""


class FaultError(Exception):
    """A call ended with an exception of the processor, or has written where nothing of it lies."""


class EmulatorTooOldError(FaultError):
    """The code has an instruction that the emulator gets wrong."""


@dataclass(frozen=True)
class _Prepared:
    """A call in memory."""

    parameters: tuple[Parameter, ...]
    function: int
    code: Placed
    arrays: dict[str, Placed]
    workspace: Placed | None
    wrong: str | None
    """What the emulator gets wrong in the code; None if nothing is known."""

    def all(self) -> list[Placed]:
        """Everything that the call may touch."""
        return [*self.arrays.values(), *([] if self.workspace is None else [self.workspace]), self.code]

    def record(self) -> bytes:
        """The record for the firmware."""
        arguments = [array.first for array in self.arrays.values()]
        arguments += [0 if self.workspace is None else self.workspace.first, 1]
        return RECORD.pack(self.function, PENDING, 0, 0, 0, *arguments, *[0] * (ARGUMENTS - len(arguments)))


def run_calls(calls: Sequence[Call], folder: Path) -> list[Arrays | FaultError]:
    """The arrays that each call writes, or what went wrong."""
    memory = Memory()
    size = RECORD.size * 2 * len(calls)
    head = struct.pack("<2Q", FIRST_RECORD, FIRST_RECORD + size).ljust(FIRST_RECORD - RECORDS, b"\0")
    records = memory.place("the records", bytes(len(head) + size), writable=True)
    prepared = [made for call in calls for made in _prepare(call, memory)]
    filled = head + b"".join(each.record() for each in prepared)
    memory.image[records.offset : records.offset + len(filled)] = filled
    run_emulator(memory.with_tables(), f'c\nwritemem "after" {WHOLE:#x} {len(memory.image):#x}\nq\n', folder)
    after = (folder / "after").read_bytes()
    assert len(after) == len(memory.image)
    outcomes = RECORD.iter_unpack(records.contents(after)[len(head) :])
    results = [_result(each, outcome[1:5], after) for each, outcome in zip(prepared, outcomes, strict=True)]
    return [_agreed(first, second) for first, second in zip(results[::2], results[1::2], strict=True)]


def _prepare(call: Call, memory: Memory) -> tuple[_Prepared, _Prepared]:
    """The call with arrays at the start of their pages, and at the end."""
    nest = nest_of(call.kernel)
    object_code = call.code if call.code is not None else described_object([call.kernel], machine(call.target)).code
    wrong = wrong_instruction(object_code)
    linked = link(object_code, memory.here, FUNCTIONS)
    code = memory.place(f"the code of {nest.name}", linked.contents, writable=False)
    parameters = parameters_of(nest)
    contents = {p.name: _contents(p, call.inputs) for p in parameters}
    plan = plan_memory(nest)
    scratch = PATTERN * (plan.shared_bytes + plan.thread_bytes)

    def prepared(*, end: bool) -> _Prepared:
        def place(name: str, given: bytes, alignment: int, *, writable: bool) -> Placed:
            start = -len(given) % PAGE // alignment * alignment if end else 0
            return memory.place(name, given, writable=writable, start=start)

        arrays = {p.name: place(f"'{p.name}'", contents[p.name], p.alignment, writable=p.written) for p in parameters}
        workspace = place("the workspace", scratch, ALIGNMENT, writable=True) if scratch else None
        return _Prepared(parameters, linked.symbols[nest.symbol], code, arrays, workspace, wrong)

    return prepared(end=False), prepared(end=True)


def _contents(parameter: Parameter, inputs: Arrays) -> bytes:
    size = int(np.prod(parameter.shape, dtype=np.int64)) * INTERFACE[parameter.dtype].itemsize
    contents = np.ascontiguousarray(inputs[parameter.name]).tobytes() if parameter.name in inputs else PATTERN * size
    assert len(contents) == size, parameter.name
    return contents


def _agreed(first: Arrays | FaultError, second: Arrays | FaultError) -> Arrays | FaultError:
    """What both calls gave."""
    if isinstance(first, FaultError):
        return first
    if isinstance(second, FaultError):
        return second
    for name, array in first.items():
        if array.tobytes() != second[name].tobytes():
            return FaultError(f"'{name}' depends on where the arrays lie")
    return first


def _result(call: _Prepared, outcome: Sequence[int], after: bytes) -> Arrays | FaultError:
    state, error, instruction, address = outcome
    if call.wrong is not None:
        return EmulatorTooOldError(f"Bochs 2.7 gets {call.wrong} wrong")
    if state >= EXCEPTION:
        number = state - EXCEPTION
        text = f"{_NAMES.get(number, f'exception {number}')} at {call.code.where(instruction)}"
        if number == _PAGE_FAULT:
            nearest = min(call.all(), key=lambda placed: abs(placed.distance(address)))
            text += f": {'writes' if error & 2 else 'reads'} {nearest.where(address)}"
        return FaultError(text)
    assert state == RETURNED
    for placed in call.all():
        if (damage := placed.damage(after)) is not None:
            return FaultError(damage)
    return {
        p.name: np.frombuffer(call.arrays[p.name].contents(after), INTERFACE[p.dtype]).reshape(p.shape)
        for p in call.parameters
        if p.written
    }
