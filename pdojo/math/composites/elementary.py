"""Trigonometric and hyperbolic functions, their inverses, logarithms, and signs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.elements import Element, call, exp, log, sqrt, where
from pdojo.math.composites.record import Accuracy, Precision, composite
from pdojo.math.composites.references import sinc as sinc_of

_LARGE = 1e9
"""Squares of larger numbers may overflow; adding 1 to such a square does not change it."""


@composite(np.reciprocal, Accuracy(0.5), precision=Precision.OWN)
def reciprocal(x: Element) -> Element:
    """`1 / x`."""
    return 1 / x


@composite(np.log10, Accuracy(2.0), points=(10, 100, 1000, 0.1))
def log10(x: Element) -> Element:
    """The logarithm to base 10."""
    return call("log2", x) * math.log10(2)


@composite(np.tan, Accuracy(2.0), points=(math.pi / 2, -math.pi / 2, math.pi))
def tan(x: Element) -> Element:
    """The tangent."""
    return call("sin", x) / call("cos", x)


@composite(np.sinh, Accuracy(2.0), points=(19.9, 20.1, 88.9, 89.2, -89.2))
def sinh(x: Element) -> Element:
    """The hyperbolic sine."""
    # sinh |x| = (t + t / (t + 1)) / 2 with t = exp |x| - 1, and exp(|x|/2)^2 / 2 where t may overflow.
    size = abs(x)
    t, root = call("expm1", size), exp(size * 0.5)
    return call("copysign", where(size > 20, root * 0.5 * root, (t / (t + 1) + t) * 0.5), x)


@composite(np.cosh, Accuracy(2.0), points=(88.9, 89.2, -89.2))
def cosh(x: Element) -> Element:
    """The hyperbolic cosine."""
    root = exp(abs(x) * 0.5)
    return root * 0.5 * root + 0.5 / root / root


@composite(np.arcsinh, Accuracy(2.0), points=(1e9, 1.1e9, -3e38))
def asinh(x: Element) -> Element:
    """The inverse of the hyperbolic sine."""
    # asinh |x| = log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), and log |x| + log 2 where x^2 may overflow.
    size = abs(x)
    square = size * size
    near = call("log1p", square / (sqrt(square + 1) + 1) + size)
    return call("copysign", where(size > _LARGE, log(size) + math.log(2), near), x)


@composite(np.arccosh, Accuracy(2.0), points=(1.0001, 1e9, 1.1e9, 3e38))
def acosh(x: Element) -> Element:
    """The inverse of the hyperbolic cosine; NaN below 1."""
    t = x - 1
    near = call("log1p", sqrt(t * t + t * 2) + t)
    return where(x > _LARGE, log(x) + math.log(2), where(x < 1, math.nan, near))


@composite(np.arctanh, Accuracy(2.0), points=(0.999, -0.999, 1e-5))
def atanh(x: Element) -> Element:
    """The inverse of the hyperbolic tangent."""
    size = abs(x)
    return call("copysign", call("log1p", size * 2 / (1 - size)) * 0.5, x)


@composite(np.arcsin, Accuracy(3.0), points=(0.999, -0.999, 1e-5))
def asin(x: Element) -> Element:
    """The inverse of the sine."""
    # The tangent of asin(x) is x / sqrt(1 - x^2).
    return call("atan", x / sqrt((1 - x) * (x + 1)))


@composite(np.arccos, Accuracy(3.0), points=(0.999, -0.999, 1e-5))
def acos(x: Element) -> Element:
    """The inverse of the cosine."""
    # The tangent of acos(x) / 2 is sqrt((1 - x) / (1 + x)), also where acos(x) is tiny.
    return call("atan", sqrt((1 - x) / (x + 1))) * 2


@composite(np.arctan2, Accuracy(3.0))
def atan2(y: Element, x: Element) -> Element:
    """The angle of the points (x, y), from -pi to pi, as C's `atan2`."""
    high, wide = abs(y), abs(x)
    # Both 0 or both infinite: the quotient is no number.
    ratio = where(high == wide, where(high == 0, high, 1), high / wide)
    acute = call("atan", ratio)
    return call("copysign", where(call("sign_bit", x), math.pi - acute, acute), y)


