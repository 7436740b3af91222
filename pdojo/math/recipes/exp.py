"""exp, exp2, expm1 and tanh.

Reduction: x = n*ln(2) + r with an integer n and |r| <= ln(2)/2 (Cody and Waite: ln(2) in two parts, the first step of
the subtraction exact); exp(x) = 2**n * exp(r). Adding a rounder gives n in two forms: subtracting the rounder again
gives it as a number, and the low bits of the sum hold the biased exponent of 2**n, which a shift puts into its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.math.recipes.coefficients import EXP, EXP2, EXPM1
from pdojo.math.recipes.pair import Pair
from pdojo.math.values import Format, Real, polynomial

LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN2 = {
    "f32": (float.fromhex("0x1.62e43p-1"), float.fromhex("-0x1.05c61p-29")),
    "f64": (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")),
}
"""ln(2) as the sum of two numbers of the format."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The arguments beyond which the results of a format no longer change."""

    exp: tuple[float, float]
    """exp rounds to 0 up to the first argument, and to +inf from the second on."""
    exp2: tuple[float, float]
    minus_one: float
    """Argument up to which expm1 rounds to -1."""
    linear: float
    """Bound of |x| below which expm1(x) rounds to x."""
    flat: float
    """Argument from which tanh rounds to 1."""
    lift: int
    """Amount by which exponents are raised if results may be denormal, and lowered if they may overflow."""


LIMITS = {
    "f32": Limits((-104.0, 89.0), (-151.0, 128.0), -20.0, 2.0**-26, 10.0, 24),
    "f64": Limits((-746.0, 710.0), (-1076.0, 1024.0), -40.0, 2.0**-55, 20.0, 64),
}


def rounder(fmt: Format, offset: int = 0) -> float:
    """A number which, added to a small number, leaves the biased exponent of 2**(n + offset) in the sum's low bits."""
    return fmt.rounder + (fmt.bias + offset)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The integer n nearest to a number."""

    n: Real
    shifted: Real
    """A number with the biased exponent of 2**(n + offset) in the low bits, for the offset of the rounder."""

    @property
    def power(self) -> Real:
        """2**(n + offset), if that is a normal number or 0."""
        fmt = self.shifted.format
        if self.shifted.places_exponents:
            return self.shifted.with_exponent(-fmt.rounder)
        return (self.shifted.bits() << fmt.mantissa).real()

    @staticmethod
    def to(x: Real, factor: float = 1.0, by: Real | float | None = None) -> Nearest:
        """The integer nearest to `x * factor`, by a rounder, whose offset is 0 unless given."""
        if by is None:
            by = rounder(x.format)
        shifted = x + by if factor == 1.0 else x.times_plus(factor, by)
        return Nearest(shifted - by, shifted)


@dataclass(frozen=True, slots=True)
class Lift:
    """A split of 2**n into two factors, so that a scaled result is rounded exactly once.

    Negative n: factors 2**(n + lift), which is normal, and 2**-lift, which may give a denormal result. Other n: factors
    2**(n - lift), and 2**lift, which may overflow.
    """

    rounder: Real
    last: Real

    @staticmethod
    def by_sign(x: Real) -> Lift:
        """The split for an n with the sign of `x`."""
        fmt, lift = x.format, LIMITS[x.format.name].lift
        if x.places_exponents:
            signed = x.like(float(lift)).with_sign_of(x)
            return Lift(x.like(rounder(fmt)) - signed, signed.with_exponent(float(fmt.bias)))
        negative = x.bits() < 0
        chosen = negative.choose(x.like(rounder(x.format, lift)), rounder(x.format, -lift))
        return Lift(chosen, negative.choose(x.like(2.0**-lift), 2.0**lift))

    def scale(self, p: Real, nearest: Nearest) -> Real:
        """`p * 2**n`; n was found with this split's `rounder`."""
        return p * nearest.power * self.last


