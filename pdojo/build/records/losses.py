"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import losses
from pdojo.build.operator import array, call, operator
from pdojo.build.records.softmax import log_softmax

Values = NDArray[Any]


def _over(x: Values, reduction: str) -> Values:
    return x if reduction == "none" else x.mean() if reduction == "mean" else x.sum()


def _difference(**more: Any) -> tuple[Any, ...]:
    return (
        call(array("3 5"), array("3 5"), **more),
        call(array("3 5"), array("3 5"), reduction="none", **more),
        call(array("4 1"), array("4 1"), reduction="sum", **more),
        call(array("2 3 4"), array("1 1 4"), reduction="none", **more),
    )


@operator(build.mse_loss, *_difference())
def mse_loss(x: Values, y: Values, *, reduction: str = "mean") -> Values:
    """The squared differences."""
    return _over((x - y) ** 2, reduction)


@operator(build.huber_loss, *_difference(), *_difference(delta=0.3))
def huber_loss(x: Values, y: Values, delta: float = 1.0, *, reduction: str = "mean") -> Values:
    """Squares of small differences, and sizes of large ones."""
    d = np.abs(x - y)
    return _over(np.where(d < delta, d * d / 2, (d - delta / 2) * delta), reduction)


@operator(build.binary_cross_entropy, *_difference())
def binary_cross_entropy(x: Values, y: Values, *, reduction: str = "mean") -> Values:
    """The cross entropy of probabilities from scores."""
    return _over(np.logaddexp(0, x) - x * y, reduction)


@operator(
    losses.soft_margin_gradient,
    call(array("3 5", low=-9, high=9), array("3 5", given=[1, -1, -1, 1, 1] * 3), array(""), reduction="mean"),
    call(array("3 5"), array("3 5", given=[1, -1, -1, 1, 1] * 3), array("3 5"), reduction="none"),
    call(array("4 1"), array("4 1", given=[1, -1, -1, 1]), array(""), reduction="sum"),
)
def soft_margin_gradient(x: Values, y: Values, gradient: Values, *, reduction: str = "mean") -> Values:
    """The gradient of the scores."""
    return -y / (1 + np.exp(y * x)) * gradient / (x.size if reduction == "mean" else 1)


def _classes(text: str, count: int, low: int = 0) -> Any:
    return array(text, "i64", low=low, high=count)


@operator(
    build.cross_entropy,
    call(array("6 5"), _classes("6", 5)),
    call(array("2 5 3"), _classes("2 3", 5), 1, reduction="none"),
    call(array("5 4"), array("4", "i32", low=0, high=5), 0, reduction="sum"),
    call(array("3 1"), _classes("3", 1), reduction="none"),
)
def cross_entropy(x: Values, classes: Values, axis: int = -1, *, reduction: str = "mean") -> Values:
    """The negative logarithm of the softmax of classes."""
    picked = np.take_along_axis(log_softmax(x, axis), np.expand_dims(classes, axis).astype(int), axis)
    return _over(-picked.squeeze(axis), reduction)


_SAMPLES = (
    call(array("6 5"), _classes("6", 5)),
    call(array("6 5"), _classes("6", 5), array("5", low=0.1), ignored=2),
    call(array("2 5 3"), _classes("2 3", 5), array("5", low=0.1), reduction="none"),
    call(array("2 5 3 2"), _classes("2 3 2", 5), ignored=1, reduction="sum"),
    call(array("5"), array("", "i64", given=[3]), None, 0, reduction="none"),
    call(array("4 3"), array("4", "i64", given=[0, -7, 2, -7]), ignored=-7),
    call(array("4 3"), array("4", "i64", given=[0, 3, -1, 2]), array("3", low=0.1), reduction="none"),
    call(array("3 1"), _classes("3", 1), array("1", low=0.1), reduction="sum"),
)


@operator(losses.negative_likelihood, *_SAMPLES, results=("loss", "weight"))
def negative_likelihood(
    x: Values, classes: Values, weights: Values | None = None, axis: int = 1, *, ignored: int | None = None,
    reduction: str = "mean",
) -> list[Values]:  # fmt: skip
    """The negative scores of classes, and the sum of their weights."""
    count = x.shape[axis]
    known = np.clip(classes, 0, count - 1).astype(int)
    by_class = np.ones(count) if weights is None else weights
    picked = np.take_along_axis(x, np.expand_dims(known, axis), axis).squeeze(axis) * -by_class[known]
    exists, counts = (classes >= 0) & (classes < count), classes != ignored
    found = np.where(counts, np.where(exists, picked, np.nan), 0)
    total = np.where(counts & (exists | (weights is None)), by_class[known], 0).sum()
    return [found.sum() / total if reduction == "mean" else _over(found, reduction), total]


@operator(
    losses.negative_likelihood_gradient,
    call(array(""), array("6 5"), _classes("6", 5), array("", low=1, high=6)),
    call(array(""), array("6 5"), _classes("6", 5), array("", low=1, high=6), array("5", low=0.1), ignored=2),
    call(array("2 3"), array("2 5 3"), _classes("2 3", 5), array("", low=1), array("5", low=0.1), reduction="none"),
    call(array(""), array("2 5 3 2"), _classes("2 3 2", 5), array("", low=1), ignored=1, reduction="sum"),
    call(array(""), array("5"), array("", "i64", given=[3]), array("", low=1), None, 0),
)
def negative_likelihood_gradient(
    gradient: Values, x: Values, classes: Values, total: Values, weights: Values | None = None, axis: int = 1, *,
    ignored: int | None = None, reduction: str = "mean",
) -> Values:  # fmt: skip
    """The gradient of the scores."""
    hot = np.moveaxis(np.eye(x.shape[axis])[classes.astype(int)], -1, axis)
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    factors = hot if weights is None else hot * weights.reshape(shape)
    factors = factors * np.expand_dims(classes != ignored, axis)
    scaled = gradient / total if reduction == "mean" else gradient
    return -factors * (np.expand_dims(scaled, axis) if reduction == "none" else scaled)
