"""Singly rounded arithmetic that Python's floats lack: fused multiply-add, sums of three, f32 and f16.

f64 uses the C library's `fma` if it passes a test against exact integers, else exact integers. f32 and f16 are computed
in f64: sums, products, quotients and roots of numbers of p bits, rounded to 2p+2 bits or more and then to p bits, are
rounded correctly (Figueroa, "When is double rounding innocuous?"); sums of products are rounded to odd in between
(Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from struct import Struct

NAN = math.nan
INFINITY = math.inf

_DOUBLE, _WORD = Struct("<d"), Struct("<Q")
_SINGLE, _HALF = Struct("<f"), Struct("<e")

Fused = Callable[[float, float, float], float]


def bits(value: float) -> int:
    """The 64 bits of a float."""
    return _WORD.unpack(_DOUBLE.pack(value))[0]


def from_bits(word: int) -> float:
    """The float with these 64 bits."""
    return _DOUBLE.unpack(_WORD.pack(word))[0]


CANONICAL = from_bits(0x7FF8 << 48)
"""RISC-V's canonical NaN, the result of arithmetic."""


def exact_fma(a: float, b: float, c: float) -> float:
    """a * b + c of finite numbers by exact integers, rounded once."""
    (an, ad), (bn, bd), (cn, cd) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator = an * bn * cd + cn * ad * bd
    if numerator == 0:
        # IEEE 754: an exact zero sum is +0 for terms of unlike signs, and has the terms' sign otherwise.
        product = math.copysign(1, a) * math.copysign(1, b)
        return math.copysign(0.0, c) if 0 in (a, b) and product == math.copysign(1, c) else 0.0
    try:
        return numerator / (ad * bd * cd)  # Python rounds quotients of integers correctly
    except OverflowError:
        return INFINITY if numerator > 0 else -INFINITY


def _exact(a: float, b: float, c: float) -> float:
    if math.isfinite(a) and math.isfinite(b) and math.isfinite(c):
        return exact_fma(a, b, c)
    return a * b + c if math.isfinite(a) and math.isfinite(b) else _special(a, b, c)


def _special(a: float, b: float, c: float) -> float:
    product = NAN if 0 in (a, b) else a * b
    return product + c


# Test cases: results just above and below the middle of two floats, cancellation, subnormal and huge results.
_HARD = (
    (1.0 + 2**-30, 1.0 + 2**-23, -(2.0**-90)),
    (1.0 + 2**-52, 1.0 + 2**-52, 2.0**-105),
    (1.0 + 2**-27, 1.0 - 2**-27, -1.0),
    (2.0**-600, 2.0**-500, 2.0**-1074),
    (2.0**-540, 2.0**-534 * 1.5, 2.0**-1074),
    (2.0**600, 2.0**500, -(2.0**1023)),
    (1e308, 10.0, -1e308),
    (0.1, 10.0, -1.0),
    (-0.0, 1.0, 0.0),
    (-0.0, 1.0, -0.0),
)


@cache
def fused() -> Fused:
    """The fused multiply-add of doubles: the C library's if it passes the test, else by exact integers."""
    own: Fused | None = getattr(math, "fma", None)  # Python 3.13
    library = _c_fma() if own is None else _quiet(own)
    if library is not None and all(bits(library(*h)) == bits(exact_fma(*h)) for h in _HARD):
        return library
    return _exact


def _c_fma() -> Fused | None:
    import ctypes
    import ctypes.util

    for name in (None, ctypes.util.find_library("m")):
        try:
            found = ctypes.CDLL(name).fma
        except (OSError, AttributeError, TypeError):
            continue
        found.restype = ctypes.c_double
        found.argtypes = [ctypes.c_double] * 3
        return found
    return None


def _quiet(function: Fused) -> Fused:
    """Python's fma, changed to return IEEE's infinities and NaN instead of raising."""

    def call(a: float, b: float, c: float) -> float:
        try:
            return function(a, b, c)
        except (OverflowError, ValueError):
            return _exact(a, b, c)

    return call


def to_odd(value: float, error: float) -> float:
    """A result rounded to odd: `value` if its rounding error `error` is 0, else the neighbour with odd significand."""
    if error and not bits(value) & 1:
        return math.nextafter(value, INFINITY if error > 0 else -INFINITY)
    return value


def fused_odd(a: float, b: float, c: float) -> float:
    """a * b + c rounded to odd; a * b must be exact in a double, as it is for f32 and f16."""
    product = a * b
    total = product + c
    if total - total != 0:  # infinite or NaN
        return total
    part = total - product
    return to_odd(total, (product - (total - part)) + (c - part))


def sum_odd(a: float, b: float, c: float) -> float:
    """a + b + c rounded to odd."""
    total = a + b + c
    if total - total != 0:
        return total
    total = math.fsum((a, b, c))
    if total == 0:
        return -0.0 if all(math.copysign(1, x) < 0 and x == 0 for x in (a, b, c)) else 0.0
    return to_odd(total, math.fsum((a, b, c, -total)))


def to_single(value: float) -> float:
    """The nearest f32."""
    try:
        return _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(INFINITY, value)


def to_half(value: float) -> float:
    """The nearest f16."""
    try:
        return _HALF.unpack(_HALF.pack(value))[0]
    except OverflowError:
        return math.copysign(INFINITY, value)