def reduce(x: Real, n: Real) -> tuple[Real, Real]:
    """(r, first): `first = x - n*high` is exact, `r = first - n*low` is rounded once; high + low = ln(2)."""
    high, low = LN2[x.format.name]
    first = n.times_plus(-high, x)
    return n.times_plus(-low, first), first


def _exp_reduced(r: Real) -> Real:
    return polynomial(r, (1.0, 1.0, *EXP[r.format.name]))


def exp(x: Real) -> Real:
    """exp(x)."""
    x = x.clamp(*LIMITS[x.format.name].exp)
    if x.scales:
        n = Nearest.to(x, LOG2_E).n
        return _exp_reduced(reduce(x, n)[0]).scaled(n)
    lift = Lift.by_sign(x)
    nearest = Nearest.to(x, LOG2_E, lift.rounder)
    r, _ = reduce(x, nearest.n)
    return lift.scale(_exp_reduced(r), nearest)


def exp_moderate(x: Real) -> Real:
    """exp(x) for |x| <= 87 in f32 and |x| <= 708 in f64, where 2**n is a normal number."""
    nearest = Nearest.to(x, LOG2_E)
    r, _ = reduce(x, nearest.n)
    return _exp_reduced(r) * nearest.power


def exp2(x: Real) -> Real:
    """2**x, exact for integers."""
    x = x.clamp(*LIMITS[x.format.name].exp2)
    lift = Lift.by_sign(x)
    nearest = Nearest.to(x, by=lift.rounder)
    return lift.scale(polynomial(x - nearest.n, (1.0, *EXP2[x.format.name])), nearest)


def exp2_moderate(x: Real) -> Real:
    """2**x for |x| <= 126 in f32 and |x| <= 1022 in f64."""
    nearest = Nearest.to(x)
    return polynomial(x - nearest.n, (1.0, *EXP2[x.format.name])) * nearest.power


def _expm1_parts(x: Real, nearest: Nearest, power: Real, minus: float) -> Real:
    """`power * exp(r) - minus`, where power/minus = 2**n and x = n*ln(2) + r.

    exp(r) - 1 is not rounded before the sum: it is represented as r plus a small remainder, which includes the
    rounding errors of r and of the sum of the leading terms.
    """
    r, first = reduce(x, nearest.n)
    _, low = LN2[x.format.name]
    lost = nearest.n.times_plus(-low, first - r)
    rest = (r * r).times_plus(polynomial(r, EXPM1[x.format.name]), lost)
    leading = Pair.sum_ordered(power - minus, power * r)
    return leading.high + power.times_plus(rest, leading.low)


def expm1(x: Real) -> Real:
    """exp(x) - 1."""
    limits = LIMITS[x.format.name]
    clamped = x.clamp(limits.minus_one, limits.exp[1])
    # Half of the result, because 2**n overflows before exp(x) does.
    nearest = Nearest.to(clamped, LOG2_E, rounder(x.format, -1))
    half = _expm1_parts(clamped, nearest, nearest.power, 0.5)
    linear = x.abs().bits() < x.format.bits_of(limits.linear)
    return linear.choose(x, half + half)


def tanh(x: Real) -> Real:
    """tanh(x) = t/(t + 2) for t = exp(2*x) - 1, on |x|: t never cancels."""
    doubled = x.abs().clamp(high=LIMITS[x.format.name].flat)
    doubled = doubled + doubled
    nearest = Nearest.to(doubled, LOG2_E)
    t = _expm1_parts(doubled, nearest, nearest.power, 1.0)
    # One Newton step corrects the rounding errors of 1/divisor, the quotient and the divisor.
    divisor = t + 2.0
    lost = t - (divisor - 2.0)
    inverse = 1.0 / divisor
    quotient = t * inverse
    remainder = (-quotient).times_plus(lost, (-quotient).times_plus(divisor, t))
    return remainder.times_plus(inverse, quotient).with_sign_of(x)
