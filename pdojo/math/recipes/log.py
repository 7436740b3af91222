"""log, log2 and log1p.

Reduction: x = 2**e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), by integer arithmetic on the bits, so that f is exact;
log(x) = e*ln(2) + log(1 + f), and log(1 + f) = f + f**2 * polynomial(f) keeps its relative accuracy near 1.
"""

from __future__ import annotations

from math import inf, nan, sqrt

from pdojo.math.recipes.coefficients import LOG, LOG2
from pdojo.math.recipes.exp import LIMITS, LN2, LOG2_E
from pdojo.math.values import Format, Int, Real, polynomial

LOG2_E_LOW = {"f32": float.fromhex("0x1.4ae0cp-26"), "f64": float.fromhex("0x1.777d0ffda0d24p-56")}
"""log2(e) minus its value rounded to the format."""


def _split(bits: Int) -> tuple[Int, Real]:
    """(e, 1 + f) of the normal number with these bits."""
    fmt = bits.format
    root = fmt.bits_of(sqrt(0.5))
    above = bits - root
    mantissa = (above & ((1 << fmt.mantissa) - 1)) + root
    return above >> fmt.mantissa, mantissa.real()


def split(x: Real) -> tuple[Real, Real]:
    """(e, f) of a positive number, even a denormal one; arbitrary for other numbers."""
    fmt = x.format
    bits = x.bits()
    denormal = bits < 1 << fmt.mantissa
    raise_by = fmt.mantissa + 1
    bits = denormal.choose_int((x * 2.0**raise_by).bits(), bits)
    exponent, mantissa = _split(bits)
    exponent = denormal.choose_int(exponent - raise_by, exponent)
    return exponent.to_real(), mantissa - 1.0


def _special(x: Real, result: Real, pole: float) -> Real:
    """`result`, but -inf at `pole`, NaN below it, and x itself if x is +inf or NaN."""
    fmt = x.format
    bits = x.bits()
    finite = bits < fmt.infinity
    result = finite.choose(result, x)
    distance = x if pole == 0.0 else x - pole
    below = distance.bits() < 0
    at_pole = (distance.bits() & fmt.magnitude).equals(0)
    # A NaN with its sign set also counts as below, and the result is NaN, too.
    return at_pole.choose(x.like(-inf), below.choose(x.like(nan), result))


def _combine(e: Real, f: Real) -> Real:
    """e*ln(2) + log(1 + f)."""
    high, low = LN2[f.format.name]
    rest = (f * f).times_plus(polynomial(f, LOG[f.format.name]), e * low)
    return e.times_plus(high, f + rest)


def log(x: Real) -> Real:
    """The natural logarithm."""
    return _special(x, _combine(*split(x)), 0.0)


def log2(x: Real) -> Real:
    """The logarithm to base 2, exact for powers of two."""
    e, f = split(x)
    name = x.format.name
    rest = f.times_plus(LOG2_E_LOW[name], (f * f) * polynomial(f, LOG2[name]))
    return _special(x, e + f.times_plus(LOG2_E, rest), 0.0)


def log1p(x: Real) -> Real:
    """log(1 + x): e is taken from the rounded sum, f = x * 2**-e + (2**-e - 1) from x itself."""
    fmt = x.format
    exponent, _ = _split((x + 1.0).bits())
    # 4 * 2**-e, because 2**-e may be denormal.
    scale = _scale(fmt, exponent)
    f = (x * 0.25).times_plus(scale, scale.times_plus(0.25, -1.0))
    result = _special(x, _combine(exponent.to_real(), f), -1.0)
    linear = x.abs().bits() < fmt.bits_of(LIMITS[fmt.name].linear)
    return linear.choose(x, result)


def _scale(fmt: Format, exponent: Int) -> Real:
    return (((fmt.bias + 2) << fmt.mantissa) - (exponent << fmt.mantissa)).real()
