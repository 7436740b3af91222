"""Activation functions of every element; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from pdojo.build.array import Array, Like, map
from pdojo.build.elementary import unary

relu, sigmoid, silu, selu = unary("relu"), unary("sigmoid"), unary("silu"), unary("selu")


def leaky_relu(x: Array, slope: Like = 0.01) -> Array:
    """`x` if it is positive, else `x * slope`; the slope may be an array that broadcasts.

    >>> from pdojo import build
    >>> build.leaky_relu(build.input("x", "f32", (4, 8)), 0.1)
    <Array f32 [4, 8]>
    """
    return map("leaky_relu", x, slope=slope)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """`x` if it is positive, else `alpha * (exp(x) - 1)`.

    >>> from pdojo import build
    >>> build.elu(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return map("elu", x, alpha=alpha)


def celu(x: Array, alpha: float = 1.0) -> Array:
    """`x` if it is positive, else `alpha * (exp(x / alpha) - 1)`.

    >>> from pdojo import build
    >>> build.celu(build.input("x", "f32", (4, 8)), 2.0)
    <Array f32 [4, 8]>
    """
    return map("celu", x, alpha=alpha)


def gelu(x: Array, *, approximate: bool = False) -> Array:
    """`x/2 (1 + erf(x / sqrt(2)))`, or its approximation by tanh.

    >>> from pdojo import build
    >>> build.gelu(build.input("x", "bf16", (4, 8)))
    <Array bf16 [4, 8]>
    """
    return map("gelu", x, approximate=approximate)


def softplus(x: Array, beta: float = 1.0) -> Array:
    """`log(1 + exp(beta * x)) / beta`, without overflow: `max(x, 0) + log1p(exp(-|x|))` for beta 1.

    >>> from pdojo import build
    >>> build.softplus(build.input("x", "f32", (4, 8)))
    <Array f32 [4, 8]>
    """
    return map("softplus", x, beta=beta)
