"""Arrays between pages that may not be touched: an access outside of an array ends the process."""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.calling.strided import complete, placed, span
from pdojo.backends.measure.arrays import poison
from pdojo.dialect.attributes import Intent
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.strides import Strides

Side: TypeAlias = Literal["before", "behind"]
"""The guarded end of an array: an access before its first byte, or after its last byte."""
SIDES: tuple[Side, ...] = ("before", "behind")

PAGE = mmap.PAGESIZE
_FILL = 0xA5
"""Contents of the bytes between an array and the guard page on its other side."""
_NONE, _READ = 0, 1
"""Linux's PROT_NONE and PROT_READ."""


@dataclass(frozen=True)
class GuardPlacement:
    """The place of arrays beside a guard page."""

    side: Side
    align: int
    """The address is a multiple of this number of bytes, and of the size of an element."""
    odd: bool = False
    """Whether the address is no multiple of 64 although `align` permits it."""

    def __str__(self) -> str:
        how = "at odd addresses" if self.odd else f"aligned to {self.align} bytes"
        return f"arrays {how} with guard pages {self.side} them"


class GuardedArray:
    """An array whose memory lies between two pages without access, close to one of them.

    The bytes between array and page (less than the alignment) are filled, and `damage` tells if they changed. Linux
    only. Raises MemoryError if the system has no memory, or refuses the protection.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], placement: GuardPlacement, strides: Strides = ()
    ) -> None:
        known = complete(shape, strides) if strides else ()
        size = (span(shape, known) if strides else prod(shape)) * dtype.itemsize
        # One byte more than the array, so that an odd address fits.
        pages = -(-(size + 64) // PAGE)
        try:
            self._map = mmap.mmap(-1, (pages + 2) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"no {size} bytes for an array: {error.strerror}") from None
        self._memory = np.frombuffer(self._map, np.uint8)
        self._inner = slice(PAGE, (pages + 1) * PAGE)
        self._memory[self._inner] = _FILL
        base = self._memory.ctypes.data
        _protect(base, PAGE, _NONE)
        _protect(base + self._inner.stop, PAGE, _NONE)
        start = _start(base, self._inner, size, dtype.itemsize, placement)
        self._span = slice(start, start + size)
        row = self._memory[self._span].view(dtype)
        self.array: NDArray[Any] = placed(row, shape, known) if strides else row.reshape(shape)

    def close_writing(self) -> None:
        """From now on a store into the array ends the process."""
        _protect(self._memory.ctypes.data + self._inner.start, self._inner.stop - self._inner.start, _READ)

    def damage(self, name: str) -> str | None:
        """A message if bytes around the array, called `name`, changed; None if they did not."""
        if (self._memory[self._inner.start : self._span.start] != _FILL).any():
            return f"memory before array '{name}' was written"
        if (self._memory[self._span.stop : self._inner.stop] != _FILL).any():
            return f"memory after array '{name}' was written"
        return None


def guarded_argument(parameter: Parameter, contents: NDArray[Any] | None, placement: GuardPlacement) -> GuardedArray:
    """An array of a call between guard pages: a read-only input with `contents`, or a poisoned output (None)."""
    found = GuardedArray(parameter.shape, INTERFACE[parameter.dtype], placement, parameter.strides)
    if contents is None:
        poison(found.array, parameter.dtype)
    else:
        found.array[...] = contents
    if parameter.intent is Intent.IN:
        found.close_writing()
    return found


def _start(base: int, inner: slice, size: int, width: int, placement: GuardPlacement) -> int:
    """The offset of an array that lies as close to the guarded end as its placement permits."""
    align = max(placement.align, width)
    if placement.side == "before":
        return inner.start + (width if placement.odd else 0)
    start = inner.stop - size
    start -= (base + start) % align
    if placement.odd and (base + start) % 64 == 0:
        start -= width
    return start


def _protect(address: int, size: int, access: int) -> None:
    if _mprotect(address, size, access):
        number = ctypes.get_errno()
        raise MemoryError(f"the system does not protect pages: {os.strerror(number)}")


_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
