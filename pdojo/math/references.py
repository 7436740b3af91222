"""References of functions that NumPy lacks, on arrays of one type; integers of signed or unsigned types."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[Any]


def maximum(a: Values, b: Values) -> Values:
    """NaN wins; -0 is less than +0."""
    result = np.maximum(a, b)
    zero = result == 0
    if not np.any(zero):
        return result
    # A maximum of zero is +0 if one operand is.
    positive = ((a == 0) & ~np.signbit(a)) | ((b == 0) & ~np.signbit(b))
    return np.where(zero, np.copysign(np.abs(result), np.where(positive, 1, -1).astype(result.dtype)), result)


def minimum(a: Values, b: Values) -> Values:
    """NaN wins; -0 is less than +0."""
    return -maximum(-a, -b)


def maxnum(a: Values, b: Values) -> Values:
    """NaN loses; -0 is less than +0, although the dialect permits either result."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, maximum(a, b)))


def minnum(a: Values, b: Values) -> Values:
    """NaN loses; -0 is less than +0."""
    return -maxnum(-a, -b)


def erf(x: Values) -> Values:
    """The error function, in float64."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def rsqrt(x: Values) -> Values:
    """1 / sqrt(x)."""
    return 1.0 / np.sqrt(x)


def divide(a: Values, b: Values) -> Values:
    """The quotient rounded towards zero; 0 for division by zero; the least integer divided by -1 wraps around."""
    if a.dtype.kind == "u":
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)
    floor = floor_divide(a, b)
    inexact = (floor * b != a) & (b != 0)
    return (floor + (inexact & (floor < 0))).astype(a.dtype)


def floor_divide(a: Values, b: Values) -> Values:
    """The quotient rounded down, and 0 for division by zero."""
    safe = np.where((b == 0) | (b == -1), 1, b)
    return np.where(b == 0, 0, np.where(b == -1, -a, a // safe)).astype(a.dtype)


def remainder(a: Values, b: Values) -> Values:
    """The remainder of `divide`; the dividend for division by zero."""
    return a - divide(a, b) * b


def shift_left(a: Values, b: Values) -> Values:
    """Gives 0 for shifts by the width or more."""
    return np.where(_in_width(a, b), a << np.where(_in_width(a, b), b, 0), 0).astype(a.dtype)


def shift_right(a: Values, b: Values) -> Values:
    """Fills with the sign for signed operands."""
    last = a.dtype.itemsize * 8 - 1
    filled = a >> np.where(_in_width(a, b), b, last).astype(a.dtype)
    return np.where(_in_width(a, b) | (a.dtype.kind == "i"), filled, 0).astype(a.dtype)


def _in_width(a: Values, b: Values) -> Values:
    return np.asarray((b >= 0) & (b < a.dtype.itemsize * 8))