@composite(np.hypot, Accuracy(2.0))
def hypot(x: Element, y: Element) -> Element:
    """`sqrt(x^2 + y^2)`, without overflow of squares; infinite if one operand is."""
    a, b = abs(x), abs(y)
    high, low = call("max", a, b), call("min", a, b)
    ratio = low / where(high == 0, 1, high)
    whole = where(low == math.inf, low, high * sqrt(ratio * ratio + 1))
    return where((a == math.inf) | (b == math.inf), math.inf, whole)


@composite(np.signbit, Accuracy(0))
def sign_bit(x: Element) -> Element:
    """Whether a number is negative; -0 is, too."""
    return call("copysign", 1, x) < 0


def _sign(x: NDArray[Any], keeps_nan: bool) -> NDArray[Any]:
    return np.sign(x) if keeps_nan else np.where(x == x, np.sign(x), 0)


@composite(_sign, Accuracy(0), precision=Precision.OWN, variants=[{"keeps_nan": False}], integers=True)
def sign(x: Element, *, keeps_nan: bool = True) -> Element:
    """1, 0 or -1 by the sign of the element; NaN stays NaN, or has sign 0."""
    if x.is_unsigned:
        return call("min", x, 1)
    if not x.is_float:
        return call("clip", x, lower=-1, upper=1)
    # For NaN both comparisons are false, and x + x, the value elsewhere, is NaN.
    negative = where(x < 0, -1, x + x)
    signs = where(x > 0, 1, negative)
    return where(x == 0 if keeps_nan else call("ueq", x, 0), 0, signs)


@composite(np.isnan, Accuracy(0), precision=Precision.OWN)
def is_nan(x: Element) -> Element:
    """Whether an element is NaN."""
    return x != x


def _infinite(x: NDArray[Any], positive: bool, negative: bool) -> NDArray[Any]:
    return (np.isposinf(x) & positive) | (np.isneginf(x) & negative)


@composite(_infinite, Accuracy(0), precision=Precision.OWN, variants=[{"positive": False}, {"negative": False}])
def is_inf(x: Element, *, positive: bool = True, negative: bool = True) -> Element:
    """Whether an element is an infinity of a sign that is asked for."""
    if positive and negative:
        return abs(x) == math.inf
    return x == (math.inf if positive else -math.inf if negative else math.nan)


@composite(sinc_of, Accuracy(4.0, 1e-3), points=(1e-5, 0.999, 3.001))
def sinc(x: Element) -> Element:
    """`sin(pi x) / (pi x)`, and 1 at 0."""
    # sin(pi x) is the sine of the distance from the nearest whole number, with its sign changed if that is odd.
    nearest = call("roundeven", x)
    odd = nearest - call("roundeven", nearest * 0.5) * 2
    sine = call("sin", (x - nearest) * math.pi) * (1 - odd * odd * 2)
    return where(x == 0, 1, sine / (x * math.pi))


def _xlogy(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log(y)))


@composite(_xlogy, Accuracy(2.0))
def xlogy(x: Element, y: Element) -> Element:
    """`x log(y)`, and 0 if x is 0 and y is a number."""
    return where((x == 0) & (y == y), 0, x * log(y))


@composite(np.logaddexp, Accuracy(2.0, 0.5))
def logaddexp(x: Element, y: Element) -> Element:
    """`log(exp(x) + exp(y))`, without overflow."""
    high, size = call("max", x, y), abs(x - y)
    # Equal infinities have no difference.
    return where(x == y, high + math.log(2), high + call("log1p", exp(-size)))


@composite(lambda x: np.log(x) - np.log1p(-x), Accuracy(2.0, 0.3), points=(0.1, 0.9, 0.999))
def logit(x: Element) -> Element:
    """`log(x / (1 - x))`."""
    return log(x / (1 - x))
