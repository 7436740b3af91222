"""Loss functions; f16 and bf16 are computed in f32 and rounded once.

`reduction` says what becomes of the losses of all elements: `mean`, `sum`, or `none` for an array of them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pdojo.build.activations import check_float
from pdojo.build.array import Array, axes_of, broadcast_shape, cast, iota, map, shown
from pdojo.build.elementwise import clip, exp, log, maximum, where
from pdojo.build.reductions import MOST_I32, max, mean, sum
from pdojo.build.shapes import expand_dims
from pdojo.dialect.element_types import is_float
from pdojo.errors import UsageError

Over: TypeAlias = Literal["mean", "sum", "none"]


def _over(losses: Array, reduction: Over, dtype: str) -> Array:
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(f"'{reduction}' is no reduction of losses; known: mean, sum, none")
    found = losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)
    return cast(found, dtype)


def cross_entropy(x: Array, classes: Array, axis: int = -1, *, reduction: Over = "mean") -> Array:
    """`-log(softmax(x)[class])` with the scores of classes along `axis`; a class out of range picks no score.

    Shapes: `classes`, of integers, is the shape of `x` without `axis`. The notation has no indirection, so the score of
    the class is picked by a comparison.

    >>> from pdojo import build
    >>> x, t = build.input("x", "f32", (4, 8)), build.input("t", "i64", (4,))
    >>> build.cross_entropy(x, t, reduction="none")
    <Array f32 [4]>
    """
    u = check_float("cross_entropy", x)
    (axis,) = axes_of(axis, x.rank)
    if is_float(classes.dtype) or classes.shape != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise UsageError(f"classes are integers, one for each row of {shown(x.shape)}, not {classes!r}")
    d = u - max(u, axis, keepdims=True)
    total = log(sum(exp(d), axis))
    if classes.dtype == "i64" and x.shape[axis] <= MOST_I32:
        # Vectors of f32 have as many lanes as those of i32.
        classes = cast(clip(classes, -1, x.shape[axis]), "i32")
    chosen = map("==", iota(x.shape, classes.dtype, axis), expand_dims(classes, axis))
    return _over(total - sum(where(chosen, d, 0), axis), reduction, x.dtype)


def mse_loss(x: Array, y: Array, *, reduction: Over = "mean") -> Array:
    """The squared differences.

    >>> from pdojo import build
    >>> build.mse_loss(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)))
    <Array f32 []>
    """
    d = _difference("mse_loss", x, y)
    return _over(d * d, reduction, x.dtype)


def huber_loss(x: Array, y: Array, delta: float = 1.0, *, reduction: Over = "mean") -> Array:
    """`d^2 / 2` for differences d up to `delta`, `delta (|d| - delta / 2)` beyond.

    >>> from pdojo import build
    >>> build.huber_loss(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)), reduction="none")
    <Array f32 [4, 8]>
    """
    size = abs(_difference("huber_loss", x, y))
    return _over(where(size < delta, size * size * 0.5, (size - delta / 2) * delta), reduction, x.dtype)


def binary_cross_entropy(x: Array, y: Array, *, reduction: Over = "mean") -> Array:
    """`-y log(sigmoid(x)) - (1 - y) log(1 - sigmoid(x))` of scores `x`, computed stably.

    >>> from pdojo import build
    >>> build.binary_cross_entropy(build.input("x", "f32", (4, 8)), build.input("y", "f32", (4, 8)))
    <Array f32 []>
    """
    u, targets = check_float("binary_cross_entropy", x), check_float("binary_cross_entropy", y)
    _check_shapes(x, y)
    losses = maximum(u, 0) - u * targets + map("log1p", exp(-abs(u)))
    return _over(losses, reduction, x.dtype)


def _difference(name: str, x: Array, y: Array) -> Array:
    _check_shapes(x, y)
    return check_float(name, x) - check_float(name, y)


def _check_shapes(x: Array, y: Array) -> None:
    if broadcast_shape(x.shape, y.shape) != x.shape or x.rank != y.rank:
        raise UsageError(f"targets of shape {shown(y.shape)} are not one for each element of {shown(x.shape)}")
