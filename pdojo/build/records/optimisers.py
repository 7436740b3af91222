"""Steps of optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import optimisers
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]
_TYPES = ("f32", "f64")
_RATE, _FIRST, _THIRD = array("", given=[0.1]), array("", given=[0]), array("", given=[3])


@operator(optimisers.decayed_rate, call(_RATE, _THIRD, 0.1), call(_RATE, _FIRST, 0.5), types=_TYPES)
def decayed_rate(rate: Values, time: Values, decay: float) -> Values:
    """The rate of a step."""
    return rate / (1 + time * decay)


@operator(
    optimisers.adagrad,
    call(array("3 4"), array("3 4"), array("3 4", low=0), rate=_RATE, eps=0.01, penalty=0.2),
    call(array("1"), array("1"), array("1", low=0), rate=_RATE, eps=1e-5, penalty=0.0),
    results=("x", "squares"),
    types=_TYPES,
)
def adagrad(x: Values, gradient: Values, squares: Values, *, rate: Values, eps: float, penalty: float) -> list[Values]:
    """The new tensor and sum of squares."""
    g = gradient + penalty * x
    total = squares + g**2
    return [x - rate * g / (np.sqrt(total) + eps), total]


@operator(
    optimisers.corrected_rate, call(_RATE, _THIRD, 0.9, 0.999), call(_RATE, _FIRST, 0.9, 0.999), types=_TYPES, ulps=4096
)
def corrected_rate(rate: Values, time: Values, alpha: float, beta: float) -> Values:
    """The rate of a step with the correction of the means."""
    return rate * np.sqrt(1 - beta**time) / (1 - alpha**time) if time > 0 else rate


@operator(
    optimisers.adam,
    call(array("3 4"), array("3 4"), array("3 4"), array("3 4", low=0), rate=_RATE, alpha=0.95, beta=0.1, eps=0.01,
         penalty=0.2, decay=0.01),
    call(array("5"), array("5"), array("5"), array("5", low=0), rate=_RATE, alpha=0.9, beta=0.999, eps=1e-5,
         penalty=0.0, decay=0.0),
    results=("x", "mean", "squares"),
    types=_TYPES,
)  # fmt: skip
def adam(
    x: Values, gradient: Values, mean: Values, squares: Values, *, rate: Values, alpha: float, beta: float, eps: float,
    penalty: float, decay: float,
) -> list[Values]:  # fmt: skip
    """The new tensor and means."""
    g = gradient + penalty * x
    mean, squares = alpha * mean + (1 - alpha) * g, beta * squares + (1 - beta) * g**2
    return [(1 - decay) * (x - rate * mean / (np.sqrt(squares) + eps)), mean, squares]


@operator(
    optimisers.momentum,
    call(array("3"), array("3"), array("3"), rate=_RATE, time=_FIRST, alpha=0.9, beta=0.5, penalty=0.01, nesterov=True),
    call(array("3"), array("3"), array("3"), rate=_RATE, time=_THIRD, alpha=0.9, beta=0.5, penalty=0.01, nesterov=True),
    call(array("2 3"), array("2 3"), array("2 3"), rate=_RATE, time=_THIRD, alpha=0.9, beta=0.5, penalty=0.0,
         nesterov=False),
    results=("x", "velocity"),
    types=_TYPES,
)  # fmt: skip
def momentum(
    x: Values, gradient: Values, velocity: Values, *, rate: Values, time: Values, alpha: float, beta: float,
    penalty: float, nesterov: bool,
) -> list[Values]:  # fmt: skip
    """The new tensor and velocity."""
    g = gradient + penalty * x
    speed = alpha * velocity + (beta if time > 0 else 1) * g
    return [x - rate * (g + alpha * speed if nesterov else speed), speed]
