"""atan: one quotient brings the argument to |w| <= tan(pi/8), then an odd polynomial.

atan(x) = pi/4 + atan((x - 1) / (x + 1)) from tan(pi/8) on, and pi/2 + atan(-1 / x) from tan(3 pi/8) on.
"""

from __future__ import annotations

from pdojo.math.recipes.coefficients import ATAN
from pdojo.math.values import Real, polynomial

_MIDDLE, _LARGE = 0.41421354, 2.4142134
"""tan(pi/8) and tan(3 pi/8), roughly, in f32."""
_QUARTER_PI = {
    "f32": (float.fromhex("0x1.921fb6p-1"), float.fromhex("-0x1.777a5cp-26")),
    "f64": (float.fromhex("0x1.921fb54442d18p-1"), float.fromhex("0x1.1a62633145c07p-55")),
}
"""pi/4 as a sum of two numbers of each format."""


def atan(x: Real) -> Real:
    """The inverse tangent, between -pi/2 and pi/2."""
    name = x.format.name
    magnitude = x.abs()
    pattern = magnitude.bits()
    middle, large = (pattern > x.format.bits_of(bound) for bound in (_MIDDLE, _LARGE))
    above = large.choose(x.like(-1.0), middle.choose(magnitude - 1.0, magnitude))
    below = large.choose(magnitude, middle.choose(magnitude + 1.0, 1.0))
    w = above / below
    square = w * w
    high, low = _QUARTER_PI[name]
    rest = w.times_plus(square * polynomial(square, ATAN[name]), w)
    first = large.choose(x.like(2 * high), middle.choose(x.like(high), 0.0))
    second = large.choose(x.like(2 * low), middle.choose(x.like(low), 0.0))
    return (first + (rest + second)).with_sign_of(x)
