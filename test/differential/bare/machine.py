"""Kernels on an emulated x86-64 processor without an operating system: Bochs, our ROM, memory with guard pages.

All calls of a run share one start of the emulator. Pages between arrays are absent, and pages of inputs are read-only; an
exception ends a call with a `Fault`, and the next call goes on.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from differential.bare.elf import link
from differential.bare.rom import (
    ARGUMENTS,
    EXCEPTION,
    FAULT_STACK_TOP,
    FIRST_RECORD,
    FUNCTIONS,
    MEMORY,
    PENDING,
    RECORD,
    RECORDS,
    RETURNED,
    ROM,
    STACK_TOP,
    TABLES,
    rom,
)
from differential.compiled import Arrays
from pdojo.backends.calling.arrays import ALIGNMENT, Parameter, parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.described import described_object
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of

PAGE = 4096
_PATTERN = 0xA5
_STACK, _FAULT_STACK = 0x20_0000, 0x10_0000
"""Physical addresses of stacks."""
_STACK_BYTES = 4 << 20
_WHOLE = 0x4000_0000
"""Virtual address of all memory that a run starts with, read-only: what the emulator's debugger writes to a file."""
_PRESENT, _WRITABLE = 1, 2
_PAGE_FAULT = 14
_FAULTS = {0: "#DE", 6: "#UD", 8: "#DF", 12: "#SS", 13: "#GP", _PAGE_FAULT: "#PF", 17: "#AC", 19: "#XM"}
_CONFIGURATION = f"""\
display_library: term
romimage: file=rom, address={ROM:#x}
megs: {MEMORY >> 20}
cpu: model=tigerlake, reset_on_triple_fault=0
magic_break: enabled=1
panic: action=fatal
log: log
"""


@dataclass(frozen=True)
class Call:
    """A kernel for a machine description, and its inputs."""

    kernel: KernelOp
    target: str
    inputs: Arrays
    against: Literal["start", "end"] = "end"
    """Which end of its pages each array touches."""


class FaultError(Exception):
    """An exception of the processor that ended a call; the message has the addresses."""


@dataclass(frozen=True)
class _Placed:
    """Bytes in pages of their own, at a virtual address and at a place in the image."""

    name: str
    address: int
    offset: int
    size: int
    start: int
    """Bytes of the pages before the contents."""

    @property
    def first(self) -> int:
        """The address of the contents."""
        return self.address + self.start

    def distance(self, address: int) -> int:
        """Bytes from the nearest byte of the contents to an address; 0 inside."""
        return min(0, address - self.first) or max(0, address - self.first - self.size + 1)

    def where(self, address: int) -> str:
        """An address in words."""
        if (away := self.distance(address)) != 0:
            return f"{abs(away)} bytes {'behind' if away > 0 else 'before'} {self.name}"
        return f"byte {address - self.first} of {self.name}"

    def contents(self, image: bytes) -> bytes:
        """The bytes in an image of the memory."""
        at = self.offset + self.start
        return image[at : at + self.size]

    def check(self, image: bytes) -> None:
        """Assert that the rest of the pages is as it was."""
        behind = self.offset + self.start + self.size
        rests = (image[self.offset : self.offset + self.start], image[behind : behind - behind % -PAGE])
        for rest, side in zip(rests, ("before", "behind"), strict=True):
            assert rest.strip(bytes([_PATTERN])) == b"", f"memory {side} {self.name} was written"


