"""Support vector machines of `ai.onnx.ml`, as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.onnx.operators.ml_scores import (
    ML,
    TRANSFORMS,
    Labels,
    check_count,
    choice,
    floats,
    ints,
    probit,
    rows_of,
    transformed,
    two_classes,
)
from pdojo.onnx.operators.registry import Node, operator

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
MOST_STEPS = 100
"""The most steps in which probabilities of several classes converge."""


def _kernel(node: Node, vectors: NDArray[np.float32], kind: str, offset: float = 0) -> Array:
    """The kernel function of each sample with each vector, [N, V]; `offset` joins the sums of a linear one."""
    x = build.cast(rows_of(node), "f32")
    parameters = floats(node, "kernel_params")
    check_count(node, "kernel_params", parameters.size, [3] if kind != "LINEAR" else [0, parameters.size])
    if vectors.shape[1] != x.shape[1]:
        node.contradicts(f"vectors of {vectors.shape[1]} features do not fit samples of {x.shape[1]}")
    known = node.constant(vectors, "f32")
    if kind == "RBF":
        squares = build.sum_squares(x[:, None, :] - known[None], -1)
        return build.exp(squares * -parameters[0].item())
    products = build.matmul(x, build.transpose(known, (1, 0)))
    if kind == "LINEAR":
        return products + offset if offset else products
    gamma, first, degree = parameters.tolist()
    scaled = products * gamma + first
    return build.tanh(scaled) if kind == "SIGMOID" else build.power(scaled, degree)


def _vectors(node: Node, count: int) -> NDArray[np.float32]:
    """The support vectors, [count, features]."""
    vectors = floats(node, "support_vectors")
    if vectors.size % count or not vectors.size:
        node.contradicts(f"attribute 'support_vectors' has {vectors.size} elements for {count} vectors")
    return vectors.reshape(count, -1)


@operator("SVMRegressor", domain=ML)
def svm_regressor(node: Node) -> Array:
    """Sums of kernel functions times coefficients; with `one_class` their signs."""
    weights, offset = floats(node, "coefficients"), floats(node, "rho")
    kind, count = node.choice("kernel_type", KERNELS), node.attribute("n_supports", 0)
    if node.choice("post_transform", TRANSFORMS) != "NONE":
        node.refuse("ONNX Runtime has no transform after this operator, which the specification has")
    check_count(node, "rho", offset.size, [1])
    if count > 0:
        check_count(node, "coefficients", weights.size, [count])
        values = _kernel(node, _vectors(node, count), kind)
        found = build.matmul(values, node.constant(weights.reshape(-1, 1), "f32")) + offset[0].item()
    else:
        found = _kernel(node, weights.reshape(1, -1), "LINEAR", offset[0].item())
    if node.attribute("one_class", 0):
        return build.where(found > 0, build.constant(1, "f32"), -1)
    return found


@operator("SVMClassifier", domain=ML)
def svm_classifier(node: Node) -> tuple[Array, Array]:
    """The classes with most votes of pairs, and scores: of classes if there are probabilities, of pairs if not."""
    labels, counts = Labels(node, "classlabels_ints"), ints(node, "vectors_per_class")
    kind, transform = node.choice("kernel_type", KERNELS), node.choice("post_transform", TRANSFORMS)
    if not labels.count:
        node.contradicts("it has neither 'classlabels_ints' nor 'classlabels_strings'")
    if not counts.sum():
        return _linear(node, labels, transform)
    check_count(node, "vectors_per_class", counts.size, [labels.count])
    if labels.count < 2 or counts.min() < 0:
        node.contradicts("it has fewer than two classes, or classes of a negative number of vectors")
    pairs = list(combinations(range(labels.count), 2))
    values = _kernel(node, _vectors(node, int(counts.sum())), kind)
    sums = _sums_of_pairs(node, values, counts, pairs)
    label = labels.of(node, build.argmax(_votes(node, sums, labels.count, pairs), -1))
    scores = build.cast(sums, "f32")
    if (first := floats(node, "prob_a")).size or floats(node, "prob_b").size:
        second = floats(node, "prob_b")
        check_count(node, "prob_a", first.size, [len(pairs)])
        check_count(node, "prob_b", second.size, [len(pairs)])
        powers = scores * node.constant(first, "f32") + node.constant(second, "f32")
        chances = build.clip(1 - build.sigmoid(powers), np.float32(1e-7).item(), np.float32(1 - 1e-7).item())
        return label, transformed(_probabilities(chances, labels.count, pairs), transform)
    if labels.count > 2:
        return label, transformed(scores, transform)
    if transform == "PROBIT":
        node.refuse("ONNX Runtime has no second score of a PROBIT of two classes")
    return label, two_classes(scores[:, 0], transform, positive=transform != "NONE")


def _linear(node: Node, labels: Labels, transform: str) -> tuple[Array, Array]:
    """A classifier without support vectors: a row of coefficients for each class."""
    weights, offset = floats(node, "coefficients"), floats(node, "rho")
    if not offset.size or weights.size % labels.count or not weights.size:
        node.contradicts(f"it has {weights.size} coefficients and {offset.size} of 'rho' for {labels.count} classes")
    scores = _kernel(node, weights.reshape(labels.count, -1), "LINEAR", offset[0].item())
    index = build.argmax(scores, -1)
    if labels.count == 2:
        greatest, is_positive = build.max(scores, -1), bool((weights >= 0).all())
        index = build.where(greatest >= 0.5 if is_positive else greatest > 0, build.constant(1, "i64"), index)
    if labels.count == 1:
        return labels.of(node, index), probit(scores) if transform == "PROBIT" else scores
    return labels.of(node, index), transformed(scores, transform)


def _sums_of_pairs(node: Node, values: Array, counts: NDArray[np.int64], pairs: Sequence[tuple[int, int]]) -> Array:
    """The decision of each pair of classes [N, pairs], in f64: positive for the first one."""
    classes, total = len(counts), int(counts.sum())
    weights, offsets = floats(node, "coefficients"), floats(node, "rho")
    check_count(node, "coefficients", weights.size, [(classes - 1) * total])
    check_count(node, "rho", offsets.size, [len(pairs)])
    rows, ends = weights.reshape(classes - 1, total), np.cumsum(counts)
    matrix = np.zeros((total, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        first, second = (slice(ends[c] - counts[c], ends[c]) for c in (i, j))
        matrix[first, k], matrix[second, k] = rows[j - 1, first], rows[i, second]
    return build.matmul(build.cast(values, "f64"), node.constant(matrix, "f64")) + node.constant(offsets, "f64")


def _votes(node: Node, sums: Array, classes: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """The number of pairs that each class wins, [N, classes]."""
    found: list[Array] = []
    for c in range(classes):
        wins = [sums[:, k] > 0 if c == i else ~(sums[:, k] > 0) for k, (i, j) in enumerate(pairs) if c in (i, j)]
        found.append(build.sum(build.stack([choice(win, 1, 0) for win in wins], 0), 0))
    return build.stack(found, -1)


def _probabilities(chances: Array, classes: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """The probabilities of classes from those of pairs, [N, classes], in steps as ONNX Runtime takes them.

    Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, 2004, algorithm 2.
    """
    count, shape = chances.shape[0], (chances.shape[0], classes, classes)
    numbers = np.zeros((classes, classes), np.int64)
    for k, (i, j) in enumerate(pairs):
        numbers[i, j] = numbers[j, i] = k
    rows, columns = build.iota(shape, "i64", 1), build.iota(shape, "i64", 2)
    own = build.gather(chances, [build.iota(shape, "i64", 0), build.table(numbers.tolist())])
    wins = build.where(rows < columns, own, 1 - own)
    losses = build.where(rows < columns, 1 - own, own)
    squares = build.sum(build.where(rows == columns, 0, losses * losses), -1, keepdims=True)
    matrix = build.where(rows == columns, squares, -(losses * wins))
    start = build.constant(1 / classes, "f32", (count, classes))

    def step(states: Sequence[Array], _: Sequence[Array]) -> list[Array]:
        return [_coupled(matrix, states[0])]

    return build.scan(step, [start], [build.iota((MOST_STEPS,), "i64")])[0][-1]


def _coupled(matrix: Array, start: Array) -> Array:
    """The probabilities after one step; those that have converged stay."""
    classes = start.shape[1]
    p, products = start, build.contract("nij,nj->ni", matrix, start)
    total = build.sum(p * products, -1)
    error = build.max(abs(products - total[:, None]), -1, keepdims=True)
    for i in range(classes):
        own = matrix[:, i, i]
        change = (total - products[:, i]) / own
        scale = 1 + change
        total = (total + change * (change * own + products[:, i] * 2)) / scale / scale
        products = (products + change[:, None] * matrix[:, i]) / scale[:, None]
        p = build.where(build.iota(p.shape, "i64", 1) == i, p + change[:, None], p) / scale[:, None]
    return build.where(error < np.float32(0.005 / classes).item(), start, p)
