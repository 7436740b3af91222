"""Activation functions of every element; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

import math

from pdojo.build.array import Array, Like, cast, map, wide
from pdojo.build.elementwise import exp, maximum, where
from pdojo.dialect.element_types import is_float
from pdojo.errors import UsageError


def check_float(name: str, x: Array) -> Array:
    """`x` in the type that functions of several steps compute in. Raises UsageError for integers."""
    if not is_float(x.dtype):
        raise UsageError(f"'{name}' takes floating-point numbers, not {x.dtype}; use build.cast")
    return wide(x)


def relu(x: Array) -> Array:
    """`max(x, 0)`; NaN stays NaN.

    >>> from pdojo import build
    >>> build.relu(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return maximum(x, 0)


def leaky_relu(x: Array, slope: Like = 0.01) -> Array:
    """`x` if it is positive, else `x * slope`; the slope may be an array that broadcasts.

    >>> from pdojo import build
    >>> build.leaky_relu(build.input("x", "f32", (4, 8)), 0.1)
    <Array f32 [4, 8]>
    """
    u = check_float("leaky_relu", x)
    factor = wide(slope) if isinstance(slope, Array) else slope
    return cast(where(u > 0, u, u * factor), x.dtype)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """`x` if it is positive, else `alpha * (exp(x) - 1)`.

    >>> from pdojo import build
    >>> build.elu(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("elu", x)
    below = map("expm1", u)
    return cast(where(u > 0, u, below if alpha == 1 else below * alpha), x.dtype)


def selu(x: Array) -> Array:
    """The scaled exponential linear unit, with the constants that keep mean 0 and variance 1.

    >>> from pdojo import build
    >>> build.selu(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    u = check_float("selu", x)
    return cast(where(u > 0, u * scale, map("expm1", u) * (alpha * scale)), x.dtype)


def celu(x: Array, alpha: float = 1.0) -> Array:
    """`x` if it is positive, else `alpha * (exp(x / alpha) - 1)`.

    >>> from pdojo import build
    >>> build.celu(build.input("x", "f32", (4, 8)), 2.0)
    <Array f32 [4, 8]>
    """
    u = check_float("celu", x)
    return cast(where(u > 0, u, map("expm1", u / alpha) * alpha), x.dtype)


def gelu(x: Array, *, approximate: bool = False) -> Array:
    """`x/2 (1 + erf(x / sqrt(2)))`, or its approximation by tanh.

    >>> from pdojo import build
    >>> build.gelu(build.input("x", "bf16", (4, 8)))
    <Array bf16 [4, 8]>
    """
    u = check_float("gelu", x)
    half = u * 0.5
    if approximate:
        cubic = u * u * u * 0.044715 + u
        inner = map("tanh", cubic * math.sqrt(2 / math.pi))
    else:
        inner = map("erf", u * math.sqrt(0.5))
    return cast(half * (inner + 1), x.dtype)


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))`.

    >>> from pdojo import build
    >>> build.sigmoid(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("sigmoid", x)
    return cast(1 / (exp(-u) + 1), x.dtype)


def silu(x: Array) -> Array:
    """`x / (1 + exp(-x))`, also called swish.

    >>> from pdojo import build
    >>> build.silu(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("silu", x)
    return cast(u / (exp(-u) + 1), x.dtype)


def softplus(x: Array, beta: float = 1.0) -> Array:
    """`log(1 + exp(beta * x)) / beta`, without overflow: `max(x, 0) + log1p(exp(-|x|))` for beta 1.

    >>> from pdojo import build
    >>> build.softplus(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    u = check_float("softplus", x)
    scaled = u if beta == 1 else u * beta
    found = map("log1p", exp(-abs(scaled))) + maximum(scaled, 0)
    return cast(found if beta == 1 else found / beta, x.dtype)
