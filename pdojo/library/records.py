"""Records of manifests: entries of a library, their arrays and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Sizes: TypeAlias = Mapping[str, int | range]
"""Values of an operator's size arguments, in their order; a range for one that calls choose."""


def range_of(size: int | range) -> range:
    """The values of a size."""
    return range(size, size + 1) if isinstance(size, int) else size


@dataclass(frozen=True)
class Array:
    """An array argument of an operator."""

    name: str
    dtype: str
    """Element type in notation: `f32`, `bf16`, `i8`."""
    shape: tuple[int | str, ...]
    """Extents: numbers, or expressions of the sizes that calls choose: `N`, `(H+2)//2`."""
    direction: Literal["in", "inout", "out"]


@dataclass(frozen=True)
class Variant:
    """The program of an entry for a level and an alignment."""

    level: str
    """Name of the machine description in `machines/`."""
    align: int
    """Bytes to which callers align all arrays."""
    trace: str
    """Path of the trace, relative to the library's folder."""
    symbol: str
    """Hidden symbol of the function in the shared library."""
    program: str
    """SHA-256 of the program in canonical notation."""
    object: str
    """SHA-256 of the object file."""
    workspace: tuple[int, int]
    """Bytes of workspace: for a call, and for each thread."""


@dataclass(frozen=True)
class Entry:
    """An operator at sizes."""

    name: str
    """Unique name in the library: `softmax_f32_24576x512`."""
    operator: str
    """The C function without the library's prefix: `softmax_f32`."""
    sizes: Sizes
    """Values of the operator's size arguments, in their order; `1..4096` or `8..2048/8` for those that calls choose."""
    arrays: tuple[Array, ...]
    numerics: tuple[str, ...]
    """Classes of rounding changes that the kernel permits."""
    kernel: str
    """Path of the plain kernel, relative to the library's folder."""
    variants: tuple[Variant, ...]
