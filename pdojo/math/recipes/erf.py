"""erf: an odd polynomial near 0, then 1 - exp(polynomial), then 1."""

from __future__ import annotations

from pdojo.math.recipes.coefficients import ERF_LARGE, ERF_SMALL, ERF_SPLIT
from pdojo.math.recipes.exp import exp_moderate
from pdojo.math.values import Real, polynomial

_FLAT = {"f32": 3.9375, "f64": 5.9375}
"""The argument from which erf rounds to 1."""


def erf(x: Real) -> Real:
    """The error function."""
    name = x.format.name
    magnitude = x.abs()
    square = x * x
    small = x.times_plus(polynomial(square, ERF_SMALL[name]), x)
    distance = magnitude.clamp(high=_FLAT[name]) - ERF_SPLIT[name]
    large = 1.0 - exp_moderate(polynomial(distance, ERF_LARGE[name]))
    near = magnitude.bits() < x.format.bits_of(ERF_SPLIT[name])
    return near.choose(small, large.with_sign_of(x))
