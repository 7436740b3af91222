"""Error, gamma and Bessel functions, computed in f64 and exact to f32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pdojo.math.composites import references
from pdojo.math.composites.coefficients import (
    ERFCX,
    ERFINV_FAR,
    ERFINV_NEAR,
    I0_FAR,
    I0_NEAR,
    I1_FAR,
    I1_NEAR,
)
from pdojo.math.composites.elements import Element, call, exp, log, sqrt, where
from pdojo.math.composites.record import Accuracy, Formula, Precision, Reference, composite

_SHIFT = 8
"""Numbers below this are shifted up, to where the series of Stirling are exact to f32."""


def _special(reference: Reference, points: Sequence[float] = ()) -> Callable[[Formula], Formula]:
    return composite(reference, Accuracy(0.51, 1e-3), precision=Precision.DOUBLE, points=points)


def _polynomial(coefficients: Sequence[float], x: Element) -> Element:
    """A polynomial by Horner's rule."""
    found = x * coefficients[-1] + coefficients[-2]
    for each in coefficients[-3::-1]:
        found = found * x + each
    return found


def _erfcx_of(size: Element, factor: Element | float) -> Element:
    """`exp(factor) * erfcx(size)` for `size` from 0."""
    t = 2 / (size + 2)
    return exp(_polynomial(ERFCX, t * 2 - 1) + factor) * t


@_special(references.erfc, points=(10, 9.9))
def erfc(x: Element) -> Element:
    """`1 - erf(x)`."""
    found = _erfcx_of(abs(x), -(x * x))
    return where(x < 0, 2 - found, found)


@_special(references.erfcx, points=(-9, 60))
def erfcx(x: Element) -> Element:
    """`exp(x^2) erfc(x)`."""
    found = _erfcx_of(abs(x), 0)
    return where(x < 0, exp(x * x) * 2 - found, found)


@_special(references.erfinv, points=(0.999, -0.999, 1 - 2**-20, 1e-5))
def erfinv(x: Element) -> Element:
    """The inverse of erf: M. Giles's approximation (2010), and two steps of Newton's method."""
    w = -log((1 - x) * (x + 1))
    y = where(w < 5, _polynomial(ERFINV_NEAR, w - 2.5), _polynomial(ERFINV_FAR, sqrt(w) - 3)) * x
    for _ in range(2):
        y = y - (call("erf", y) - x) * exp(y * y) * (math.sqrt(math.pi) / 2)
    return where(abs(x) < 1, y, where(abs(x) == 1, call("copysign", math.inf, x), math.nan))


@_special(references.lgamma, points=(1 + 2**-20, 1 - 2**-20, 2 + 2**-20, 60, -9.7))
def lgamma(x: Element) -> Element:
    """The logarithm of the size of the gamma function: Stirling's series, and the reflection for negative numbers."""
    z = where(x < 0.5, 1 - x, x)
    product = z
    for k in range(1, _SHIFT):
        product = product * (z + k)
    is_small = z < _SHIFT
    big = where(is_small, z + _SHIFT, z)
    square = 1 / (big * big)
    series = _polynomial((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156), square) / big
    found = (big - 0.5) * log(big) - big + (series + math.log(2 * math.pi) / 2)
    found = found - where(is_small, log(product), 0)
    found = where(z == math.inf, math.inf, where((z == 1) | (z == 2), 0, found))
    reflected = math.log(math.pi) - log(abs(call("sin", _fraction(x) * math.pi))) - found
    reflected = where(call("floor", x) == x, math.inf, reflected)
    return where(x < 0.5, where(x == -math.inf, math.inf, reflected), found)


def _fraction(x: Element) -> Element:
    """The distance from the nearest whole number, with which the sine of `pi * x` is exact."""
    return x - call("roundeven", x)


@_special(references.digamma, points=(1 + 2**-20, 1.4616321, 60, -9.7))
def digamma(x: Element) -> Element:
    """The derivative of the logarithm of the gamma function, by its asymptotic series and reflection."""
    z = where(x < 0.5, 1 - x, x)
    total = 1 / z
    for k in range(1, _SHIFT):
        total = total + 1 / (z + k)
    is_small = z < _SHIFT
    big = where(is_small, z + _SHIFT, z)
    square = 1 / (big * big)
    series = _polynomial((1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12), square) * square
    found = log(big) - 0.5 / big - series - where(is_small, total, 0)
    angle = _fraction(x) * math.pi
    reflected = found - call("cos", angle) / call("sin", angle) * math.pi
    reflected = where(call("floor", x) == x, math.nan, reflected)
    at_zero = call("copysign", math.inf, -x)
    return where(x == 0, at_zero, where(x < 0.5, reflected, found))


def _scaled_bessel(size: Element, near: Sequence[float], far: Sequence[float], factor: Element | None) -> Element:
    """A modified Bessel function times `exp(-size)`; the polynomial near 0 is multiplied by `factor`."""
    close = _polynomial(near, call("min", size, 8) * 0.25 - 1)
    distant = _polynomial(far, 16 / call("max", size, 8) - 1) / sqrt(size)
    return where(size <= 8, close if factor is None else close * factor, distant)


@_special(references.i0e, points=(8.1, 60, -60))
def i0e(x: Element) -> Element:
    """`exp(-|x|) I0(x)`."""
    return _scaled_bessel(abs(x), I0_NEAR, I0_FAR, None)


@_special(references.i0, points=(8.1, 60, -60))
def i0(x: Element) -> Element:
    """The modified Bessel function of the first kind of order 0."""
    return i0e(x) * exp(abs(x))


@_special(references.i1e, points=(8.1, 60, -60))
def i1e(x: Element) -> Element:
    """`exp(-|x|) I1(x)`."""
    size = abs(x)
    return call("copysign", _scaled_bessel(size, I1_NEAR, I1_FAR, size), x)


@_special(references.i1, points=(8.1, 60, -60))
def i1(x: Element) -> Element:
    """The modified Bessel function of the first kind of order 1."""
    return i1e(x) * exp(abs(x))
