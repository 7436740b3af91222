"""Loss functions.

`reduction` says how the losses of all elements are combined: `mean`, `sum`, or `none` for an array of them.
"""

from __future__ import annotations

from math import nan
from typing import Literal, TypeAlias

from pdojo.build.array import Array, cast, constant, iota, map
from pdojo.build.elementwise import clip, exp, log, maximum, where
from pdojo.build.extents import axes_of, broadcast_shape, shown
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import MOST_I32, max, mean, sum
from pdojo.build.shapes import expand_dims, reshape
from pdojo.dialect.element_types import is_float
from pdojo.errors import UsageError

Over: TypeAlias = Literal["mean", "sum", "none"]


def _over(losses: Array, reduction: Over) -> Array:
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(f"'{reduction}' is no reduction of losses; known: mean, sum, none")
    return losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)


@rounded_once
def cross_entropy(x: Array, classes: Array, axis: int = -1, *, reduction: Over = "mean") -> Array:
    """`-log(softmax(x)[class])` with the scores of classes along `axis`; a class out of range picks no score.

    Shapes: `classes`, of integers, is the shape of `x` without `axis`. The notation has no indirection, so the score of
    the class is picked by a comparison.

    >>> from pdojo import build
    >>> x, t = build.input("x", "f32", (4, 8)), build.input("t", "i64", (4,))
    >>> build.cross_entropy(x, t, reduction="none")
    <Array f32 [4]>
    """
    (axis,) = axes_of(axis, x.rank)
    if is_float(classes.dtype) or classes.shape != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise UsageError(f"classes are integers, one for each row of {shown(x.shape)}, not {classes!r}")
    d = x - max(x, axis, keepdims=True)
    total = log(sum(exp(d), axis))
    return _over(total - sum(where(_chosen(x, classes, axis), d, 0), axis), reduction)


def _chosen(x: Array, classes: Array, axis: int) -> Array:
    """Whether each score belongs to the class of its row."""
    if classes.dtype == "i64" and x.shape[axis] <= MOST_I32:
        # Vectors of f32 and of i32 have the same number of lanes.
        classes = cast(clip(classes, -1, x.shape[axis]), "i32")
    return map("==", iota(x.shape, classes.dtype, axis), expand_dims(classes, axis))


@rounded_once
def negative_likelihood(
    x: Array,
    classes: Array,
    weights: Array | None = None,
    axis: int = 1,
    *,
    ignored: int | None = None,
    reduction: Over = "mean",
) -> tuple[Array, Array]:
    """The negative scores of classes, times the weights of the classes, and the sum of the weights.

    Shapes: `classes` as in `cross_entropy`, `weights` [classes]. The class `ignored` does not count; another class out
    of range has the loss NaN. A mean is the quotient of both sums.
    """
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if is_float(classes.dtype) or not x.rank or classes.shape != shape:
        raise UsageError(f"classes of shape {shown(classes.shape)} do not fit scores of shape {shown(x.shape)}")
    if weights is not None and weights.shape != (x.shape[axis],):
        raise UsageError(f"weights of shape {shown(weights.shape)} do not fit {x.shape[axis]} classes")
    chosen, counts = _chosen(x, classes, axis), None if ignored is None else classes != ignored
    by_class = _by_class(weights, x, axis)
    picked = sum(where(chosen, -x if by_class is None else -x * by_class, 0), axis)
    losses = where((classes >= 0) & (classes < x.shape[axis]), picked, nan)
    losses = losses if counts is None else where(counts, losses, 0)
    if by_class is not None:
        factors = sum(where(chosen, by_class, 0), axis)
        total = sum(factors if counts is None else where(counts, factors, 0))
    else:
        total = constant(losses.size, x.dtype) if counts is None else sum(cast(counts, x.dtype))
    if reduction == "mean":
        return sum(losses) / total, total
    return _over(losses, reduction), total


@rounded_once
@of_one_type
def negative_likelihood_gradient(
    gradient: Array,
    x: Array,
    classes: Array,
    total: Array,
    weights: Array | None = None,
    axis: int = 1,
    *,
    ignored: int | None = None,
    reduction: Over = "mean",
) -> Array:
    """The gradient of `negative_likelihood` with respect to the scores: 0 except for the score of each row's class."""
    chosen = _chosen(x, classes, axis)
    chosen = chosen if ignored is None else chosen & expand_dims(classes != ignored, axis)
    if reduction == "mean":
        gradient = gradient / cast(total, gradient.dtype)
    elif reduction == "none":
        gradient = expand_dims(reshape(gradient, classes.shape), axis)
    by_class = _by_class(weights, x, axis)
    return where(chosen, -gradient if by_class is None else -gradient * by_class, 0)


def _by_class(weights: Array | None, x: Array, axis: int) -> Array | None:
    """The weights of classes, as an array that broadcasts to the scores."""
    if weights is None:
        return None
    return reshape(cast(weights, x.dtype), [-1 if d == axis else 1 for d in range(x.rank)])


@rounded_once
@of_one_type
def mse_loss(x: Array, y: Array, *, reduction: Over = "mean") -> Array:
    """The squared differences.

    >>> from pdojo import build
    >>> build.mse_loss(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)))
    <Array f32 []>
    """
    d = _difference(x, y)
    return _over(d * d, reduction)


@rounded_once
@of_one_type
def huber_loss(x: Array, y: Array, delta: float = 1.0, *, reduction: Over = "mean") -> Array:
    """`d^2 / 2` for differences d up to `delta`, `delta (|d| - delta / 2)` beyond.

    >>> from pdojo import build
    >>> build.huber_loss(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)), reduction="none")
    <Array f32 [4, 8]>
    """
    size = abs(_difference(x, y))
    return _over(where(size < delta, size * size * 0.5, (size - delta / 2) * delta), reduction)


@rounded_once
@of_one_type
def binary_cross_entropy(x: Array, y: Array, *, reduction: Over = "mean") -> Array:
    """`-y log(sigmoid(x)) - (1 - y) log(1 - sigmoid(x))` of scores `x`, computed stably.

    >>> from pdojo import build
    >>> build.binary_cross_entropy(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)))
    <Array f32 []>
    """
    _check_shapes(x, y)
    return _over(maximum(x, 0) - x * y + map("log1p", exp(-abs(x))), reduction)


def _difference(x: Array, y: Array) -> Array:
    _check_shapes(x, y)
    return x - y


def _check_shapes(x: Array, y: Array) -> None:
    if broadcast_shape(x.shape, y.shape) != x.shape or x.rank != y.rank:
        raise UsageError(f"targets of shape {shown(y.shape)} are not one for each element of {shown(x.shape)}")


@rounded_once
@of_one_type
def soft_margin_gradient(x: Array, y: Array, gradient: Array, *, reduction: Over = "mean") -> Array:
    """The gradient of the scores `x` of `log(1 + exp(-y x))`, without the difference `1 - sigmoid(y x)`."""
    slopes = -y * map("sigmoid", -(y * x))
    return gradient * (slopes / x.size if reduction == "mean" else slopes)
