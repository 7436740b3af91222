"""Convolutions and their transposes."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array, conv_gradients
from pdojo.onnx.operators.arguments import along, integers, optional, scalar_of
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import Ends, auto_pad, explicit, halves, padding, per_axis


def convolved(node: Node, x: Array, weights: Array, bias: Array | None) -> Array:
    """The convolution with the attributes of a node."""
    rank = x.rank - 2
    _check_window(node, weights)
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    window = [(k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilations, strict=True)]
    ends, groups = padding(node, x.shape[2:], window, strides), node.attribute("group", 1)
    return build.conv(x, weights, bias, stride=strides, padding=ends, dilation=dilations, groups=groups)


def _check_window(node: Node, weights: Array) -> None:
    given = node.attribute("kernel_shape")
    if given and tuple(given) != weights.shape[2:]:
        node.contradicts(f"attribute 'kernel_shape' is {list(given)}, the weights have {list(weights.shape[2:])}")


@operator("Conv")
def conv(node: Node) -> Array:
    """The convolution."""
    return convolved(node, node.array(0), node.array(1), optional(node, 2))


@operator("ConvInteger")
def conv_integer(node: Node) -> Array:
    """The convolution of integers with zero points, in i32."""
    x, weights = (build.cast(node.array(k), "i32") for k in (0, 1))
    if node.given(2):
        x = x - build.cast(scalar_of(node, 2), "i32")
    if node.given(3):
        zero = build.cast(node.array(3), "i32")
        weights = weights - (along(weights, 0, zero) if zero.size > 1 else build.reshape(zero, ()))
    return convolved(node, x, weights, None)


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
    x, weights = node.array(0), node.array(1)
    before = weights.shape[2] - 1
    past = node.array(3) if node.given(3) else build.constant(0, x.dtype, (*x.shape[:2], before))
    joined = build.concatenate([past, x], 2)
    found = build.conv(joined, weights, optional(node, 2), groups=x.shape[1])
    kind = node.attribute("activation", "none")
    if kind not in ("none", "silu", "swish"):
        node.refuse(f"'{kind}' is no activation")
    state = joined[:, :, joined.shape[2] - before :]
    return (found if kind == "none" else build.silu(found)), state
