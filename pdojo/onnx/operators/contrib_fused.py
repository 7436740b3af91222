"""Fused operators of ONNX Runtime's domain: activations, products, convolutions and norms."""

from __future__ import annotations

from collections.abc import Callable

from pdojo import build
from pdojo.build import Array, indexing
from pdojo.build.extents import broadcast_shape
from pdojo.onnx.operators.arguments import axis_of, optional
from pdojo.onnx.operators.contractions import gemm
from pdojo.onnx.operators.contrib import check_rank, check_shape, contrib
from pdojo.onnx.operators.convolutions import conv
from pdojo.onnx.operators.recurrences import activation_of
from pdojo.onnx.operators.registry import Node


@contrib("Gelu", "X:T")
def gelu(node: Node) -> Array:
    """The product with the normal distribution."""
    return build.gelu(node.array(0))


def _biased(node: Node) -> Array:
    """The first operand plus the second one, which has an element for each of the last axis, if there is one."""
    x = node.array(0)
    if not node.given(1):
        return x
    check_shape(node, "bias", node.value(1), x.shape[-1:])
    return x + node.array(1)


@contrib("BiasGelu", "A:T B:T")
def bias_gelu(node: Node) -> Array:
    """The product of a sum with the normal distribution."""
    return build.gelu(_biased(node))


@contrib("FastGelu", "X:T bias:T?")
def fast_gelu(node: Node) -> Array:
    """The approximation of `bias_gelu` by tanh."""
    return build.gelu(_biased(node), approximate=True)


@contrib("QuickGelu", "X:T", "alpha")
def quick_gelu(node: Node) -> Array:
    """`x sigmoid(alpha x)`."""
    x = node.array(0)
    return x * build.sigmoid(x * node.attribute("alpha", 1.702))


@contrib("FusedMatMul", "A:T B:T", "alpha transA~ transB~ transBatchA~ transBatchB~")
def fused_matmul(node: Node) -> Array:
    """`alpha` times the product of matrices, whose last axes, and axes of batches, are in another order."""
    a, b = (_turned(node, operand, letter) for operand, letter in ((0, "A"), (1, "B")))
    found, alpha = build.matmul(a, b), node.attribute("alpha", 1.0)
    return found if alpha == 1 else found * alpha


def _turned(node: Node, operand: int, letter: str) -> Array:
    """The matrices of an operand. `transBatch` moves axis 0 before the last axis, `trans` exchanges the last two."""
    x = node.array(operand)
    order = [*range(x.rank)]
    if x.rank >= 3 and node.attribute(f"transBatch{letter}", 0):
        order = [*order[1:-1], 0, order[-1]]
    if x.rank >= 2 and node.attribute(f"trans{letter}", 0):
        order[-2:] = order[:-3:-1]
    return build.transpose(x, order)


_CONV = "activation activation_params auto_pad dilations group kernel_shape pads strides"


@contrib("FusedConv", "X:T W:T B:T? Z:T?", _CONV)
def fused_conv(node: Node) -> Array:
    """The activation of a convolution plus an array of its shape."""
    found = conv(node)
    if node.given(3):
        check_shape(node, "Z", node.value(3), found.shape)
        found = found + node.array(3)
    return _activated(node, list(node.attribute("activation_params") or ()))(found)


@contrib(
    "FusedGemm",
    "A:T B:T C:T?",
    "activation activation_alpha activation_beta activation_gamma alpha beta transA~ transB~",
)
def fused_gemm(node: Node) -> Array:
    """The activation of a product of matrices plus an array."""
    given = [node.attribute(f"activation_{name}") for name in ("alpha", "beta")]
    return _activated(node, [each for each in given if each is not None])(gemm(node))


def _activated(node: Node, parameters: list[float]) -> Callable[[Array], Array]:
    """The activation of a node, by default none."""
    name = node.attribute("activation", "")
    if name == "Clip":
        if len(parameters) != 2:
            node.contradicts(f"activation 'Clip' has {len(parameters)} parameters, not 2")
        return lambda x: build.clip(x, *parameters)
    if name == "HardSwish":
        return lambda x: x * build.clip(x / 6 + 0.5, 0, 1)
    return activation_of(node, name, *parameters[:2]) if name else lambda x: x


def _row(node: Node, operand: int, name: str, width: int) -> Array | None:
    """An operand with an element for each of the last axis; None if it is absent."""
    if not node.given(operand):
        return None
    check_shape(node, name, node.value(operand), (width,))
    return node.array(operand)


