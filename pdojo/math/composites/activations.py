"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.elements import Element, call, exp, where
from pdojo.math.composites.record import Accuracy, Precision, composite
from pdojo.math.composites.references import erfc
from pdojo.math.composites.references import sigmoid as exact_sigmoid
from pdojo.math.composites.references import softplus as exact_softplus

_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805
"""The constants of selu, which keep mean 0 and variance 1."""
CUBIC, ROOT = 0.044715, math.sqrt(2 / math.pi)
"""The constants of the approximation of gelu by tanh."""


def _relu(x: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(x, 0)


@composite(_relu, Accuracy(0), precision=Precision.OWN, integers=True)
def relu(x: Element) -> Element:
    """`max(x, 0)`; NaN stays NaN."""
    return call("max", x, 0)


def _leaky_relu(x: NDArray[Any], slope: float) -> NDArray[Any]:
    return np.where(x > 0, x, x * slope)


@composite(_leaky_relu, Accuracy(1.0), variants=[{"slope": 0.3}])
def leaky_relu(x: Element, *, slope: Element | float = 0.01) -> Element:
    """`x` if it is positive, else `x * slope`; the slope may be an array that broadcasts."""
    return where(x > 0, x, x * slope)


def _elu(x: NDArray[Any], alpha: float, scale: float, input_scale: float) -> NDArray[Any]:
    return scale * np.where(x > 0, x, alpha * np.expm1(input_scale * x))


@composite(_elu, Accuracy(1.5), variants=[{"alpha": 1.5}, {"alpha": 0.5, "scale": 2, "input_scale": 3}])
def elu(x: Element, *, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Element:
    """`scale * x` if x is positive, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    below = call("expm1", x if input_scale == 1 else x * input_scale)
    factor = alpha * scale
    return where(x > 0, x if scale == 1 else x * scale, below if factor == 1 else below * factor)


@composite(lambda x, alpha, scale: _elu(x, alpha, scale, 1), Accuracy(2.0), variants=[{"alpha": 1.5, "scale": 2}])
def selu(x: Element, *, alpha: float = _ALPHA, scale: float = _SCALE) -> Element:
    """The scaled exponential linear unit, with the constants that keep mean 0 and variance 1."""
    return elu(x, alpha=alpha, scale=scale)


@composite(lambda x, alpha: _elu(x, alpha, 1, 1 / alpha), Accuracy(1.5), variants=[{"alpha": 0.7}, {"alpha": 2}])
def celu(x: Element, *, alpha: float = 1) -> Element:
    """`x` if it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    return where(x > 0, x, call("expm1", x / alpha) * alpha)


def _gelu(x: NDArray[Any], approximate: bool) -> NDArray[Any]:
    inner = 1 + np.tanh(ROOT * (x + CUBIC * x**3)) if approximate else erfc(x * -math.sqrt(0.5))
    return x / 2 * inner


@composite(_gelu, Accuracy(1.5, 1.0), variants=[{"approximate": True}])
def gelu(x: Element, *, approximate: bool = False) -> Element:
    """`x/2 (1 + erf(x / sqrt(2)))`, or its approximation by tanh."""
    half = x * 0.5
    if approximate:
        cubic = x * x * x * CUBIC + x
        inner = call("tanh", cubic * ROOT)
    else:
        inner = call("erf", x * math.sqrt(0.5))
    return half * (inner + 1)


@composite(exact_sigmoid, Accuracy(2.0, 0.01), points=(88.5, -88.5, 104))
def sigmoid(x: Element) -> Element:
    """`1 / (1 + exp(-x))`."""
    return 1 / (exp(-x) + 1)


@composite(lambda x, slope: x * exact_sigmoid(slope * x), Accuracy(2.0, 0.1), variants=[{"slope": 1.7}])
def silu(x: Element, *, slope: float = 1) -> Element:
    """`x / (1 + exp(-slope * x))`, also called swish."""
    return x / (exp(-x if slope == 1 else x * -slope) + 1)


@composite(
    lambda x, y, slope: x * exact_sigmoid(slope * x) * y,
    Accuracy(2.5, 0.1),
    domain=(-1e15, 1e15),
    variants=[{"slope": 1.7}],
)
def swiglu(x: Element, y: Element, *, slope: float = 1) -> Element:
    """`silu(x, slope) * y`."""
    return silu(x, slope=slope) * y


@composite(lambda x, alpha, beta: alpha * x + beta, Accuracy(0.5, 2.0), variants=[{"alpha": 1.5, "beta": -0.5}])
def affine(x: Element, *, alpha: float = 1, beta: float = 0) -> Element:
    """`alpha * x + beta`."""
    return x * alpha + beta


@composite(lambda x, alpha, beta: alpha * np.tanh(beta * x), Accuracy(3.0), variants=[{"alpha": 1.7159, "beta": 2 / 3}])
def scaled_tanh(x: Element, *, alpha: float = 1, beta: float = 1) -> Element:
    """`alpha * tanh(beta * x)`."""
    return call("tanh", x * beta) * alpha


def _softplus(x: NDArray[Any], beta: float, threshold: float | None) -> NDArray[Any]:
    found = exact_softplus(beta * x) / beta
    return found if threshold is None else np.where(beta * x > threshold, x, found)


@composite(_softplus, Accuracy(2.0, 0.01), variants=[{"beta": 3}, {"threshold": 20}, {"beta": 2, "threshold": 0.25}])
def softplus(x: Element, *, beta: float = 1, threshold: float | None = None) -> Element:
    """`log(1 + exp(beta * x)) / beta`, without overflow; `x` itself where `beta * x` is above the threshold."""
    scaled = x if beta == 1 else x * beta
    rest = call("log1p", exp(-abs(scaled)))
    found = (rest if beta == 1 else rest / beta) + call("max", x, 0)
    return found if threshold is None else where(scaled > threshold, x, found)


@composite(lambda x: 0 - exact_softplus(-x), Accuracy(1.5, 0.01))
def log_sigmoid(x: Element) -> Element:
    """`log(1 / (1 + exp(-x)))`, without overflow."""
    return call("min", x, 0) - call("log1p", exp(-abs(x)))


@composite(lambda x: x * np.tanh(exact_softplus(x)), Accuracy(2.0, 0.1))
def mish(x: Element) -> Element:
    """`x tanh(log(1 + exp(x)))`."""
    return x * call("tanh", softplus(x))


@composite(lambda x, alpha, beta: np.clip(x * alpha + beta, 0, 1), Accuracy(1.0, 0.5), points=(3, -3, -2.9999),
           variants=[{"alpha": 0.2}, {"alpha": -0.5, "beta": 0.6}, {"alpha": 0.0}])  # fmt: skip
def hardsigmoid(x: Element, *, alpha: float = 1 / 6, beta: float = 0.5) -> Element:
    """`alpha * x + beta` between 0 and 1."""
    if alpha and (beta / alpha).is_integer() and (1 / alpha).is_integer():
        # The sum of x and a whole number does not cancel.
        return call("clip", x + beta / alpha, lower=0, upper=1 / alpha) / (1 / alpha)
    return call("clip", x * alpha + beta, lower=0, upper=1)


@composite(lambda x: x * np.clip(x + 3, 0, 6) / 6, Accuracy(2.0), points=(3, -3, -2.9999, 3e38))
def hardswish(x: Element) -> Element:
    """`x (x + 3) / 6` between -3 and 3, 0 below, `x` above."""
    return x * hardsigmoid(x)


@composite(lambda x: x / (1 + np.abs(x)), Accuracy(1.5))
def softsign(x: Element) -> Element:
    """`x / (1 + |x|)`."""
    return x / (abs(x) + 1)


def _shrink(x: NDArray[Any], bias: float, bound: float) -> NDArray[Any]:
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, 0))


@composite(_shrink, Accuracy(0.5), points=(0.50001,), variants=[{"bias": 1.5, "bound": 1.5}])
def shrink(x: Element, *, bias: float = 0, bound: float = 0.5) -> Element:
    """`x` moved towards 0 by `bias` where it is beyond `bound` or `-bound`, and 0 elsewhere."""
    return where(x < -bound, x + bias, where(x > bound, x - bias, 0))


def _threshold(x: NDArray[Any], bound: float, value: float, keeps_nan: bool) -> NDArray[Any]:
    return np.where((x > bound) | (np.isnan(x) & keeps_nan), x, value)


@composite(
    _threshold,
    Accuracy(0),
    precision=Precision.OWN,
    variants=[{"bound": 2, "value": 9}, {"keeps_nan": False}],
    integers=True,
)
def threshold(x: Element, *, bound: float = 0, value: float = 0, keeps_nan: bool = True) -> Element:
    """`x` above a bound, and a value elsewhere; NaN stays NaN, or becomes the value."""
    below = x <= bound if keeps_nan or not x.is_float else call("ule", x, bound)
    return where(below, value, x)
