"""Strides of interface arrays that are not dense: constants, or given by each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Strides: TypeAlias = tuple[int | None, ...]
"""The strides, in elements, of all dimensions but the last one, which is contiguous; None for one that callers give.

() stands for a dense array.
"""
LARGEST = 1 << 62
"""Exclusive bound of strides."""


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements of an array may have one address; all strides are at least 0."""
    end = 1
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1:
            if stride < end:
                return True
            end += (extent - 1) * stride
    return False


def strides_problem(shape: Sequence[int], strides: Strides, *, written: bool = False, kind: str = "") -> str | None:
    """The reason why an array of (greatest) extents `shape` cannot be declared with these strides; None if it can.

    `kind` says what else it is, if that needs a dense array: constant, or an array of indices.
    """
    if kind:
        return f"it is {kind}, which must be dense"
    if len(shape) < 2 or len(strides) != len(shape) - 1:
        count = len(shape) - 1
        return f"an array of {len(shape)} dimensions has {max(count, 0)} strides: the last dimension is contiguous"
    known = [stride for stride in strides if stride is not None]
    if any(not 0 <= stride < LARGEST for stride in known):
        return "a stride is at least 0, and below 2^62"
    if written and len(known) == len(strides) and overlaps(shape, [*known, 1]):
        return "its elements overlap in memory, and the kernel writes them"
    return None


def spelled(strides: Strides) -> str:
    """The strides in the notation: `strided`, or `strided 768, ?`."""
    if all(stride is None for stride in strides):
        return "strided"
    return f"strided {', '.join('?' if stride is None else str(stride) for stride in strides)}"
