"""The number of iterations of the FPU's divider, of radix 16 (ct_vfdsu_ctrl.v, ct_vfdsu_prepare.v, ct_vfdsu_srt.v).

The first iteration finds the bit before the point and 2 after it, each further one 4. The divider ends early if the
remainder is zero. Zeros, infinities, NaN and results out of range take no iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Iterations = Callable[[float, float], int]
"""The number of iterations, as a function of two registers."""

_RANGES = {"d": (-1075, 1024), "s": (-150, 128), "h": (-25, 16)}
"""By format, the least and greatest difference of exponents with which the divider computes a quotient."""


def iterations(name: str, letter: str, most: int, lanes: Callable[[float], Sequence[float]]) -> Iterations:
    """The iterations of an instruction, at most `most`. Packed lanes wait for the one that takes longest."""
    if name.split(".")[0].endswith("sqrt"):
        return lambda a, b: max(root(x, most) for x in lanes(a))
    replicated = ".r." in name

    def divided(a: float, b: float) -> int:
        divisors = lanes(b)
        if replicated:
            divisors = [divisors[0]] * len(divisors)
        return max(quotient(x, y, letter, most) for x, y in zip(lanes(a), divisors, strict=True))

    return divided


def quotient(a: float, b: float, letter: str, most: int) -> int:
    """The iterations of a / b in a format; at most `most`."""
    if not (math.isfinite(a) and math.isfinite(b) and a and b):
        return 0
    least, greatest = _RANGES[letter]
    if not least <= math.frexp(a)[1] - math.frexp(b)[1] <= greatest:
        return 0
    dividend, divisor = _odd(a), _odd(b)
    if dividend % divisor:
        return most
    return _exact(dividend.bit_length() - divisor.bit_length(), most)


def root(a: float, most: int) -> int:
    """The iterations of the square root of a; at most `most`."""
    if not (math.isfinite(a) and a > 0):
        return 0
    radicand = _odd(a)
    found = math.isqrt(radicand)
    if (math.frexp(a)[1] - radicand.bit_length()) % 2 or found * found != radicand:
        return most
    return _exact(found.bit_length() - 1, most)


def _exact(bits: int, most: int) -> int:
    """The iterations of an exact result with a number of bits after the point."""
    return min(most, 1 + (bits + 1) // 4)


def _odd(value: float) -> int:
    """The odd integer that is the value's size times a power of two."""
    numerator = abs(value.as_integer_ratio()[0])
    return numerator // (numerator & -numerator)
