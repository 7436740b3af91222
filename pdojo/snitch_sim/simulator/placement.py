"""Arrays in the simulated memory: aligned, with guard zones, outputs poisoned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pdojo.errors import SimulationError, UsageError
from pdojo.snitch_sim.assembler.program import TCDM_BASE, AssembledProgram
from pdojo.snitch_sim.simulator.configuration import Configuration

GUARD = 64
"""Bytes of the guard zone on either side of an array; the program must not write it."""
STACK = 16 << 10
"""Bytes at the end of the memory for the stack."""
_PATTERN = bytes([0xA5, 0x5A, 0xC3, 0x3C])
POISON = {2: 0x7E5D, 4: 0x7FC0DEAD, 8: 0x7FF8DEADBEEFDEAD}
"""NaNs that no program computes, by width in bytes."""


@dataclass(frozen=True)
class Placed:
    """An array in the simulated memory."""

    name: str
    address: int
    values: NDArray[Any]
    """A view of the memory, which shows what the program writes."""

    @property
    def poisoned(self) -> int:
        """The number of elements that still hold the NaN of `output`."""
        width = self.values.dtype.itemsize
        if width not in POISON:
            return 0
        words = self.values.view(f"u{width}")
        return int((words == POISON[width]).sum())


class Placement:
    """The memory of a simulation, and the arrays in it."""

    def __init__(self, configuration: Configuration | None = None, program: AssembledProgram | None = None) -> None:
        configuration = configuration or Configuration()
        self.memory = bytearray(configuration.memory_bytes)
        self._view = np.frombuffer(self.memory, np.uint8)
        self._next = len(program.data) if program is not None else 0
        if program is not None:
            self.memory[: self._next] = program.data
        self._end = configuration.memory_bytes - STACK
        self._guards: list[tuple[int, int, str]] = []
        self.arrays: list[Placed] = []

    @property
    def used(self) -> int:
        """Bytes from the start of the memory to the end of the last guard zone, or of the program's data."""
        return self._next

    def place(self, array: NDArray[Any], name: str = "", *, align: int = 8) -> Placed:
        """Copy an array into the memory, in row-major order."""
        placed = self._reserve(array.shape, array.dtype, name, align)
        placed.values[...] = array
        return placed

    def output(self, shape: tuple[int, ...], dtype: DTypeLike, name: str = "", *, align: int = 8) -> Placed:
        """Reserve an array that the program writes, filled with a NaN that no program computes."""
        placed = self._reserve(shape, np.dtype(dtype), name, align)
        width = placed.values.dtype.itemsize
        if width in POISON:
            placed.values.view(f"u{width}")[...] = POISON[width]
        return placed

    def _reserve(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str, align: int) -> Placed:
        if align < dtype.itemsize or align & (align - 1):
            raise UsageError(
                f"an alignment is a power of two, at least the element's {dtype.itemsize} bytes, not {align}"
            )
        name = name or f"argument {len(self.arrays)}"
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        start = -(-(self._next + GUARD) // align) * align
        end = start + size
        if end + GUARD > self._end:
            room = self._end - self._next
            raise UsageError(f"{name} of {size} bytes does not fit the {room} bytes that are left of the memory")
        for low, high in ((self._next, start), (end, end + GUARD)):
            self._guards.append((low, high, name))
            self._view[low:high] = _pattern(low, high)
        # Arrays do not share guard zones, so that a message can name the array.
        self._next = end + GUARD
        values = np.frombuffer(self.memory, dtype, size // dtype.itemsize, start).reshape(shape)
        placed = Placed(name, TCDM_BASE + start, values)
        self.arrays.append(placed)
        return placed

    def check(self) -> None:
        """Raise SimulationError if a guard zone was written."""
        for low, high, name in self._guards:
            changed = np.flatnonzero(self._view[low:high] != _pattern(low, high))
            if changed.size:
                address = TCDM_BASE + low + int(changed[0])
                raise SimulationError(f"{changed.size} bytes beside {name} were written, the first at {address:#x}")


def _pattern(low: int, high: int) -> NDArray[np.uint8]:
    repeated = np.frombuffer(_PATTERN * ((high - low) // 4 + 2), np.uint8)
    return repeated[low % 4 : low % 4 + high - low]
