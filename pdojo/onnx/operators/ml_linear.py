"""Linear models of `ai.onnx.ml`."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.onnx.operators.ml_scores import (
    ML,
    TRANSFORMS,
    Labels,
    check_count,
    choice,
    floats,
    probit,
    rows_of,
    transformed,
    two_classes,
)
from pdojo.onnx.operators.registry import Node, operator


def _sums(node: Node, count: int) -> Array:
    """The products with the rows of the coefficients, plus intercepts, [N, count]."""
    x = build.cast(rows_of(node), "f32")
    weights, offsets = floats(node, "coefficients"), floats(node, "intercepts")
    check_count(node, "coefficients", weights.size, [count * x.shape[1]])
    check_count(node, "intercepts", offsets.size, [0, count])
    found = build.matmul(x, build.transpose(node.constant(weights.reshape(count, -1), "f32"), (1, 0)))
    return found + node.constant(offsets, "f32") if offsets.size else found


@operator("LinearRegressor", domain=ML)
def linear_regressor(node: Node) -> Array:
    """Sums of features times coefficients; of one target only PROBIT is applied."""
    count, transform = node.attribute("targets", 1), node.choice("post_transform", TRANSFORMS)
    if count < 1:
        node.contradicts(f"attribute 'targets' is {count}, not at least 1")
    scores = _sums(node, count)
    if count == 1:
        return probit(scores) if transform == "PROBIT" else scores
    return transformed(scores, transform)


@operator("LinearClassifier", domain=ML)
def linear_classifier(node: Node) -> tuple[Array, Array]:
    """The classes with the greatest sums, and the scores of all classes."""
    labels, transform = Labels(node, "classlabels_ints"), node.choice("post_transform", TRANSFORMS)
    count = floats(node, "intercepts").size or max(
        floats(node, "coefficients").size // max(rows_of(node).shape[1], 1), 1
    )
    scores = _sums(node, count)
    if count > 1:
        check_count(node, "classlabels_ints", labels.count, [count])
        return labels.of(node, build.argmax(scores, -1)), transformed(scores, transform)
    check_count(node, "classlabels_ints", labels.count, [2])
    if transform == "PROBIT":
        node.refuse("ONNX Runtime has no second score of a PROBIT of two classes")
    score = scores[:, 0]
    return labels.of(node, choice(score > 0, 1, 0)), two_classes(score, transform, positive=True)
