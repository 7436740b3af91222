"""Steps of optimisers: new tensors and statistics from a tensor, its gradient and its statistics."""

from __future__ import annotations

from pdojo.build.array import Array, constant, power
from pdojo.build.elementwise import sqrt, where
from pdojo.build.policy import of_one_type


@of_one_type
def decayed_rate(rate: Array, time: Array, decay: float) -> Array:
    """The rate of step `time`."""
    return rate / (time * decay + 1)


@of_one_type
def adagrad(x: Array, gradient: Array, squares: Array, *, rate: Array, eps: float, penalty: float) -> list[Array]:
    """The new tensor, and the sum of squared gradients; `penalty` is the factor of the tensor in its gradient."""
    g = x * penalty + gradient
    total = squares + g * g
    return [x - rate * g / (sqrt(total) + eps), total]


@of_one_type
def corrected_rate(rate: Array, time: Array, alpha: float, beta: float) -> Array:
    """The rate of step `time` of `adam`: from step 1 on, it corrects the means for their start at 0."""
    grown = rate * sqrt(1 - power(beta, time)) / (1 - power(alpha, time))
    return where(time > 0, grown, rate)


@of_one_type
def adam(
    x: Array,
    gradient: Array,
    mean: Array,
    squares: Array,
    *,
    rate: Array,
    alpha: float,
    beta: float,
    eps: float,
    penalty: float,
    decay: float,
) -> list[Array]:
    """The new tensor, and the running means of gradients (by `alpha`) and of their squares (by `beta`).

    The new tensor is multiplied by `1 - decay`.
    """
    g = x * penalty + gradient
    mean = mean * alpha + g * (1 - alpha)
    squares = squares * beta + g * g * (1 - beta)
    return [(x - rate * mean / (sqrt(squares) + eps)) * (1 - decay), mean, squares]


@of_one_type
def momentum(
    x: Array,
    gradient: Array,
    velocity: Array,
    *,
    rate: Array,
    time: Array,
    alpha: float,
    beta: float,
    penalty: float,
    nesterov: bool,
) -> list[Array]:
    """The new tensor and its velocity: `alpha` of the old one, and `beta` of the gradient, all of it in step 0."""
    g = x * penalty + gradient
    new = velocity * alpha + g * where(time > 0, constant(beta, x.dtype), 1)
    return [x - rate * (g + new * alpha if nesterov else new), new]
