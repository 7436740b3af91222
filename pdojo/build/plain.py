"""Numbers of Python and NumPy among arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pdojo.build.sizes import Open
from pdojo.errors import UsageError

MOST_BITS = 1023
"""Most bits of an integer: a larger one is no floating-point number, and Python would not convert it."""


def number_of(value: object) -> float:
    """A number of Python or NumPy as one of Python. Raises UsageError for other values."""
    plain: object = plain_of(value)
    if isinstance(plain, Open):
        return float(plain)  # Which raises: it is no number.
    if not isinstance(plain, int | float):
        raise UsageError(f"an operand is a handle or a number, not {type(plain).__name__}")
    return plain


def array_of(value: Any) -> np.ndarray[Any, np.dtype[Any]] | None:
    """The value if it is an array of NumPy with axes."""
    array = cast("np.ndarray[Any, np.dtype[Any]]", value) if isinstance(value, np.ndarray) else None
    return array if array is not None and array.ndim else None


def plain_of(value: Any) -> Any:
    """The value with Python's numbers in place of NumPy's, also in sequences. Raises UsageError for huge integers."""
    if isinstance(value, np.generic):
        return cast("np.generic[Any]", value).item()
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise UsageError(f"an integer of {value.bit_length()} bits is larger than the numbers of all element types")
    if isinstance(value, np.ndarray):
        return cast("np.ndarray[Any, np.dtype[Any]]", value).tolist()
    if type(value) in (list, tuple):
        rows: Any = [plain_of(each) for each in cast("Sequence[Any]", value)]
        return rows if isinstance(value, list) else tuple(rows)
    return value
