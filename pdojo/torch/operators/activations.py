"""Activation functions that stay whole, and their gradients: composites, with PyTorch's names of parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import PROMOTION, Call, Function, aten, pointwise, promoted


def _with_parameters(
    composite: str, promotion: PROMOTION = PROMOTION.DEFAULT, **parameters: tuple[str, float]
) -> Function:
    """The rule of an operator; `parameters` are in its order, and have the composite's names and the defaults."""

    def rule(call: Call, x: Array, *arguments: Any, **keywords: Any) -> Array:
        given = {**dict(zip(parameters, arguments, strict=False)), **keywords}
        (u,) = promoted(call, (x,), promotion)
        return build.map(composite, u, **{own: given.get(name, value) for name, (own, value) in parameters.items()})

    return rule


_RULES = {
    "elu": _with_parameters("elu", alpha=("alpha", 1), scale=("scale", 1), input_scale=("input_scale", 1)),
    "hardtanh": _with_parameters("clip", min_val=("lower", -1), max_val=("upper", 1)),
    "leaky_relu": _with_parameters("leaky_relu", negative_slope=("slope", 0.01)),
    "softplus": _with_parameters("softplus", beta=("beta", 1), threshold=("threshold", 20)),
    "threshold": _with_parameters("threshold", PROMOTION.NO_OPMATH, threshold=("bound", 0), value=("value", 0)),
}
for _name, _rule in _RULES.items():
    aten(f"{_name}.default", pointwise=True)(_rule)
for _name in ("relu", "silu", "mish", "hardswish", "hardsigmoid"):
    pointwise(f"{_name}.default", partial(build.map, _name))
for _name in ("tanh", "sigmoid", "silu"):
    pointwise(f"{_name}_backward.default", partial(build.map, f"{_name}_gradient"))
pointwise("_prelu_kernel.default", build.leaky_relu)
pointwise("gelu.default", lambda x, *, approximate="none": build.gelu(x, approximate=approximate == "tanh"))
pointwise(
    "gelu_backward.default",
    lambda gradient, x, *, approximate="none": build.map(
        "gelu_gradient", gradient, x, approximate=approximate == "tanh"
    ),
)
pointwise(
    "threshold_backward.default",
    lambda gradient, x, threshold: build.map("threshold_gradient", gradient, x, bound=threshold),
)


@aten("log_sigmoid_forward.default", pointwise=True)
def log_sigmoid(call: Call, x: Array) -> tuple[Array, None]:
    """The second result is a buffer of PyTorch's backward pass."""
    (u,) = promoted(call, (x,))
    if 1 in call.read:
        call.refuse("its buffer for the backward pass is read")
    return build.map("log_sigmoid", u), None
