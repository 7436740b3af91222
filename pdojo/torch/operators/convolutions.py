"""Convolutions, their transposes, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pdojo import build
from pdojo.build import Array, conv_gradients, quantising
from pdojo.build.winograd import quick_conv
from pdojo.torch.operators.registry import Call, aten

Numbers = Sequence[int]


def per_axis(numbers: Numbers, rank: int) -> list[int]:
    """A number for each of `rank` axes."""
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


@aten("convolution.default")
def convolution(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
) -> Array:
    """The convolution, or its transpose."""
    rank = x.rank - 2
    strides, ends, dilations = (per_axis(each, rank) for each in (stride, padding, dilation))
    if not transposed:
        places: dict[str, Any] = {"stride": strides, "padding": ends, "dilation": dilations, "groups": groups}
        return (quick_conv if call.winograd else build.conv)(x, weights, bias, **places)
    behind = per_axis(output_padding, rank)
    return build.conv_transpose(
        x, weights, bias, stride=strides, padding=ends, output_padding=behind, dilation=dilations, groups=groups
    )


@aten("pdojo.byte_conv.default", known=(3,))
def byte_conv(
    call: Call,
    x: Array,
    weights: Array,
    zero: int,
    zeros: Any,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: int,
) -> Array:
    """The convolution of bytes minus their zero points, in 32 bits."""
    if isinstance(zeros, torch.Tensor):
        zeros = build.table(zeros.tolist(), "i32") if zeros.any() else None
    point = build.constant(zero, x.dtype) if zero else None
    places: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return quantising.integer_conv(x, weights, point, zeros, **places)


@aten("convolution_backward.default")
def convolution_backward(
    call: Call,
    gradient: Array,
    x: Array,
    weights: Array,
    bias_sizes: Numbers | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
    output_mask: Sequence[bool],
) -> list[Array | None]:
    """The gradients of the operand, the weights and the bias."""
    rank = x.rank - 2
    last: dict[str, Any] = {"groups": groups}
    windows = {"stride": stride, "padding": padding, "dilation": dilation}
    last |= {name: per_axis(each, rank) for name, each in windows.items()}
    few, many = (x, gradient) if transposed else (gradient, x)
    return [
        conv_gradients.of_images(gradient, weights, x.shape[2:], transposed=transposed, winograd=call.winograd, **last)
        if output_mask[0]
        else None,
        conv_gradients.of_weights(few, many, weights.shape[2:], **last) if output_mask[1] else None,
        build.sum(gradient, (0, *range(2, x.rank))) if output_mask[2] else None,
    ]
