"""Negative log-likelihoods of classes: the score of a class is picked by a comparison with all of them."""

from __future__ import annotations

from math import nan

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.torch.operators.registry import Call, aten

_NONE, _MEAN = 0, 1


def _classes(x: Array, target: Array) -> tuple[Array, Array, int]:
    """Scores and classes, with the axis of classes."""
    axis = 0 if x.rank == 1 else 1
    return x, (build.reshape(target, ()) if x.rank == 1 else target), axis


def _chosen(x: Array, target: Array, axis: int) -> Array:
    """Which scores are those of the classes."""
    # Vectors of f32 have as many lanes as those of i32.
    narrow = build.cast(build.clip(target, -1, x.shape[axis]), "i32")
    return build.iota(x.shape, "i32", axis) == build.expand_dims(narrow, axis)


def _along(weights: Array | None, x: Array, axis: int) -> Array | None:
    """The weights of classes, as an array that broadcasts."""
    if weights is None:
        return None
    return build.reshape(wide(weights), [-1 if d == axis else 1 for d in range(x.rank)])


@aten("nll_loss_forward.default", "nll_loss2d_forward.default")
def negative_likelihood(
    call: Call, x: Array, target: Array, weights: Array | None, reduction: int, ignore_index: int
) -> list[Array]:
    """The negative scores of classes and the sum of their weights; NaN for a class that does not exist."""
    scores, classes, axis = _classes(wide(x), target)
    chosen, counts = _chosen(scores, classes, axis), classes != ignore_index
    by_class = _along(weights, scores, axis)
    picked = build.sum(build.where(chosen, -scores if by_class is None else -scores * by_class, 0), axis)
    exists = (classes >= 0) & (classes < scores.shape[axis])
    losses = build.where(counts, build.where(exists, picked, nan), 0)
    if reduction == _NONE:
        return [losses, build.constant(0, losses.dtype)]
    if by_class is None:
        total = build.sum(build.cast(counts, losses.dtype))
    else:
        total = build.sum(build.where(counts, build.sum(build.where(chosen, by_class, 0), axis), 0))
    return [build.sum(losses) / total if reduction == _MEAN else build.sum(losses), total]


@aten("nll_loss_backward.default", "nll_loss2d_backward.default")
def negative_likelihood_backward(
    call: Call,
    gradient: Array,
    x: Array,
    target: Array,
    weights: Array | None,
    reduction: int,
    ignore_index: int,
    total: Array,
) -> Array:
    """The gradient of the scores: 0 but for those of the classes."""
    scores, classes, axis = _classes(wide(x), target)
    chosen = _chosen(scores, classes, axis) & build.expand_dims(classes != ignore_index, axis)
    g = wide(gradient)
    if reduction == _MEAN:
        g = g / build.cast(total, g.dtype)
    elif reduction == _NONE:
        g = build.expand_dims(build.reshape(g, classes.shape), axis)
    by_class = _along(weights, scores, axis)
    return build.where(chosen, -g if by_class is None else -g * by_class, 0)
