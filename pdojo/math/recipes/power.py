"""powf: |x|**y = 2**(y * log2 |x|), with a logarithm more precise than the result, and the special cases of IEEE 754.

f32 is computed in f64. f64 holds log2 |x| and its product with y as pairs: with |y * log2 x| up to 1075, the last bit
of the result needs the logarithm to 2**-64.
"""

from __future__ import annotations

from math import nan

from pdojo.math.recipes.coefficients import EXP2, POW_ATANH, POW_EXP2, POW_LOG2
from pdojo.math.recipes.exp import LOG2_E, Lift, Nearest
from pdojo.math.recipes.log import split
from pdojo.math.recipes.pair import Pair
from pdojo.math.values import Real, polynomial

_TWICE_LOG2_E = (float.fromhex("0x1.71547652b82fep+1"), float.fromhex("0x1.777d0ffda0d24p-55"))
_THIRD = (float.fromhex("0x1.5555555555555p-2"), float.fromhex("0x1.5555555555555p-56"))
_BEYOND = 1080.0
"""A bound of exponents: 2**1080 overflows, 2**-1080 rounds to 0, and `Lift` can scale by both."""


def _with_ends(x: Real, e_log: Real) -> Real:
    """log2 of a magnitude: `e_log`, but -inf at 0 and x itself if x is +inf or NaN."""
    finite = x.bits() < x.format.infinity
    return x.bits().equals(0).choose(x.like(float("-inf")), finite.choose(e_log, x))


def _single(x: Real, y: Real) -> Real:
    """x**y for an f32 magnitude x."""
    wide = x.widen()
    e, f = split(wide)
    logarithm = e + f.times_plus(LOG2_E, (f * f) * polynomial(f, POW_LOG2["f32"]))
    power = (y.widen() * _with_ends(wide, logarithm)).clamp(-_BEYOND / 2, _BEYOND / 2)
    nearest = Nearest.to(power)
    p = polynomial(power - nearest.n, (1.0, *POW_EXP2["f32"]))
    return (p * nearest.power).narrow()


def _log2(x: Real) -> Pair:
    """log2 of a positive finite f64 as a pair: log(1 + f) = 2 atanh(s), s = f/(2 + f)."""
    e, f = split(x)
    # 2 + f and s = f / (2 + f) as pairs.
    below = Pair.sum_ordered(f.like(2.0), f)
    reciprocal = 1.0 / below.high
    ratio = f * reciprocal
    residue = (-ratio).times_plus(below.low, (-ratio).times_plus(below.high, f))
    s = Pair(ratio, residue * reciprocal).normalised()
    square = s.times(s.high, s.low).normalised()
    # atanh(s)/s = 1 + third + rest.
    third = square.times(*_THIRD)
    rest = (square.high * square.high) * polynomial(square.high, POW_ATANH["f64"])
    tail = Pair.sum_ordered(third.high, rest)
    series = Pair.sum_ordered(f.like(1.0), tail.high)
    series = Pair(series.high, series.low + (tail.low + third.low))
    logarithm = s.times(*_TWICE_LOG2_E).times(series.high, series.low)
    total = Pair.sum_ordered(e, logarithm.high)
    return Pair.sum_ordered(total.high, total.low + logarithm.low)


def _double(x: Real, y: Real) -> Real:
    """x**y for an f64 magnitude x."""
    logarithm = _log2(x)
    high = _with_ends(x, logarithm.high)
    product = y * high
    low = y.times_plus(logarithm.low, y.times_plus(high, -product))
    # If the result is out of range or infinite, `low` is negligible or inf - inf.
    moderate = product.abs().bits() < product.format.bits_of(_BEYOND)
    low = moderate.choose(low, 0.0)
    power = product.clamp(-_BEYOND, _BEYOND)
    lift = Lift.by_sign(power)
    nearest = Nearest.to(power, by=lift.rounder)
    return lift.scale(polynomial((power - nearest.n) + low, (1.0, *EXP2["f64"])), nearest)


def powf(x: Real, y: Real) -> Real:
    """x**y as IEEE 754 defines pow."""
    fmt = x.format
    magnitude = x.abs()
    power = _single(magnitude, y) if fmt.name == "f32" else _double(magnitude, y)
    y_bits = y.bits() & fmt.magnitude
    # (+-1)**(+-inf) = 1, while the product is 0 * inf.
    one = magnitude.bits().equals(fmt.one) & y_bits.equals(fmt.infinity)
    power = one.choose(x.like(1.0), power)
    # Negative x: odd powers are negative; powers that are not integers are undefined.
    negative = x.bits() < 0
    rounded = y.rint().bits()
    whole, fractional = rounded.equals(y.bits()), rounded.differs(y.bits())
    half = y * 0.5
    odd = whole & half.rint().bits().differs(half.bits())
    sign = (negative & odd).choose_int(x.bits() & ~fmt.magnitude, 0)
    signed = (power.bits() ^ sign).real()
    finite = (magnitude.bits() > 0) & (magnitude.bits() < fmt.infinity)
    undefined = negative & finite & fractional
    result = undefined.choose(x.like(nan), signed)
    # x**0 = 1 and 1**y = 1, even if the other operand is NaN.
    always = y_bits.equals(0) | x.bits().equals(fmt.one)
    return always.choose(x.like(1.0), result)
