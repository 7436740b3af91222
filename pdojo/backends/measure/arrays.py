"""The arrays of a measurement: random inputs, poisoned outputs, guard zones around each."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, empty_for, in_memory
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import is_float
from pdojo.dialect.semantics.rounding import INTERFACE, round_float64, to_interface
from pdojo.errors import UsageError

Arrays: TypeAlias = list[NDArray[Any]]
"""The interface arrays, in the interface's order."""

GUARD_BYTES = 4096
"""Bytes before and after every array that no candidate may change."""
_GUARD = 0xA5
_POISON = {"f64": np.nan, "f32": np.nan, "f16": np.nan, "bf16": 0x7FC1, "i1": True}
"""Contents of outputs before a call, keyed by element type; integer types not listed here get the guard's pattern."""


def random_inputs(
    parameters: Sequence[Parameter], seed: int, ranges: Sequence[tuple[str, float, float]] = ()
) -> dict[str, NDArray[Any]]:
    """A random array for each `in` and `inout` parameter, keyed by name; a seed always gives the same arrays.

    Floating-point elements follow the standard normal distribution, integers lie in [-8, 8), booleans are fair; the
    elements of arrays that `ranges` names are uniform in [low, high). Raises UsageError for a name in `ranges` that is
    no input, and for a negative seed.
    """
    if seed < 0:
        raise UsageError(f"a seed must be at least 0, not {seed}")
    read = [p for p in parameters if p.intent is not Intent.OUT]
    between = {name: (low, high) for name, low, high in ranges}
    unknown = between.keys() - {p.name for p in read}
    if unknown:
        raise UsageError(f"a range is given for '{min(unknown)}', which is no input")
    streams = np.random.SeedSequence(seed).spawn(len(read))
    drawn = ((p, _random(p, np.random.default_rng(s), between.get(p.name))) for p, s in zip(read, streams, strict=True))
    return {p.name: _overlapping(p, array) if p.strides else array for p, array in drawn}


def _overlapping(parameter: Parameter, values: NDArray[Any]) -> NDArray[Any]:
    """The values that are left when all are written to the memory of an array some of whose elements are one."""
    found = empty_for(parameter)
    found[...] = values
    return found.copy()


def random_arguments(parameters: Sequence[Parameter], seed: int) -> dict[str, NDArray[Any]]:
    """The arrays of `random_inputs` as arguments of a call, aligned as the kernel requires."""
    arrays = random_inputs(parameters, seed)
    found = {p.name: empty_for(p) for p in parameters if p.name in arrays}
    for name, array in found.items():
        array[...] = arrays[name]
    return found


def _random(
    parameter: Parameter, random: np.random.Generator, between: tuple[float, float] | None = None
) -> NDArray[Any]:
    dtype, shape = parameter.dtype, parameter.shape
    if parameter.indices is not None:
        low, last = parameter.indices.bounds
        return random.integers(low, last, shape, np.int64, endpoint=True).astype(INTERFACE[dtype])
    if between is not None:
        low, high = between
        if is_float(dtype):
            return np.asarray(to_interface(round_float64(random.uniform(low, high, shape), dtype), dtype))
        return random.integers(int(low), int(high), shape, np.int64).astype(INTERFACE[dtype])
    match dtype:
        case "f64":
            return random.standard_normal(shape)
        case "f32":
            return random.standard_normal(shape, np.float32)
        case "f16" | "bf16":
            return to_interface(round_float64(random.standard_normal(shape), dtype), dtype)
        case "i1":
            return random.integers(0, 2, shape).astype(np.bool_)
        case _:
            return random.integers(-8, 8, shape, INTERFACE[dtype])


def data_bytes(parameters: Sequence[Parameter]) -> int:
    """The least memory traffic of a call in bytes: it reads each input once and writes each output once."""
    passes = {Intent.IN: 1, Intent.OUT: 1, Intent.INOUT: 2}
    return sum(passes[p.intent] * prod(p.shape) * INTERFACE[p.dtype].itemsize for p in parameters)


