"""Carriers of element types in NumPy, and correctly rounded conversions between them.

NumPy has no bfloat16. Interface arrays of `bf16` hold bit patterns as `uint16`; inside, values are carried as `float32`
and rounded to nearest even after every operation. Every other type is carried by the NumPy type of its name; `i1` is
`bool`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[Any]
"""Values of one element type in its carrier, of any shape."""

CARRIERS: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_),
}
"""Per element type, the NumPy type of computed values."""

INTERFACE: dict[str, np.dtype[Any]] = {**CARRIERS, "bf16": np.dtype(np.uint16)}
"""Per element type, the NumPy type of the arrays that callers pass and get."""


def from_interface(array: Values, dtype: str) -> Values:
    """A copy of an interface array, in the carrier."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.copy()


def to_interface(values: Values, dtype: str) -> Values:
    """Carried values as an interface array."""
    if dtype != "bf16":
        return values
    bits = (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    # A NaN whose payload lies in the dropped bits would read back as an infinity.
    return np.where(np.isnan(values), np.uint16(0x7FC0), bits).reshape(values.shape)


def round_float32_to_bf16(values: Values) -> Values:
    """`float32` values rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), values, rounded.view(np.float32)).astype(np.float32).reshape(np.shape(values))


def round_to_odd(nearest: Values, error: Values) -> Values:
    """x rounded to odd, from `nearest`, the floating-point value nearest to x, and `error = x - nearest`.

    Rounding the result to a format of at least two bits less is then rounding x itself (Boldo and Melquiond, "Emulation
    of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    bits = nearest.view(np.int64 if nearest.dtype == np.float64 else np.int32)
    inexact = (error != 0) & ~np.isnan(error)
    towards = np.where(error > 0, np.inf, -np.inf).astype(nearest.dtype)
    return np.where(inexact & (bits & 1 == 0), np.nextafter(nearest, towards), nearest)


def round_float64(values: Values, dtype: str) -> Values:
    """`float64` values rounded once to a floating-point element type."""
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype != "bf16":
            return values.astype(CARRIERS[dtype])
        single = np.asarray(values.astype(np.float32), order="C")
        error = values - single.astype(np.float64)
    return round_float32_to_bf16(round_to_odd(single, error))


def _two_sum(a: Values, b: Values) -> tuple[Values, Values]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Values, b: Values) -> tuple[Values, Values]:
    def split(x: Values) -> tuple[Values, Values]:
        scaled = x * 134217729.0  # 2**27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def fma(a: Values, b: Values, c: Values, dtype: str) -> Values:
    """`a * b + c` of carried values, rounded once to `dtype` (twice if a float64 product over- or underflows)."""
    x, y, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    plain = x * y + z
    if dtype == "f64":
        high, low = _two_product(x, y)
        top, rest = _two_sum(z, low)
        main, tail = _two_sum(high, top)
        result = main + round_to_odd(*(np.asarray(v, order="C") for v in _two_sum(rest, tail)))
        return np.where(np.isfinite(plain) & np.isfinite(result) & (result != 0), result, plain)
    # The product of two values of at most 24 bits is exact in float64.
    total, error = _two_sum(x * y, z)
    odd = np.where(np.isfinite(plain), round_to_odd(np.asarray(total, order="C"), error), plain)
    return round_float64(odd, dtype)
