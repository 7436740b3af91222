"""Steps of optimisers: the operators of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pdojo import build
from pdojo.build import Array, optimisers
from pdojo.onnx.operators.arguments import scalar_of
from pdojo.onnx.operators.registry import Node, operator

_DOMAIN = "ai.onnx.preview.training"


def _of_all(node: Node, kinds: int, step: Callable[..., list[Array]], **settings: Any) -> list[Array]:
    """The results of a step for each tensor; operands after rate and time are grouped by kind."""
    count, rest = divmod(len(node.inputs) - 2, kinds)
    if rest or count < 1:
        node.refuse(f"it has {len(node.inputs) - 2} operands behind rate and time, and needs {kinds} for each tensor")
    found = [step(*(node.array(2 + kind * count + k) for kind in range(kinds)), **settings) for k in range(count)]
    return [each[kind] for kind in range(len(found[0])) for each in found]


def _rate(node: Node) -> tuple[Array, Array]:
    """The rate and the number of the step."""
    rate = scalar_of(node, 0)
    return rate, build.cast(scalar_of(node, 1), rate.dtype)


@operator("Adagrad", domain=_DOMAIN)
def adagrad(node: Node) -> list[Array]:
    """New tensors and sums of squared gradients."""
    return _of_all(
        node,
        3,
        optimisers.adagrad,
        rate=optimisers.decayed_rate(*_rate(node), node.attribute("decay_factor", 0.0)),
        eps=node.attribute("epsilon", 0.0),
        penalty=node.attribute("norm_coefficient", 0.0),
    )


@operator("Adam", domain=_DOMAIN)
def adam(node: Node) -> list[Array]:
    """New tensors, and means of gradients and of their squares."""
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    return _of_all(
        node,
        4,
        optimisers.adam,
        rate=optimisers.corrected_rate(*_rate(node), alpha, beta),
        alpha=alpha,
        beta=beta,
        eps=node.attribute("epsilon", 0.0),
        penalty=node.attribute("norm_coefficient", 0.0),
        decay=node.attribute("norm_coefficient_post", 0.0),
    )


@operator("Momentum", domain=_DOMAIN)
def momentum(node: Node) -> list[Array]:
    """New tensors and velocities."""
    if (mode := node.attribute("mode")) not in ("standard", "nesterov"):
        node.refuse(f"'{mode}' is no mode of momentum")
    rate, time = _rate(node)
    return _of_all(
        node,
        3,
        optimisers.momentum,
        rate=rate,
        time=time,
        alpha=node.attribute("alpha"),
        beta=node.attribute("beta"),
        penalty=node.attribute("norm_coefficient"),
        nesterov=mode == "nesterov",
    )