@dataclass
class _Memory:
    """The contents of the computer's memory, and its virtual addresses."""

    image: bytearray = field(default_factory=lambda: bytearray(PAGE))
    """From the physical address `TABLES`; first the root of the page tables."""
    pages: dict[int, int] = field(default_factory=lambda: {ROM // PAGE: ROM | _PRESENT | _WRITABLE})
    """Entries of page tables, by virtual page."""
    here: int = RECORDS
    """The virtual address of what is placed next."""

    def place(self, name: str, contents: bytes, *, writable: bool, start: int = 0) -> _Placed:
        """Put bytes into pages of their own, `start` bytes behind the start of the first, before an absent page."""
        placed = _Placed(name, self.here, len(self.image), len(contents), start)
        self.image += bytes([_PATTERN]) * start + contents
        self.image += bytes([_PATTERN]) * (-len(self.image) % PAGE)
        count = (len(self.image) - placed.offset) // PAGE
        self.map(self.here, TABLES + placed.offset, count, _PRESENT | _WRITABLE * writable)
        self.here += (count + 1) * PAGE
        return placed

    def map(self, virtual: int, physical: int, count: int, flags: int) -> None:
        """Give virtual pages their physical addresses."""
        for number in range(count):
            self.pages[virtual // PAGE + number] = physical + number * PAGE | flags

    def finish(self) -> bytes:
        """What the computer starts with: the image, and page tables for it and for the stacks."""
        self.map(STACK_TOP - _STACK_BYTES, _STACK, _STACK_BYTES // PAGE, _PRESENT | _WRITABLE)
        self.map(FAULT_STACK_TOP - PAGE, _FAULT_STACK, 1, _PRESENT | _WRITABLE)
        self.map(_WHOLE, TABLES, len(self.image) // PAGE, _PRESENT)
        tables, entries = bytearray(self.image), self.pages
        for level in range(4):
            grouped: dict[int, NDArray[np.uint64]] = {}
            for number, entry in entries.items():
                grouped.setdefault(number >> 9, np.zeros(512, "<u8"))[number & 511] = entry
            if level == 3:
                tables[:PAGE] = grouped[0].tobytes()
                break
            entries = {}
            for number, table in grouped.items():
                entries[number] = TABLES + len(tables) | _PRESENT | _WRITABLE
                tables += table.tobytes()
        return bytes(tables)


@dataclass(frozen=True)
class _Prepared:
    """A call in memory."""

    parameters: tuple[Parameter, ...]
    function: int
    code: _Placed
    arrays: dict[str, _Placed]
    workspace: _Placed | None

    def all(self) -> list[_Placed]:
        """Everything that the call may touch."""
        return [*self.arrays.values(), *([] if self.workspace is None else [self.workspace]), self.code]

    def record(self) -> bytes:
        """The record for the firmware."""
        arguments = [array.first for array in self.arrays.values()]
        arguments += [0 if self.workspace is None else self.workspace.first, 1]
        return RECORD.pack(self.function, PENDING, 0, 0, 0, *arguments, *[0] * (ARGUMENTS - len(arguments)))


def run_calls(calls: Sequence[Call], folder: Path) -> list[Arrays | FaultError]:
    """The arrays that each call writes, or the exception that ended it."""
    memory = _Memory()
    records = memory.place("records", bytes(FIRST_RECORD - RECORDS + RECORD.size * len(calls)), writable=True)
    prepared = [_prepare(call, memory) for call in calls]
    filled = struct.pack("<2Q", FIRST_RECORD, FIRST_RECORD + RECORD.size * len(calls)).ljust(
        FIRST_RECORD - RECORDS, b"\0"
    )
    filled += b"".join(each.record() for each in prepared)
    memory.image[records.offset : records.offset + len(filled)] = filled
    after = _run(memory, folder)
    at = records.offset + FIRST_RECORD - RECORDS
    outcomes = RECORD.iter_unpack(after[at : at + RECORD.size * len(calls)])
    return [_result(each, outcome[1:5], after) for each, outcome in zip(prepared, outcomes, strict=True)]


def _prepare(call: Call, memory: _Memory) -> _Prepared:
    nest = nest_of(call.kernel)
    linked = link(described_object(call.kernel, machine(call.target)).code, memory.here, FUNCTIONS)
    code = memory.place(f"the code of {nest.name}", linked.contents, writable=False)
    plan = plan_memory(nest)
    arrays: dict[str, _Placed] = {}
    for parameter in parameters_of(nest):
        size = int(np.prod(parameter.shape, dtype=np.int64)) * INTERFACE[parameter.dtype].itemsize
        given = parameter.name in call.inputs
        contents = np.ascontiguousarray(call.inputs[parameter.name]).tobytes() if given else bytes([_PATTERN]) * size
        assert len(contents) == size, parameter.name
        # The last multiple of the alignment at which the array fits.
        start = -size % PAGE // parameter.alignment * parameter.alignment if call.against == "end" else 0
        arrays[parameter.name] = memory.place(f"'{parameter.name}'", contents, writable=parameter.written, start=start)
    arguments = [array.address + array.start for array in arrays.values()]
    scratch = plan.shared_bytes + plan.thread_bytes
    workspace = None
    if scratch:
        start = -scratch % PAGE // ALIGNMENT * ALIGNMENT
        workspace = memory.place("the workspace", bytes([_PATTERN]) * scratch, writable=True, start=start)
    return _Prepared(parameters_of(nest), linked.symbols[nest.symbol], code, arrays, workspace)


def _result(call: _Prepared, outcome: Sequence[int], after: bytes) -> Arrays | FaultError:
    state, error, instruction, address = outcome
    if state >= EXCEPTION:
        number = state - EXCEPTION
        text = f"exception {_FAULTS.get(number, number)} at {call.code.where(instruction)}"
        if number == _PAGE_FAULT:
            nearest = min(call.all(), key=lambda placed: abs(placed.distance(address)))
            text += f": {'writes' if error & 2 else 'reads'} {nearest.where(address)}"
        return FaultError(text)
    assert state == RETURNED
    for placed in call.all():
        placed.check(after)
    return {
        p.name: np.frombuffer(call.arrays[p.name].contents(after), INTERFACE[p.dtype]).reshape(p.shape)
        for p in call.parameters
        if p.written
    }


def _run(memory: _Memory, folder: Path) -> bytes:
    """The image as it is when all calls are over."""
    size = len(memory.image)
    started = memory.finish()
    (folder / "memory").write_bytes(started)
    assert TABLES + len(started) <= MEMORY
    options = f"optramimage1: file=memory, address={TABLES:#x}\n"
    emulate(options, f'c\nwritemem "after" {_WHOLE:#x} {size:#x}\nq\n', folder)
    after = (folder / "after").read_bytes()
    assert len(after) == size
    return after


def emulate(options: str, commands: str, folder: Path) -> None:
    """Start the emulator with our ROM, and let its debugger run commands."""
    (folder / "rom").write_bytes(rom())
    (folder / "configuration").write_text(_CONFIGURATION + options)
    (folder / "commands").write_text(commands)
    command = ["bochs", "-q", "-f", "configuration", "-rc", "commands"]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"TERM": "vt100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-600:]