def _skipped(node: Node, bias: int) -> Array:
    """The sum of the first two operands, of which the second one may be of one batch, and of a bias."""
    x, skip = node.array(0), node.array(1)
    check_rank(node, "input", x, 2, 3)
    check_shape(node, "skip", skip, x.shape, (1, *x.shape[1:]), x.shape[1:])
    added = _row(node, bias, "bias", x.shape[-1])
    return x + skip if added is None else x + skip + added


_SKIP = "input:F skip:F gamma:F"


@contrib("SkipLayerNormalization", f"{_SKIP} beta:F? bias:F?", "epsilon")
def skip_layer_norm(node: Node) -> list[Array]:
    """The normalisation of a sum along the last axis, its statistics, and the sum."""
    x = _skipped(node, 4)
    scale, shift = (_row(node, k, name, x.shape[-1]) for k, name in ((2, "gamma"), (3, "beta")))
    found = build.layer_norm_with_statistics(x, scale, shift, eps=node.attribute("epsilon", 1e-12))
    return [*found, x][: len(node.outputs)]


@contrib("SkipSimplifiedLayerNormalization", f"{_SKIP} bias:F?", "epsilon")
def skip_rms_norm(node: Node) -> list[Array]:
    """The quotient of a sum by the root mean square along the last axis, its inverse as third result, and the sum."""
    x = _skipped(node, 3)
    if len(node.outputs) > 1 and node.outputs[1]:
        node.refuse("the mean, its second result, is not computed")
    scale = _row(node, 2, "gamma", x.shape[-1])
    found, inverse = build.rms_norm_with_statistics(x, scale, eps=node.attribute("epsilon", 1e-12))
    return [found, inverse, inverse, x][: len(node.outputs)]


def rms_norm(node: Node) -> list[Array]:
    """The quotient by the root mean square along the last axes, and its inverse."""
    x, scale = node.array(0), node.array(1)
    axes = [*range(axis_of(node, node.attribute("axis", -1), x.rank), x.rank)]
    if broadcast_shape(scale.shape, x.shape) != x.shape:
        node.contradicts(f"operand 'scale' of shape {list(scale.shape)} is not broadcast to {list(x.shape)}")
    found, inverse = build.rms_norm_with_statistics(x, scale, axis=axes, eps=node.attribute("epsilon", 1e-5))
    return [found, inverse][: len(node.outputs)]


for _domain in ("", "com.microsoft"):
    # ONNX Runtime has it in the default domain, too, where the package onnx has no definition.
    contrib("SimplifiedLayerNormalization", "X:T scale:T", "axis epsilon stash_type", domain=_domain)(rms_norm)


@contrib(
    "EmbedLayerNormalization",
    "input_ids:N segment_ids:N? word_embedding:F position_embedding:F segment_embedding:F? gamma:F beta:F mask:N? "
    "position_ids:N?",
    "epsilon mask_index_type",
)
def embed_layer_norm(node: Node) -> list[Array]:
    """The normalised sum of the embeddings of words, positions and segments; the lengths of rows; the sum."""
    words = node.value(0)
    check_rank(node, "input_ids", words, 2)
    batch, length = words.shape
    width = node.value(2).shape[-1]
    total = indexing.take_at(node.array(2), [node.indices(0)]) + _positions(node, batch, length)
    if node.given(1) != node.given(4):
        node.contradicts("one of the operands 'segment_ids' and 'segment_embedding' is absent")
    if node.given(1):
        check_shape(node, "segment_ids", node.value(1), words.shape)
        total = total + indexing.take_at(node.array(4), [node.indices(1)])
    scale, shift = _row(node, 5, "gamma", width), _row(node, 6, "beta", width)
    found = build.layer_norm(total, scale, shift, eps=node.attribute("epsilon", 1e-12))
    if node.attribute("mask_index_type", 1) not in (0, 1):
        node.contradicts(f"attribute 'mask_index_type' is {node.attribute('mask_index_type')}, not 0 or 1")
    mask = optional(node, 7)
    lengths = build.constant(0, "i32", (batch,))
    if mask is not None and node.attribute("mask_index_type", 1):
        check_shape(node, "mask", mask, words.shape)
        lengths = build.sum(build.cast(mask == 1, "i32"), 1)
    return [found, lengths, total][: len(node.outputs)]


def _positions(node: Node, batch: int, length: int) -> Array:
    table = node.array(3)
    if not node.given(8):
        if table.shape[0] < length:
            node.contradicts(f"operand 'position_embedding' has {table.shape[0]} rows for {length} words")
        return table[:length]
    check_shape(node, "position_ids", node.value(8), (batch, length), (1, length))
    return indexing.take_at(table, [node.indices(8)])
