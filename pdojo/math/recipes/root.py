"""rsqrt: two correctly rounded operations."""

from __future__ import annotations

from pdojo.math.values import Real


def rsqrt(x: Real) -> Real:
    """1/sqrt(x): +inf at 0, -inf at -0, NaN for negative x."""
    return 1.0 / x.sqrt()
