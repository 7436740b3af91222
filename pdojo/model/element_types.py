"""Element types of handles (`pdojo.build`) and the NumPy types of their values."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build.numbers import UNSIGNED, storage_of
from pdojo.dialect.semantics.rounding import CARRIERS, INTERFACE
from pdojo.errors import UsageError

_NAMES = {
    **{dtype: name for name, dtype in CARRIERS.items() if name != "bf16"},
    **{np.dtype(f"uint{name[1:]}"): name for name in UNSIGNED},
}


@cache
def element_type(dtype: np.dtype[Any]) -> str:
    """The element type of handles for a NumPy type; `bf16` for the bfloat16 of ml_dtypes.

    Raises UsageError if kernels have no such type.

    >>> element_type(np.dtype(np.uint8))
    'u8'
    """
    if dtype.name == "bfloat16":
        return "bf16"
    found = _NAMES.get(dtype)
    if found is None:
        name = "string" if dtype == np.dtype(object) else dtype.name
        raise UsageError(f"kernels have no elements of type {name}")
    return found


def numpy_type(element: str) -> np.dtype[Any]:
    """The NumPy type of values of an element type of handles; that of ml_dtypes for `bf16`.

    >>> numpy_type("u8")
    dtype('uint8')
    """
    if element == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    if element in UNSIGNED:
        return np.dtype(f"uint{element[1:]}")
    return CARRIERS["i1" if element == "bool" else element]


def memory_of(values: NDArray[Any]) -> NDArray[Any]:
    """The values as kernels take them: signless integers, bit patterns of bf16; the same memory."""
    return values.view(INTERFACE[storage_of(element_type(values.dtype))])


def uniform(values: NDArray[Any]) -> build.Array:
    """The handle of an array whose elements are all the first of `values`, or of an array without elements."""
    element = element_type(values.dtype)
    number = cast("float", values.reshape(-1)[0].item()) if values.size else 0
    return build.constant(number, element, values.shape)
