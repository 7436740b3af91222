"""Gradients of activation functions: the factor of the gradient of the result, times that gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites.activations import CUBIC, ROOT, sigmoid
from pdojo.math.composites.elements import Element, call, exp, where
from pdojo.math.composites.record import Accuracy, Precision, composite
from pdojo.math.composites.references import erfc
from pdojo.math.composites.references import sigmoid as exact_sigmoid


@composite(lambda gradient, y: gradient * (1 - y * y), Accuracy(2.0), domain=(-1, 1))
def tanh_gradient(gradient: Element, y: Element) -> Element:
    """The gradient of tanh from its result."""
    return gradient * (1 - y * y)


@composite(lambda gradient, y: gradient * (1 - y) * y, Accuracy(2.0), domain=(0, 1))
def sigmoid_gradient(gradient: Element, y: Element) -> Element:
    """The gradient of sigmoid from its result."""
    return gradient * (1 - y) * y


def _silu_gradient(gradient: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    slope = exact_sigmoid(x)
    return gradient * slope * (1 + x * exact_sigmoid(-x))


@composite(_silu_gradient, Accuracy(6.0, 4.0), domain=(-9, 9))
def silu_gradient(gradient: Element, x: Element) -> Element:
    """The gradient of `x sigmoid(x)`."""
    slope = sigmoid(x)
    return gradient * slope * (x * (1 - slope) + 1)


def _gelu_gradient(gradient: NDArray[Any], x: NDArray[Any], approximate: bool) -> NDArray[Any]:
    if not approximate:
        normal = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return gradient * (erfc(x * -math.sqrt(0.5)) / 2 + x * normal)
    inner = np.tanh((x + CUBIC * x**3) * ROOT)
    return gradient * ((1 + inner) / 2 + x * (1 - inner**2) * (1 + 3 * CUBIC * x * x) * ROOT / 2)


@composite(_gelu_gradient, Accuracy(4.0, 40.0), domain=(-5, 9), points=(-5, 5, 9), variants=[{"approximate": True}])
def gelu_gradient(gradient: Element, x: Element, *, approximate: bool = False) -> Element:
    """The gradient of gelu, or of its approximation by tanh."""
    if approximate:
        inner = call("tanh", (x * x * x * CUBIC + x) * ROOT)
        slope = (x * x * (3 * CUBIC) + 1) * ROOT
        return gradient * ((inner + 1) * 0.5 + x * (1 - inner * inner) * slope * 0.5)
    normal = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return gradient * ((call("erf", x * math.sqrt(0.5)) + 1) * 0.5 + x * normal)


@composite(
    lambda gradient, x, bound: np.where(x <= bound, 0, gradient),
    Accuracy(0),
    precision=Precision.OWN,
    variants=[{"bound": 2}],
    integers=True,
)
def threshold_gradient(gradient: Element, x: Element, *, bound: float = 0) -> Element:
    """The gradient where `x` is greater than a bound, or NaN."""
    return where(x <= bound, 0, gradient)
