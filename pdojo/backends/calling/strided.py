"""Arrays of callers that are not dense: their strides in elements, and memory with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pdojo.dialect.strides import Strides, overlaps

MOST_WORK = 1 << 14
"""Most candidates that are tried to find an element that two arrays share."""


def complete(shape: Sequence[int], strides: Strides) -> tuple[int, ...]:
    """All strides of an array, in elements, whose given ones are chosen so that no elements overlap by them.

    An array whose strides are all given is dense.
    """
    known = [*strides, 1]
    end = span(shape, [stride or 0 for stride in known])
    for dimension in reversed(range(len(shape))):
        if known[dimension] is None:
            known[dimension] = end
            end *= shape[dimension]
    return tuple(stride or 0 for stride in known)


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The number of elements from the first to the last one of an array, gaps included; strides are at least 0."""
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def placed(memory: NDArray[Any], shape: Sequence[int], strides: Sequence[int]) -> NDArray[Any]:
    """An array with these strides, in elements, in a row of `span` elements."""
    return as_strided(memory, shape, [stride * memory.itemsize for stride in strides])


def strides_in(array: NDArray[Any]) -> tuple[int, ...]:
    """The strides of an array in elements; those over a single index are unused."""
    return tuple(stride // array.itemsize for stride in array.strides)


def misfit(array: NDArray[Any], strides: Strides, *, written: bool) -> str | None:
    """The reason why a kernel cannot take an array for a strided one; None if it can."""
    rows = list(zip(array.shape, array.strides, (*strides, 1), strict=True))
    used = [(stride, wanted) for extent, stride, wanted in rows if extent > 1]
    if any(stride % array.itemsize for stride, _ in used):
        return "has elements at distances that are no multiples of an element; pass a copy of it"
    if any(stride < 0 for stride, _ in used):
        return "has negative strides; pass a copy of it"
    if array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        return "is not contiguous along its last dimension; pass a copy of it"
    found = ((stride // array.itemsize, wanted) for stride, wanted in used)
    if (other := next(((s, wanted) for s, wanted in found if wanted not in (None, s)), None)) is not None:
        return f"has a stride of {other[0]} elements, where the kernel takes {other[1]}"
    if written and overlaps(array.shape, strides_in(array)):
        return "has elements that overlap, but the kernel writes it"
    return None


def share_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays share an element; True if that is hard to say."""
    try:
        return np.shares_memory(one, other, cast("Any", MOST_WORK))
    except np.exceptions.TooHardError:
        return True
