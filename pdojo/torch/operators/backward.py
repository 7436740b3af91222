"""Gradients of losses, softmax and norms; f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.torch.operators.normalisations import last_axes
from pdojo.torch.operators.registry import Call, aten


@aten("soft_margin_loss_backward.default")
def soft_margin_backward(call: Call, gradient: Array, x: Array, target: Array, reduction: int) -> Array:
    """The gradient of `log(1 + exp(-target * x))`, or of its mean (reduction 1) or sum."""
    y = wide(target)
    # PyTorch's decomposition has 1 - sigmoid(y x), which cancels.
    slopes = -y * build.sigmoid(-(y * wide(x)))
    return wide(gradient) * (slopes / x.size if reduction == 1 else slopes)


@aten("_softmax_backward_data.default")
def softmax_backward(call: Call, gradient: Array, y: Array, dim: int, input_dtype: object) -> Array:
    """The gradient of softmax from its result."""
    product = wide(gradient) * wide(y)
    return product - wide(y) * build.sum(product, dim, keepdims=True) if y.rank else product - product * wide(y)


@aten("_log_softmax_backward_data.default")
def log_softmax_backward(call: Call, gradient: Array, y: Array, dim: int, input_dtype: object) -> Array:
    """The gradient of the logarithm of softmax from its result."""
    g = wide(gradient)
    return g - build.exp(wide(y)) * (build.sum(g, dim, keepdims=True) if y.rank else g)


@aten("native_layer_norm_backward.default")
def layer_norm_backward(
    call: Call,
    gradient: Array,
    x: Array,
    normalized_shape: Sequence[int],
    average: Array,
    inverse: Array,
    scale: Array | None,
    shift: Array | None,
    output_mask: Sequence[bool],
) -> list[Array | None]:
    """The gradients of the operand, the scale and the shift of a layer norm."""
    axes = last_axes(x, normalized_shape)
    g, rstd = wide(gradient), wide(inverse)
    normal = (wide(x) - build.cast(average, g.dtype)) * build.cast(rstd, g.dtype)
    inner = g if scale is None else g * build.cast(scale, g.dtype)
    first, second = (build.mean(each, axes, keepdims=True) for each in (inner, inner * normal))
    others = tuple(range(x.rank - len(axes)))
    return [
        (inner - first - normal * second) * build.cast(rstd, g.dtype) if output_mask[0] else None,
        build.sum(g * normal, others) if output_mask[1] else None,
        build.sum(g, others) if output_mask[2] else None,
    ]
