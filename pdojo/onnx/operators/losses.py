"""Losses of classes: the score of a class is picked by a comparison, because the notation has no indirection."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.onnx.operators.arguments import optional, wide_type
from pdojo.onnx.operators.registry import Node, operator


def _negative_likelihood(node: Node, scores: Array, classes: Array, weights: Array | None) -> Array:
    """The negative log-likelihoods of classes, weighted and reduced; scores are along axis 1."""
    kind, ignored = node.choice("reduction", ("mean", "sum", "none")), node.attribute("ignore_index")
    if scores.rank < 2 or classes.shape != (scores.shape[0], *scores.shape[2:]):
        node.contradicts(f"classes of shape {list(classes.shape)} do not fit scores of shape {list(scores.shape)}")
    if weights is not None and weights.shape != (scores.shape[1],):
        node.contradicts(f"weights of shape {list(weights.shape)} do not fit {scores.shape[1]} classes")
    chosen = build.iota(scores.shape, classes.dtype, 1) == build.expand_dims(classes, 1)
    if ignored is not None:
        chosen = chosen & build.expand_dims(classes != ignored, 1)
    factors = None
    picked = build.sum(build.where(chosen, -scores, 0), 1)
    if weights is not None:
        by_class = build.reshape(build.cast(weights, scores.dtype), (-1, *[1] * (scores.rank - 2)))
        factors = build.sum(build.where(chosen, by_class[None], 0), 1)
        picked = picked * factors
    elif ignored is not None:
        factors = build.cast(classes != ignored, scores.dtype)
    if kind == "none":
        return picked
    if kind == "sum":
        return build.sum(picked)
    return build.mean(picked) if factors is None else build.sum(picked) / build.sum(factors)


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(node: Node) -> Array:
    """The negative log-likelihood of classes."""
    x = node.array(0)
    scores = build.cast(x, wide_type(x.dtype))
    return build.cast(_negative_likelihood(node, scores, node.array(1), optional(node, 2)), x.dtype)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(node: Node) -> Array | tuple[Array, Array]:
    """The negative log-likelihood of classes by the softmax of scores, and the logarithms of softmax."""
    x = node.array(0)
    scores = build.log_softmax(build.cast(x, wide_type(x.dtype)), 1)
    loss = build.cast(_negative_likelihood(node, scores, node.array(1), optional(node, 2)), x.dtype)
    return (loss, build.cast(scores, x.dtype)) if len(node.outputs) > 1 else loss
