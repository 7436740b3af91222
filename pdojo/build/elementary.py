"""Trigonometric and hyperbolic functions that the notation lacks, of what it has; f16 and bf16 are computed in f32."""

from __future__ import annotations

import math

from pdojo.build.activations import check_float
from pdojo.build.array import Array, cast, map
from pdojo.build.elementwise import exp, log, sqrt, where


def tan(x: Array) -> Array:
    """The tangent.

    >>> from pdojo import build
    >>> build.tan(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("tan", x)
    return cast(map("sin", u) / map("cos", u), x.dtype)


def sinh(x: Array) -> Array:
    """The hyperbolic sine.

    >>> from pdojo import build
    >>> build.sinh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    # sinh |x| = (t + t / (t + 1)) / 2 with t = exp |x| - 1, and exp(|x|/2)^2 / 2 where t may overflow.
    u = check_float("sinh", x)
    size = abs(u)
    t, root = map("expm1", size), exp(size * 0.5)
    return cast(map("copysign", where(size > 20, root * 0.5 * root, (t / (t + 1) + t) * 0.5), u), x.dtype)


def cosh(x: Array) -> Array:
    """The hyperbolic cosine.

    >>> from pdojo import build
    >>> build.cosh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    root = exp(abs(check_float("cosh", x)) * 0.5)
    return cast(root * 0.5 * root + 0.5 / root / root, x.dtype)


def asinh(x: Array) -> Array:
    """The inverse of the hyperbolic sine.

    >>> from pdojo import build
    >>> build.asinh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    # asinh |x| = log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), and log |x| + log 2 where x^2 may overflow.
    u = check_float("asinh", x)
    size = abs(u)
    square = size * size
    near = map("log1p", square / (sqrt(square + 1) + 1) + size)
    return cast(map("copysign", where(size > 1e9, log(size) + math.log(2), near), u), x.dtype)


def acosh(x: Array) -> Array:
    """The inverse of the hyperbolic cosine; NaN below 1.

    >>> from pdojo import build
    >>> build.acosh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("acosh", x)
    t = u - 1
    near = map("log1p", sqrt(t * t + t * 2) + t)
    return cast(where(u > 1e9, log(u) + math.log(2), where(u < 1, math.nan, near)), x.dtype)


def atanh(x: Array) -> Array:
    """The inverse of the hyperbolic tangent.

    >>> from pdojo import build
    >>> build.atanh(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("atanh", x)
    size = abs(u)
    return cast(map("copysign", map("log1p", size * 2 / (1 - size)) * 0.5, u), x.dtype)


def asin(x: Array) -> Array:
    """The inverse of the sine.

    >>> from pdojo import build
    >>> build.asin(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    # The tangent of asin(x) is x / sqrt(1 - x^2).
    u = check_float("asin", x)
    return cast(map("atan", u / sqrt((1 - u) * (u + 1))), x.dtype)


def acos(x: Array) -> Array:
    """The inverse of the cosine.

    >>> from pdojo import build
    >>> build.acos(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    # The tangent of acos(x) / 2 is sqrt((1 - x) / (1 + x)), also where acos(x) is tiny.
    u = check_float("acos", x)
    return cast(map("atan", sqrt((1 - u) / (u + 1))) * 2, x.dtype)


def atan2(y: Array, x: Array) -> Array:
    """The angle of the points (x, y), from -pi to pi, as C's `atan2`; shapes broadcast.

    >>> from pdojo import build
    >>> build.atan2(build.input("y", "f32", (4, 8)), build.input("x", "f32", (8,)))
    <Array f32 [4, 8]>
    """
    v, u = check_float("atan2", y), check_float("atan2", x)
    high, wide = abs(v), abs(u)
    # Both 0 or both infinite: the quotient is no number.
    ratio = where(high == wide, where(high == 0, high, 1), high / wide)
    acute = map("atan", ratio)
    return cast(map("copysign", where(sign_bit(u), math.pi - acute, acute), v), y.dtype)


def sign_bit(x: Array) -> Array:
    """Whether a number is negative; -0 is, too.

    >>> from pdojo import build
    >>> build.sign_bit(build.input("x", "f32", (4, 8)))
    <Array i1 [4, 8]>
    """
    return map("copysign", 1, x) < 0