@dataclass
class ArraySet:
    """One set of interface arrays in freshly mapped memory, on huge pages if the system grants them."""

    parameters: tuple[Parameter, ...]
    inputs: dict[str, NDArray[Any]]
    """The contents of `in` and `inout` arrays before a call, keyed by name."""
    alignment: int = 64

    def __post_init__(self) -> None:
        self._memory: list[NDArray[np.uint8]] = []
        self._spans: list[slice] = []
        self.arrays: Arrays = [self._allocate(p) for p in self.parameters]
        self._sums = {p.name: _checksum(self.inputs[p.name]) for p in self.parameters if p.intent is Intent.IN}
        self.reset()

    def _allocate(self, parameter: Parameter) -> NDArray[Any]:
        dtype = INTERFACE[parameter.dtype]
        size = (prod(parameter.shape) + parameter.gaps) * dtype.itemsize
        alignment = max(self.alignment, parameter.alignment)
        memory = _pages(size + 2 * GUARD_BYTES + alignment)
        start = GUARD_BYTES + -(memory.ctypes.data + GUARD_BYTES) % alignment
        self._memory.append(memory)
        self._spans.append(slice(start, start + size))
        return in_memory(parameter, memory[start : start + size].view(dtype))

    def reset(self) -> None:
        """Restore inputs, poison outputs, restore the guard zones and the gaps of strided arrays."""
        for parameter, array, memory, span in zip(self.parameters, self.arrays, self._memory, self._spans, strict=True):
            memory[: None if parameter.strides else span.start] = _GUARD
            memory[span.stop :] = _GUARD
            if parameter.intent is Intent.OUT:
                poison(array, parameter.dtype)
            else:
                array[...] = self.inputs[parameter.name]

    def restore(self) -> None:
        """Restore the arrays that a call reads and writes."""
        for parameter, array in zip(self.parameters, self.arrays, strict=True):
            if parameter.intent is Intent.INOUT:
                array[...] = self.inputs[parameter.name]

    def zones(self) -> list[NDArray[np.uint8]]:
        """The memory of each array with its guard zones of `GUARD_BYTES`, to be copied to other devices."""
        rows = zip(self._memory, self._spans, strict=True)
        return [memory[span.start - GUARD_BYTES : span.stop + GUARD_BYTES] for memory, span in rows]

    def checksums(self) -> tuple[int, ...]:
        """One checksum per array, guard zones included."""
        return tuple(map(_checksum, self._memory))

    def damage(self) -> str | None:
        """A message about memory that a call changed but must not change; None if it wrote its outputs only."""
        for parameter, array, memory, span in zip(self.parameters, self.arrays, self._memory, self._spans, strict=True):
            if (memory[: span.start] != _GUARD).any():
                return f"memory before array '{parameter.name}' was written"
            if (memory[span.stop :] != _GUARD).any():
                return f"memory after array '{parameter.name}' was written"
            if parameter.strides and _gaps_differ(parameter, array, memory[span]):
                return f"memory between elements of array '{parameter.name}' was written"
            if parameter.intent is Intent.IN and _checksum(array) != self._sums[parameter.name]:
                return f"input array '{parameter.name}' was written"
        return None


def _gaps_differ(parameter: Parameter, array: NDArray[Any], memory: NDArray[np.uint8]) -> bool:
    """Whether the memory of a strided array has something else in its gaps than a guard zone."""
    wanted = np.full_like(memory, _GUARD)
    in_memory(parameter, wanted.view(array.dtype))[...] = array
    return bool((wanted != memory).any())


def _pages(size: int) -> NDArray[np.uint8]:
    """Fresh private memory; raises MemoryError if there is none."""
    try:
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no {size} bytes for an array: {error.strerror}") from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def poison(array: NDArray[Any], dtype: str) -> None:
    """Fill an output before a call: NaN, or a pattern for integers."""
    if is_float(dtype) or dtype == "i1":
        array[...] = _POISON[dtype]
    else:
        np.atleast_1d(array).view(np.uint8)[...] = _GUARD


def _checksum(array: NDArray[Any]) -> int:
    return crc32(np.ascontiguousarray(array).data)
