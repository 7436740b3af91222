"""Shorter forms of exp, tanh and erf in f32, right to four units in the last place; in f64 they are the functions.

exp: a polynomial of degree 5, times 2; then one factor 2**(n - 1), so that results below the least factor are 0.
tanh, erf: with y = tanh(atanh(f(x))/2) = P/Q, f = 2y/(1 + y**2) = 2PQ/(P**2 + Q**2). Where f is near 1, it hardly
depends on y, so that errors of P and Q vanish, and no result is beyond 1.
"""

from __future__ import annotations

from pdojo.math.recipes.coefficients import (
    ERF_DENOMINATOR,
    ERF_NUMERATOR,
    EXP_APPROX,
    TANH_DENOMINATOR,
    TANH_NUMERATOR,
)
from pdojo.math.recipes.erf import erf
from pdojo.math.recipes.exp import LOG2_E, Nearest, exp, exp_moderate, reduce, rounder, tanh
from pdojo.math.values import Real, polynomial

_ZERO, _INFINITE = -87.5, 89.0
"""Arguments at which exp_approx is 0, or rounds to +inf."""
_FLAT_TANH, _FLAT_ERF = 8.8125, 3.90625
"""Arguments at which the results round to 1."""


def exp_approx(x: Real) -> Real:
    """exp(x); 0 instead of numbers less than 2**-125.5."""
    if x.format.name == "f64":
        return exp(x)
    return exp_approx_moderate(x.clamp(_ZERO, _INFINITE))


def exp_approx_moderate(x: Real) -> Real:
    """exp(x) for |x| <= 86 in f32 and |x| <= 708 in f64."""
    if x.format.name == "f64":
        return exp_moderate(x)
    # The power is 2**(n - 1), and 0 for the least n.
    nearest = Nearest.to(x, LOG2_E, rounder(x.format, -1))
    twice = polynomial(reduce(x, nearest.n)[0], [2 * c for c in (1.0, *EXP_APPROX["f32"])])
    return twice * nearest.power


def tanh_approx(x: Real) -> Real:
    """tanh(x)."""
    if x.format.name == "f64":
        return tanh(x)
    return _doubled(x.clamp(-_FLAT_TANH, _FLAT_TANH), TANH_NUMERATOR["f32"], TANH_DENOMINATOR["f32"])


def erf_approx(x: Real) -> Real:
    """The error function."""
    if x.format.name == "f64":
        return erf(x)
    return _doubled(x.clamp(-_FLAT_ERF, _FLAT_ERF), ERF_NUMERATOR["f32"], ERF_DENOMINATOR["f32"])


def _doubled(x: Real, numerator: tuple[float, ...], denominator: tuple[float, ...]) -> Real:
    """2y/(1 + y**2) for the y = x*P(x**2)/Q(x**2) of two polynomials."""
    square = x * x
    above, below = x * polynomial(square, numerator), polynomial(square, denominator)
    product = above * below
    return (product + product) / above.times_plus(above, below * below)
