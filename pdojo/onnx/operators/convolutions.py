"""Convolutions and their transposes."""

from __future__ import annotations

from typing import Any

from pdojo import build
from pdojo.build import Array, conv_gradients
from pdojo.build.contractions import causal_conv_with_state
from pdojo.build.winograd import quick_conv
from pdojo.onnx.operators.arguments import integers, optional
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import Ends, auto_pad, explicit, halves, padding, per_axis


def windows_of(node: Node, x: Array, weights: Array) -> dict[str, Any]:
    """The arguments of `build.conv` that are attributes of a node."""
    rank = x.rank - 2
    if weights.rank != x.rank or rank < 0:
        node.contradicts(f"images {list(x.shape)} and weights {list(weights.shape)} differ in their dimensions")
    _check_window(node, weights)
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    window = [(k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilations, strict=True)]
    ends, groups = padding(node, x.shape[2:], window, strides), node.attribute("group", 1)
    return {"stride": strides, "padding": ends, "dilation": dilations, "groups": groups}


def _check_window(node: Node, weights: Array) -> None:
    given = node.attribute("kernel_shape")
    if given and tuple(given) != weights.shape[2:]:
        node.contradicts(f"attribute 'kernel_shape' is {list(given)}, the weights have {list(weights.shape[2:])}")


@operator("Conv")
def conv(node: Node) -> Array:
    """The convolution."""
    x, weights = node.array(0), node.array(1)
    return quick_conv(x, weights, optional(node, 2), **windows_of(node, x, weights))


@operator("ConvTranspose")
def conv_transpose(node: Node) -> Array:
    """The transpose of a convolution."""
    x, weights = node.array(0), node.array(1)
    _check_window(node, weights)
    rank = x.rank - 2
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    behind = per_axis(node, "output_padding", rank, 0)
    rows = zip(x.shape[2:], weights.shape[2:], strides, dilations, behind, strict=True)
    whole = [(extent - 1) * s + (k - 1) * d + 1 + more for extent, k, s, d, more in rows]
    return build.conv_transpose(
        x,
        weights,
        optional(node, 2),
        stride=strides,
        padding=_cuts(node, x, whole, strides),
        output_padding=behind,
        dilation=dilations,
        groups=node.attribute("group", 1),
    )


def _cuts(node: Node, x: Array, whole: list[int], strides: list[int]) -> Ends:
    """The elements to cut off a whole result."""
    rank = len(whole)
    shape, kind = node.attribute("output_shape"), auto_pad(node)
    if shape:
        return [halves(node, extent - wanted) for extent, wanted in zip(whole, list(shape)[-rank:], strict=True)]
    if kind in ("SAME_UPPER", "SAME_LOWER"):
        rows = zip(whole, x.shape[2:], strides, strict=True)
        return [halves(node, extent - before * stride) for extent, before, stride in rows]
    return explicit(node, rank) if kind == "NOTSET" else [(0, 0)] * rank


@operator("Col2Im")
def col2im(node: Node) -> Array:
    """The sums of the blocks that overlap at each element of an image."""
    x, image, block = node.array(0), integers(node, 1), integers(node, 2)
    rank = len(image)
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    return conv_gradients.folded(x, image, block, stride=strides, padding=explicit(node, rank), dilation=dilations)


@operator("CausalConvWithState")
def causal_conv(node: Node) -> tuple[Array, Array]:
    """The causal convolution of each channel: the state precedes the elements, whose last ones are the new state."""
    found, state = causal_conv_with_state(node.array(0), node.array(1), optional(node, 2), optional(node, 3))
    kind = node.choice("activation", ("none", "silu", "swish"))
    return (found if kind == "none" else build.silu(found)), state
