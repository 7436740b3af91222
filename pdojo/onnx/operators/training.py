"""Steps of optimisers: the operators of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.onnx.operators.arguments import scalar_of
from pdojo.onnx.operators.registry import Node, operator

_DOMAIN = "ai.onnx.preview.training"


def _of_all(node: Node, kinds: int, step: Callable[[Sequence[Array]], Sequence[Array]]) -> list[Array]:
    """The results of a step for each tensor; operands behind rate and time are grouped by kind."""
    count, rest = divmod(len(node.inputs) - 2, kinds)
    if rest or count < 1:
        node.refuse(f"it has {len(node.inputs) - 2} operands behind rate and time, and needs {kinds} for each tensor")
    found = [step([node.array(2 + kind * count + k) for kind in range(kinds)]) for k in range(count)]
    return [each[kind] for kind in range(len(found[0])) for each in found]


def _rate(node: Node) -> tuple[Array, Array]:
    rate = scalar_of(node, 0)
    return rate, build.cast(scalar_of(node, 1), rate.dtype)


@operator("Adagrad", domain=_DOMAIN)
def adagrad(node: Node) -> list[Array]:
    """New tensors and sums of squared gradients."""
    rate, time = _rate(node)
    decay, eps = node.attribute("decay_factor", 0.0), node.attribute("epsilon", 0.0)
    rate = rate / (time * decay + 1)

    def step(operands: Sequence[Array]) -> list[Array]:
        x, gradient, squares = operands
        g = x * node.attribute("norm_coefficient", 0.0) + gradient
        total = squares + g * g
        return [x - rate * g / (build.sqrt(total) + eps), total]

    return _of_all(node, 3, step)


@operator("Adam", domain=_DOMAIN)
def adam(node: Node) -> list[Array]:
    """New tensors, and means of gradients and of their squares."""
    rate, time = _rate(node)
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    grown = rate * build.sqrt(1 - build.power(beta, time)) / (1 - build.power(alpha, time))
    rate = build.where(time > 0, grown, rate)

    def step(operands: Sequence[Array]) -> list[Array]:
        x, gradient, mean, squares = operands
        g = x * node.attribute("norm_coefficient", 0.0) + gradient
        mean = mean * alpha + g * (1 - alpha)
        squares = squares * beta + g * g * (1 - beta)
        new = x - rate * mean / (build.sqrt(squares) + node.attribute("epsilon", 0.0))
        return [new * (1 - node.attribute("norm_coefficient_post", 0.0)), mean, squares]

    return _of_all(node, 4, step)


@operator("Momentum", domain=_DOMAIN)
def momentum(node: Node) -> list[Array]:
    """New tensors and velocities."""
    rate, time = _rate(node)
    alpha, beta, mode = node.attribute("alpha"), node.attribute("beta"), node.attribute("mode")
    if mode not in ("standard", "nesterov"):
        node.refuse(f"'{mode}' is no mode of momentum")

    def step(operands: Sequence[Array]) -> list[Array]:
        x, gradient, velocity = operands
        g = x * node.attribute("norm_coefficient") + gradient
        # The first step takes the gradient whole.
        new = velocity * alpha + g * build.where(time > 0, build.constant(beta, x.dtype), 1)
        return [x - rate * (g + new * alpha if mode == "nesterov" else new), new]

    return _of_all(node, 3, step)
