"""Activation functions that stay whole."""

from __future__ import annotations

from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.torch.operators.registry import PROMOTION, Call, aten, pointwise, promoted

pointwise("relu.default", build.relu)
pointwise("gelu.default", lambda x, *, approximate="none": build.gelu(x, approximate=approximate == "tanh"))
pointwise("silu.default", build.silu)
pointwise("mish.default", lambda x: x * build.tanh(build.softplus(x)))
pointwise("hardswish.default", lambda x: x * build.clip(x + 3, 0, 6) / 6)
pointwise("hardsigmoid.default", lambda x: build.clip(x + 3, 0, 6) / 6)
pointwise("leaky_relu.default", build.leaky_relu)
pointwise("_prelu_kernel.default", build.leaky_relu)


@aten("elu.default", pointwise=True)
def elu(call: Call, x: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Array:
    """`scale * x` if x is positive, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    (u,) = promoted(call, (x,))
    below = build.map("expm1", u if input_scale == 1 else u * input_scale)
    factor = alpha * scale
    return build.where(u <= 0, below if factor == 1 else below * factor, u if scale == 1 else u * scale)


@aten("softplus.default", pointwise=True)
def softplus(call: Call, x: Array, beta: float = 1, threshold: float = 20) -> Array:
    """`log(1 + exp(beta * x)) / beta`, and x where `beta * x` is above the threshold."""
    (u,) = promoted(call, (x,))
    return build.where(u * beta > threshold, u, build.softplus(u, beta))


@aten("hardtanh.default", pointwise=True)
def hardtanh(call: Call, x: Array, min_val: float = -1, max_val: float = 1) -> Array:
    """Elements between two bounds."""
    (u,) = promoted(call, (x,))
    return build.clip(u, *(bound if isinstance(bound, float) else type(bound)(bound) for bound in (min_val, max_val)))


@aten("log_sigmoid_forward.default", pointwise=True)
def log_sigmoid(call: Call, x: Array) -> tuple[Array, None]:
    """`log(1 / (1 + exp(-x)))`; the second result is a buffer of PyTorch's backward pass."""
    (u,) = promoted(call, (x,))
    if 1 in call.read:
        call.refuse("its buffer for the backward pass is read")
    return build.minimum(u, 0) - build.map("log1p", build.exp(-abs(u))), None


@aten("threshold.default", pointwise=True)
def threshold(call: Call, x: Array, bound: float, value: Any) -> Array:
    """Elements above a bound, and a value elsewhere."""
    (u,) = promoted(call, (x,), PROMOTION.NO_OPMATH)
    return build.where(u <= bound, value, u)
