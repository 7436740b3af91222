"""Losses, and their gradients."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array
from pdojo.build.losses import Over, negative_likelihood, negative_likelihood_gradient, soft_margin_gradient
from pdojo.torch.operators.registry import Call, aten

_REDUCTIONS: tuple[Over, Over, Over] = ("none", "mean", "sum")


def _classes(x: Array, target: Array) -> tuple[Array, int]:
    """The classes, with the axis of their scores."""
    return (build.reshape(target, ()), 0) if x.rank == 1 else (target, 1)


@aten("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss(
    call: Call, x: Array, target: Array, weights: Array | None, reduction: int, ignore_index: int
) -> list[Array]:
    """The negative scores of classes and the sum of their weights."""
    classes, axis = _classes(x, target)
    kind = _REDUCTIONS[reduction]
    losses, total = negative_likelihood(x, classes, weights, axis, ignored=ignore_index, reduction=kind)
    return [losses, build.constant(0, total.dtype) if kind == "none" else total]


@aten("nll_loss_backward.default", "nll_loss2d_backward.default")
def nll_loss_backward(
    call: Call,
    gradient: Array,
    x: Array,
    target: Array,
    weights: Array | None,
    reduction: int,
    ignore_index: int,
    total: Array,
) -> Array:
    """The gradient of the scores."""
    classes, axis = _classes(x, target)
    return negative_likelihood_gradient(
        gradient, x, classes, total, weights, axis, ignored=ignore_index, reduction=_REDUCTIONS[reduction]
    )


@aten("soft_margin_loss_backward.default")
def soft_margin_backward(call: Call, gradient: Array, x: Array, target: Array, reduction: int) -> Array:
    """The gradient of the scores."""
    return soft_margin_gradient(x, target, gradient, reduction=_REDUCTIONS[reduction])
