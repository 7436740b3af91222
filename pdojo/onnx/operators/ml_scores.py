"""Scores of classifiers and regressors of `ai.onnx.ml`: attributes, transforms after the sums, labels.

Formulas are those of ONNX Runtime, which decides what the specification leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.build.numbers import Scalar
from pdojo.dialect.table import MOST_ENTRIES
from pdojo.onnx.operators.registry import Node

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""The transforms after sums; TreeEnsemble has them by number."""
Floats: TypeAlias = NDArray[np.float32]


def floats(node: Node, name: str) -> Floats:
    """An attribute of floating-point numbers; empty if the node lacks it."""
    return np.array(node.attribute(name, ()), np.float32)


def ints(node: Node, name: str) -> NDArray[np.int64]:
    """An attribute of integers; empty if the node lacks it."""
    return np.array(node.attribute(name, ()), np.int64)


def check_count(node: Node, name: str, found: int, wanted: Sequence[int]) -> None:
    """Refuse an attribute that does not have one of the wanted numbers of elements."""
    if found not in wanted:
        node.contradicts(f"attribute '{name}' has {found} elements, not {' or '.join(map(str, dict.fromkeys(wanted)))}")


def rows_of(node: Node, operand: int = 0) -> Array:
    """An operand as a matrix of numbers with a row for each sample; one axis is one sample."""
    x = node.array(operand)
    if x.rank not in (1, 2):
        node.contradicts(f"the input has {x.rank} dimensions, not one or two")
    if x.dtype not in ("f32", "f64", "i32", "i64"):
        node.refuse(f"the input has elements of type {x.dtype}, not f32, f64, i32 or i64")
    return build.expand_dims(x, 0) if x.rank == 1 else x


def transformed(scores: Array, transform: str) -> Array:
    """Scores [N, C] of several classes or targets after a transform."""
    match transform:
        case "LOGISTIC":
            return build.sigmoid(scores)
        case "SOFTMAX":
            return build.softmax(scores, -1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(scores)
        case "PROBIT":
            return probit(scores)
        case _:
            return scores


def _softmax_zero(scores: Array) -> Array:
    """Softmax in which scores of 0 take no part."""
    greatest = build.max(scores, -1, keepdims=True)
    counts = abs(scores) > 1e-7
    powers = build.exp(scores - greatest)
    total = build.sum(build.where(counts, powers, 0), -1, keepdims=True)
    return build.where(counts, powers, scores * build.exp(-greatest)) / total


def probit(scores: Array) -> Array:
    """The quantile function of the normal distribution, by Winitzki's approximation of the inverse of erf."""
    x = scores * 2 - 1
    logarithm = build.log((1 - x) * (1 + x))
    half = logarithm * 0.5 + np.float32(2 / (np.float32(3.14159) * np.float32(0.147))).item()
    root = build.sqrt(build.sqrt(half * half - logarithm * (1 / 0.147)) - half)
    return build.where(x < 0, -root, root) * 1.41421356


def pair(negative: Array, positive: Array) -> Array:
    """The scores [N, 2] of two classes from those of each, [N]."""
    return build.stack([negative, positive], -1)


def two_classes(score: Array, transform: str, *, positive: bool) -> Array:
    """The scores [N, 2] of two classes from that of the second, [N]; a probability if all weights are positive."""
    if transform == "LOGISTIC":
        return pair(build.sigmoid(-score), build.sigmoid(score))
    return pair(1 - score if positive else -score, score)


class Labels:
    """The labels of a classifier; strings are numbered from 0."""

    def __init__(self, node: Node, integers: str) -> None:
        self.strings: tuple[str, ...] = tuple(node.attribute("classlabels_strings", ()))
        known = ints(node, integers)
        if len(known) and self.strings:
            node.contradicts(f"it has both '{integers}' and 'classlabels_strings'")
        self.values = np.arange(len(self.strings)) if self.strings else known
        self.count = len(self.values)

    def of(self, node: Node, index: Array) -> Array:
        """The labels of classes by index."""
        return chosen(node, index, self.values)


def chosen(node: Node, index: Array, values: NDArray[np.int64]) -> Array:
    """Some of the integers `values`, by computed indices, as i64."""
    steps = np.unique(np.diff(values))
    if len(steps) <= 1:
        step = int(steps[0]) if len(steps) else 0
        return index * step + int(values[0])
    last = (*index.shape, len(values))
    return build.sum(build.where(index[..., None] == build.iota(last, "i64", -1), integers(node, values), 0), -1)


def integers(node: Node, values: NDArray[np.int64]) -> Array:
    """Constant integers, as i64."""
    if len(values) <= MOST_ENTRIES and all(abs(int(each)) < 1 << 61 for each in values):
        return build.table(values.tolist())
    return node.constant(values, "i64")


def choice(condition: Array, yes: Scalar, no: Scalar) -> Array:
    """One of two integers, as i64."""
    return build.where(condition, build.constant(yes, "i64"), no)
