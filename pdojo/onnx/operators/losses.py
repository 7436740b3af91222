"""Losses of classes."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.build.losses import negative_likelihood
from pdojo.dialect.element_types import wide_type
from pdojo.onnx.operators.arguments import optional
from pdojo.onnx.operators.registry import Node, operator


def _loss(node: Node, scores: Array, dtype: str) -> Array:
    """The negative log-likelihoods of classes, weighted and reduced; scores are along axis 1."""
    kind, ignored = node.choice("reduction", ("mean", "sum", "none")), node.attribute("ignore_index")
    if scores.rank < 2:
        node.contradicts(f"scores of shape {list(scores.shape)} have no axis of classes")
    loss, _ = negative_likelihood(scores, node.array(1), optional(node, 2), ignored=ignored, reduction=kind)
    return build.cast(loss, dtype)


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(node: Node) -> Array:
    """The negative log-likelihood of classes."""
    x = node.array(0)
    return _loss(node, x, x.dtype)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(node: Node) -> Array | tuple[Array, Array]:
    """The negative log-likelihood of classes by the softmax of scores, and the logarithms of softmax."""
    x = node.array(0)
    scores = build.log_softmax(build.cast(x, wide_type(x.dtype)), 1)
    loss = _loss(node, scores, x.dtype)
    return (loss, build.cast(scores, x.dtype)) if len(node.outputs) > 1 else loss
