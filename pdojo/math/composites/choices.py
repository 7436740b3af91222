"""Bounds, quotients and remainders of whole numbers, extrema: functions whose steps choose, or round as Python's do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.elements import Element, call, where
from pdojo.math.composites.record import Accuracy, Precision, composite
from pdojo.math.references import maxnum, minnum


def _clipped(x: NDArray[Any], lower: float | None, upper: float | None) -> NDArray[Any]:
    above = x if lower is None else np.maximum(x, lower)
    return above if upper is None else np.minimum(above, upper)


@composite(
    _clipped,
    Accuracy(0),
    precision=Precision.OWN,
    variants=[{"lower": -0.5, "upper": 2.5}, {"lower": 1}, {"lower": 3, "upper": -1}],
    integers=True,
)
def clip(x: Element, *, lower: Element | float | None = None, upper: Element | float | None = None) -> Element:
    """The elements of `x`, but at least `lower` and at most `upper`; None is no bound."""
    above = x if lower is None else call("max", x, lower)
    return above if upper is None else call("min", above, upper)


@composite(maxnum, Accuracy(0), precision=Precision.OWN, integers=True)
def fmax(x: Element, y: Element) -> Element:
    """The greater of two elements, and the other one if one is NaN."""
    return _number(x, y, call("max", x, y))


def _fmin(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return minnum(x, y) if x.dtype.kind == "f" else np.minimum(x, y)


@composite(_fmin, Accuracy(0), precision=Precision.OWN, integers=True)
def fmin(x: Element, y: Element) -> Element:
    """The lesser of two elements, and the other one if one is NaN."""
    return _number(x, y, call("min", x, y))


def _number(x: Element, y: Element, found: Element) -> Element:
    """`found`, if both operands are numbers, else the one that is."""
    return where(x != x, y, where(y != y, x, found)) if x.is_float else found


def _differs(rest: Element, divisor: Element) -> Element:
    """Whether a remainder is not 0 and has another sign than the divisor."""
    if divisor.known is not None:
        return rest > 0 if divisor.known < 0 else rest < 0
    return (rest != 0) & ((rest < 0) != (divisor < 0))


@composite(np.floor_divide, Accuracy(0.5), integers=True)
def floor_divide(x: Element, y: Element) -> Element:
    """The quotient rounded down, as NumPy's `//`; exact also where the rounded quotient is a whole number."""
    if not x.is_float:
        return call("floordiv", x, y)
    plain, rest = x / y, call("rem", x, y)
    differs = _differs(rest, y)
    quotient = (x - rest) / y
    quotient = where(differs, quotient - 1, quotient)
    floor = call("floor", quotient)
    found = where(quotient - floor > 0.5, floor + 1, floor)
    found = where(quotient == 0, call("copysign", 0, plain), found)
    if y.known is not None:
        return found if y.known else plain
    return where(y == 0, plain, found)


def _trunc_divide(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return np.trunc(x / y).astype(x.dtype)


@composite(_trunc_divide, Accuracy(0), integers=True)
def trunc_divide(x: Element, y: Element) -> Element:
    """The quotient rounded to its type, and then towards 0, as C's division of integers."""
    return call("trunc", x / y) if x.is_float else call("/", x, y)


def _remainder(x: NDArray[Any], y: NDArray[Any], zero_of_divisor: bool) -> NDArray[Any]:
    found = np.remainder(x, y)
    return found if zero_of_divisor else np.where(found == 0, np.copysign(found, x), found)


@composite(
    _remainder,
    Accuracy(1.0),
    precision=Precision.OWN,
    variants=[{"zero_of_divisor": False}],
    integers=True,
)
def remainder(x: Element, y: Element, *, zero_of_divisor: bool = True) -> Element:
    """The remainder with the sign of the divisor, as NumPy's `%`; 0 may have the sign of the dividend."""
    rest = call("rem", x, y)
    if rest.is_unsigned:
        return rest
    found = where(_differs(rest, y), rest + y, rest)
    if not rest.is_float or not zero_of_divisor:
        return found
    return where(rest == 0, call("copysign", rest, y), found)


@composite(np.round, Accuracy(0), points=(2.375, 0.125), variants=[{"decimals": 2}, {"decimals": -1}])
def round_decimals(x: Element, *, decimals: int = 0) -> Element:
    """The nearest number of so many decimals; the even one of two."""
    scale = float(10 ** abs(decimals))
    if decimals < 0:
        return call("roundeven", x / scale) * scale
    return call("roundeven", x * scale) / scale


@composite(lambda x, exponent: x * np.exp2(exponent), Accuracy(0.51), precision=Precision.DOUBLE)
def ldexp(x: Element, exponent: Element) -> Element:
    """`x * 2^exponent`."""
    return x * call("exp2", exponent)
