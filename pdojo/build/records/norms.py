"""Normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import norms
from pdojo.build.operator import array, call, operator

Values = NDArray[Any]
_LAYER = (
    call(array("3 5"), array("5"), array("5")),
    call(array("2 3 4"), array("3 4"), axis=(-2, -1)),
    call(array("2 3 4"), array("4"), array("4"), eps=0.1),
    call(array("3 37"), None, array("37"), axis=1),
    call(array("4 1")),
    call(array("2 3 4"), array("3 1"), array("1 4"), axis=(1, 2)),
)


def normalised(x: Values, axis: Any, eps: float) -> list[Values]:
    """The array, normalised to mean 0 and variance 1 (up to `eps`) along axes; means and inverse deviations."""
    average = x.mean(axis, keepdims=True)
    inverse = 1 / np.sqrt(np.square(x - average).mean(axis, keepdims=True) + eps)
    return [(x - average) * inverse, average, inverse]


def _scaled(normal: Values, scale: Values | None, shift: Values | None) -> Values:
    scaled = normal if scale is None else normal * scale
    return scaled if shift is None else scaled + shift


def _along(values: Values | None, x: Values, axis: int = 1) -> Values | None:
    """One value per channel, as an array that broadcasts to `x`."""
    return None if values is None else values.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])


@operator(build.layer_norm_with_statistics, *_LAYER, results=("result", "mean", "inverse deviation"))
def layer_norm_with_statistics(
    x: Values, scale: Values | None = None, shift: Values | None = None, *, axis: Any = -1, eps: float = 1e-5
) -> list[Values]:
    """The normalisation along axes and its statistics."""
    normal, *statistics = normalised(x, axis, eps)
    return [_scaled(normal, scale, shift), *statistics]


@operator(build.layer_norm, *_LAYER[:2])
def layer_norm(x: Values, scale: Values | None = None, shift: Values | None = None, **facts: Any) -> Values:
    """The normalisation along axes."""
    return layer_norm_with_statistics(x, scale, shift, **facts)[0]


@operator(
    norms.layer_norm_gradient,
    call(array("3 5"), array("3 5"), array("3 1"), array("3 1", low=0.5, high=2)),
    call(array("2 3 4"), array("2 3 4"), array("2 1 1"), array("2 1 1", low=0.5, high=2), array("3 4"), axis=(1, -1)),
    call(array("3 37"), array("3 37"), array("3 1"), array("3 1", low=0.5, high=2), array("37")),
    call(array("4 1"), array("4 1"), array("4 1"), array("4 1", low=0.5, high=2), array("1")),
    results=("result", "of scale", "of shift"),
    ulps=24,
)
def layer_norm_gradient(
    x: Values, gradient: Values, average: Values, inverse: Values, scale: Values | None = None, *, axis: Any = -1
) -> list[Values]:
    """The gradients of the operand, the scale and the shift."""
    axes = [axis % x.ndim] if isinstance(axis, int) else [d % x.ndim for d in axis]
    others = tuple(d for d in range(x.ndim) if d not in axes)
    normal, inner = (x - average) * inverse, _scaled(gradient, scale, None)
    parts = [each.mean(tuple(axes), keepdims=True) for each in (inner, inner * normal)]
    return [(inner - parts[0] - normal * parts[1]) * inverse, (gradient * normal).sum(others), gradient.sum(others)]


_RMS = (
    call(array("3 5"), array("5"), eps=0.1),
    call(array("2 3 4"), array("3 4"), axis=(-2, -1)),
    call(array("3 37")),
    call(array("4 1"), axis=-1),
)


@operator(build.rms_norm_with_statistics, *_RMS, results=("result", "inverse root"))
def rms_norm_with_statistics(
    x: Values, scale: Values | None = None, *, axis: Any = -1, eps: float = 1e-5
) -> list[Values]:
    """The quotient by the root mean square along axes, and the inverse of the root."""
    inverse = 1 / np.sqrt(np.square(x).mean(axis, keepdims=True) + eps)
    return [_scaled(x * inverse, scale, None), inverse]


@operator(build.rms_norm, *_RMS[:2])
def rms_norm(x: Values, scale: Values | None = None, *, axis: Any = -1, eps: float = 1e-5) -> Values:
    """The quotient by the root mean square along axes."""
    return rms_norm_with_statistics(x, scale, axis=axis, eps=eps)[0]


_GROUP = (
    call(array("2 6 3 4"), 2, array("6"), array("6")),
    call(array("2 6 5"), 3, eps=0.1),
    call(array("1 4 3 3"), 4, array("4")),
    call(array("2 3 1 7"), 1, None, array("3")),
)


@operator(build.group_norm_with_statistics, *_GROUP, results=("result", "mean", "inverse deviation"))
def group_norm_with_statistics(
    x: Values, groups: int, scale: Values | None = None, shift: Values | None = None, *, eps: float = 1e-5
) -> list[Values]:
    """The normalisation of each group of channels of each image, and its statistics."""
    normal, average, inverse = normalised(x.reshape(len(x), groups, -1), 2, eps)
    found = _scaled(normal.reshape(x.shape), _along(scale, x), _along(shift, x))
    return [found, average[..., 0], inverse[..., 0]]


@operator(build.group_norm, *_GROUP[:2])
def group_norm(
    x: Values, groups: int, scale: Values | None = None, shift: Values | None = None, *, eps: float = 1e-5
) -> Values:
    """The normalisation of each group of channels of each image."""
    return group_norm_with_statistics(x, groups, scale, shift, eps=eps)[0]


@operator(
    build.instance_norm,
    call(array("2 3 5"), array("3"), array("3")),
    call(array("1 2 3 4"), eps=0.1),
    call(array("2 1 7"), array("1")),
)
def instance_norm(x: Values, scale: Values | None = None, shift: Values | None = None, *, eps: float = 1e-5) -> Values:
    """The normalisation of each channel of each image."""
    return group_norm(x, x.shape[1], scale, shift, eps=eps)


_BATCH = (
    call(array("2 3 4 5"), array("3"), array("3")),
    call(array("7 3"), array("3"), axis=-1),
    call(array("1 3 4 5")),
    call(array("3 4 5"), axis=0),
    call(array("4 3 1"), array("3"), array("3"), eps=0.1),
)


@operator(
    build.batch_norm_with_statistics, *_BATCH, results=("result", "mean", "inverse deviation", "variance"), ulps=12
)
def batch_norm_with_statistics(
    x: Values, scale: Values | None = None, shift: Values | None = None, *, axis: int = 1, eps: float = 1e-5
) -> list[Values]:
    """The normalisation of each channel with the statistics of the batch, and these."""
    others = tuple(d for d in range(x.ndim) if d != axis % x.ndim)
    normal, *statistics = normalised(x, others, eps)
    found = _scaled(normal, _along(scale, x, axis), _along(shift, x, axis))
    return [found, *(each.reshape(-1) for each in statistics), x.var(others)]


_RUNNING = array("3"), array("3", low=0.1, high=2)


@operator(
    norms.batch_norm_in_training,
    call(array("2 3 4 5"), array("3"), array("3"), *_RUNNING, momentum=0.1, unbiased=True),
    call(array("2 3 4"), array("3"), array("3"), *_RUNNING, momentum=0.25, unbiased=False, eps=0.1),
    call(array("7 3"), None, None, *_RUNNING, momentum=1, unbiased=True),
    results=("result", "mean", "inverse deviation", "running mean", "running variance"),
    ulps=12,
)
def batch_norm_in_training(
    x: Values, scale: Values | None, shift: Values | None, mean: Values, variance: Values, *, momentum: float,
    unbiased: bool, eps: float = 1e-5,
) -> list[Values]:  # fmt: skip
    """The normalisation of each channel with the statistics of the batch, and the running statistics after it."""
    found, average, inverse, _ = batch_norm_with_statistics(x, scale, shift, eps=eps)
    spread = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1).var(-1, ddof=int(unbiased))
    moved = [old + momentum * (new - old) for old, new in ((mean, average), (variance, spread))]
    return [found, average, inverse, *moved]


@operator(
    build.batch_norm,
    *_BATCH[:2],
    call(array("2 3 4"), array("3"), array("3"), statistics=(array("3"), array("3", low=0.1, high=2))),
    call(array("2 3 4"), statistics=(array("3"), array("3", low=0, high=2))),
    call(array("5 3"), array("3"), statistics=(array("3"), array("3", low=0.1, high=2)), axis=-1, eps=0.01),
    ulps=12,
)
def batch_norm(
    x: Values,
    scale: Values | None = None,
    shift: Values | None = None,
    *,
    statistics: tuple[Values, Values] | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Values:
    """The normalisation of each channel with the statistics of the batch, or with given means and variances."""
    if statistics is None:
        return batch_norm_with_statistics(x, scale, shift, axis=axis, eps=eps)[0]
    average, variance, factor, summand = (_along(each, x, axis) for each in (*statistics, scale, shift))
    assert variance is not None
    return _scaled((x - average) / np.sqrt(variance + eps), factor, summand)


@operator(
    build.mean_variance_norm,
    call(array("2 3 4 5")),
    call(array("3 5"), axis=-1, eps=0.1),
    call(array("2 1 37"), axis=(0, 2)),
    call(array("2 3", given=(1, 1, 1, 1, 2, 3)), axis=1),
)
def mean_variance_norm(x: Values, *, axis: Any = (0, 2, 3), eps: float = 1e-9) -> Values:
    """The deviations from the mean, by the standard deviation and epsilon."""
    return (x - x.mean(axis, keepdims=True)) / (x.std(axis, keepdims=True) + eps)


@operator(
    build.local_response_norm,
    call(array("2 6 4"), 3, alpha=0.5),
    call(array("2 5 3 2"), 4, alpha=2.0, beta=0.5, bias=0.75),
    call(array("2 6"), 1, alpha=1.0),
    call(array("1 2 3"), 9, alpha=3.0, beta=1.0),
    ulps=16,
)
def local_response_norm(x: Values, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Values:
    """The quotient by a power of the squares of neighbouring channels."""
    first = [max(0, c - (size - 1) // 2) for c in range(x.shape[1])]
    sums = [np.square(x[:, begin : c + size // 2 + 1]).sum(1) for c, begin in enumerate(first)]
    return x / (bias + alpha / size * np.stack(sums, 1)) ** beta
