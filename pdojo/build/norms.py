"""Normalisations to mean 0 and variance 1; f16 and bf16 are computed in f32 and rounded once.

Variances are biased: the mean of the squared deviations from the mean, which is subtracted first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.build.array import Array, cast, map, power
from pdojo.build.extents import axes_of, shown
from pdojo.build.pieces import pad
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.reductions import mean, sum
from pdojo.build.shapes import reshape, transpose, windows
from pdojo.errors import UsageError


@rounded_once
def layer_norm(
    x: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    *,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-5,
) -> Array:
    """`(x - mean) / sqrt(variance + eps) * scale + shift`, with the statistics along `axis`.

    `scale` and `shift` broadcast to the shape of `x`.

    >>> from pdojo import build
    >>> x, g = build.input("x", "f32", (4, 8)), build.input("g", "f32", (8,))
    >>> build.layer_norm(x, g)
    <Array f32 [4, 8]>
    """
    return layer_norm_with_statistics(x, scale, shift, axis=axis, eps=eps)[0]


@rounded_once
def layer_norm_with_statistics(
    x: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    *,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-5,
) -> list[Array]:
    """`layer_norm`, the means and `1 / sqrt(variance + eps)`; the statistics keep the axes, with one element.

    Statistics of f16 and bf16 are f32.

    >>> from pdojo import build
    >>> build.layer_norm_with_statistics(build.input("x", "bf16", (4, 8)))
    [<Array bf16 [4, 8]>, <Array f32 [4, 1]>, <Array f32 [4, 1]>]
    """
    normal, average, inverse = _normalised(x, axes_of(axis, x.rank), eps)
    return [_scaled(normal, scale, shift), average, inverse]


@rounded_once
@of_one_type
def layer_norm_gradient(
    x: Array,
    gradient: Array,
    average: Array,
    inverse: Array,
    scale: Array | None = None,
    *,
    axis: int | Sequence[int] = -1,
) -> list[Array]:
    """The gradients of `x`, of the scale and of the shift of `layer_norm`, from that of its result.

    `average` and `inverse` are the statistics of `layer_norm_with_statistics`.
    """
    axes = axes_of(axis, x.rank)
    others = [d for d in range(x.rank) if d not in axes]
    normal = (x - average) * inverse
    inner = gradient if scale is None else gradient * scale
    first, second = (mean(each, axes, keepdims=True) for each in (inner, inner * normal))
    return [(inner - first - normal * second) * inverse, sum(gradient * normal, others), sum(gradient, others)]


@rounded_once
def rms_norm(x: Array, scale: Array | None = None, *, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Array:
    """`x / sqrt(mean(x^2) + eps) * scale`, with the mean along `axis`; `scale` broadcasts to the shape of `x`.

    >>> from pdojo import build
    >>> x, w = build.input("x", "bf16", (4, 8)), build.input("w", "bf16", (8,))
    >>> build.rms_norm(x, w)
    <Array bf16 [4, 8]>
    """
    return rms_norm_with_statistics(x, scale, axis=axis, eps=eps)[0]


@rounded_once
def rms_norm_with_statistics(
    x: Array, scale: Array | None = None, *, axis: int | Sequence[int] = -1, eps: float = 1e-5
) -> list[Array]:
    """`rms_norm` and `1 / sqrt(mean(x^2) + eps)`, which keeps the axes, with one element.

    >>> from pdojo import build
    >>> build.rms_norm_with_statistics(build.input("x", "f32", (4, 8)))
    [<Array f32 [4, 8]>, <Array f32 [4, 1]>]
    """
    inverse = map("rsqrt", mean(x * x, axis, keepdims=True) + eps)
    return [_scaled(x * inverse, scale, None), inverse]


@rounded_once
def group_norm(
    x: Array, groups: int, scale: Array | None = None, shift: Array | None = None, *, eps: float = 1e-5
) -> Array:
    """`layer_norm` of each image, separately over `groups` groups of neighbouring channels.

    Shapes: `x` [N, C, *spatial], `scale` and `shift` [C].

    >>> from pdojo import build
    >>> build.group_norm(build.input("x", "f32", (2, 6, 4, 4)), 3)
    <Array f32 [2, 6, 4, 4]>
    """
    return group_norm_with_statistics(x, groups, scale, shift, eps=eps)[0]


@rounded_once
def group_norm_with_statistics(
    x: Array, groups: int, scale: Array | None = None, shift: Array | None = None, *, eps: float = 1e-5
) -> list[Array]:
    """`group_norm`, and the means and `1 / sqrt(variance + eps)` of each group, [N, groups].

    >>> from pdojo import build
    >>> build.group_norm_with_statistics(build.input("x", "f32", (2, 6, 4, 4)), 3)
    [<Array f32 [2, 6, 4, 4]>, <Array f32 [2, 3]>, <Array f32 [2, 3]>]
    """
    _check_images("group_norm", x)
    if groups < 1 or x.shape[1] % groups:
        raise UsageError(f"{x.shape[1]} channels do not make {groups} equal groups")
    parts = reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    normal, *statistics = _normalised(parts, tuple(range(2, parts.rank)), eps)
    scaled = _scaled(reshape(normal, x.shape), _per_channel(scale, x, 1), _per_channel(shift, x, 1))
    return [scaled, *(reshape(each, (x.shape[0], groups)) for each in statistics)]


@rounded_once
def instance_norm(x: Array, scale: Array | None = None, shift: Array | None = None, *, eps: float = 1e-5) -> Array:
    """`layer_norm` over the spatial axes: the statistics of each channel of each image.

    Shapes: `x` [N, C, *spatial], `scale` and `shift` [C].

    >>> from pdojo import build
    >>> build.instance_norm(build.input("x", "f32", (2, 6, 4, 4)))
    <Array f32 [2, 6, 4, 4]>
    """
    _check_images("instance_norm", x)
    normal, _, _ = _normalised(x, tuple(range(2, x.rank)), eps)
    return _scaled(normal, _per_channel(scale, x, 1), _per_channel(shift, x, 1))


@rounded_once
def batch_norm(
    x: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    *,
    statistics: tuple[Array, Array] | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Array:
    """The normalisation of each channel, along `axis`, with the statistics of this batch or with given ones.

    `scale`, `shift`, and the (mean, variance) in `statistics` have one element per channel. Given statistics are folded
    into a factor and a summand per channel.

    >>> from pdojo import build
    >>> build.batch_norm(build.input("x", "f32", (2, 6, 4, 4)))
    <Array f32 [2, 6, 4, 4]>
    """
    if statistics is None:
        return batch_norm_with_statistics(x, scale, shift, axis=axis, eps=eps)[0]
    (channels,) = axes_of(axis, x.rank)
    factor, summand = _per_channel(scale, x, channels), _per_channel(shift, x, channels)
    average, variance = (_per_channel(each, x, channels) for each in statistics)
    assert average is not None
    assert variance is not None
    deviation = map("rsqrt", variance + eps)
    slope = deviation if factor is None else deviation * factor
    offset = -(average * slope) if summand is None else summand - average * slope
    return x * slope + offset


@rounded_once
def batch_norm_with_statistics(
    x: Array, scale: Array | None = None, shift: Array | None = None, *, axis: int = 1, eps: float = 1e-5
) -> list[Array]:
    """`batch_norm` with the statistics of the batch; the mean, `1 / sqrt(variance + eps)` and variance of each channel.

    The statistics of the batch are combined from the statistics of its rows (Chan, Golub, LeVeque 1979): one pass over
    `x`, and no cancellation.

    >>> from pdojo import build
    >>> build.batch_norm_with_statistics(build.input("x", "f32", (2, 6, 4, 4)))
    [<Array f32 [2, 6, 4, 4]>, <Array f32 [6]>, <Array f32 [6]>, <Array f32 [6]>]
    """
    (channels,) = axes_of(axis, x.rank)
    factor, summand = _per_channel(scale, x, channels), _per_channel(shift, x, channels)
    deviations, average, variance = _channel_statistics(x, channels)
    inverse = map("rsqrt", variance + eps)
    found = _scaled(deviations * inverse, factor, summand)
    return [found, *(reshape(each, (x.shape[channels],)) for each in (average, inverse, variance))]


@rounded_once
def batch_norm_in_training(
    x: Array,
    scale: Array | None,
    shift: Array | None,
    mean: Array,
    variance: Array,
    *,
    momentum: float,
    unbiased: bool,
    eps: float = 1e-5,
) -> list[Array]:
    """`batch_norm` with the statistics of the batch; its means, `1 / sqrt(variance + eps)`, and running statistics.

    The running statistics, which were `mean` and `variance`, move to those of the batch by `momentum`. The variance of
    the batch is unbiased for that, if wanted.
    """
    found, average, inverse, spread = batch_norm_with_statistics(x, scale, shift, eps=eps)
    count = prod(x.shape) // x.shape[1]
    spread = spread * count / (count - 1) if unbiased else spread
    moved = [cast(old, new.dtype) * (1 - momentum) + new * momentum
             for old, new in ((mean, average), (variance, spread))]  # fmt: skip
    return [found, average, inverse, *moved]


@rounded_once
def mean_variance_norm(x: Array, *, axis: int | Sequence[int] = (0, 2, 3), eps: float = 1e-9) -> Array:
    """`(x - mean) / (sqrt(variance) + eps)`, with the statistics along `axis`.

    >>> from pdojo import build
    >>> build.mean_variance_norm(build.input("x", "f32", (2, 6, 4, 4)))
    <Array f32 [2, 6, 4, 4]>
    """
    deviations, _, variance = _statistics_of(x, axes_of(axis, x.rank))
    return deviations / (map("sqrt", variance) + eps)


@rounded_once
def local_response_norm(x: Array, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Array:
    """`x / (bias + alpha / size * s)^beta` with the sum `s` of the squares of `size` neighbouring channels.

    Shapes: `x` [N, C, ...]; if `size` is even, one channel more after than before. Those beyond all are 0.

    >>> from pdojo import build
    >>> build.local_response_norm(build.input("x", "f32", (2, 6, 4)), 3)
    <Array f32 [2, 6, 4]>
    """
    if x.rank < 2:
        raise UsageError(f"local_response_norm takes arrays [N, C, ...], not one of shape {shown(x.shape)}")
    before, after = (min(count, x.shape[1]) for count in ((size - 1) // 2, size // 2))
    squares = pad(x * x, [(0, 0), (before, after), *[(0, 0)] * (x.rank - 2)])
    # Windows over the last axis; channels are moved there and back by index expressions.
    last = transpose(squares, [0, *range(2, x.rank), 1])
    sums = sum(windows(last, (before + after + 1,)), -1)
    total = transpose(sums, [0, x.rank - 1, *range(1, x.rank - 1)])
    return x / power(total * (alpha / size) + bias, beta)


def _channel_statistics(u: Array, axis: int) -> tuple[Array, Array, Array]:
    """The deviations from the mean of each channel, the means, and the variances; channels are along `axis`."""
    others = tuple(d for d in range(u.rank) if d != axis)
    if axis == u.rank - 1 or u.rank < 3:
        return _statistics_of(u, others)
    average, variance = _of_rows(u, others)
    return u - average, average, variance


def _statistics_of(u: Array, axes: Sequence[int]) -> tuple[Array, Array, Array]:
    """The deviations from the mean along axes, and the means and variances, which keep the axes with one element."""
    average = mean(u, axes, keepdims=True)
    deviations = u - average
    return deviations, average, mean(deviations * deviations, axes, keepdims=True)


def _of_rows(u: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Mean and variance along `axes`, from mean and variance of rows; the last of `axes` is the last axis."""
    width = u.shape[-1]
    of_rows = mean(u, -1, keepdims=True)
    deviations = u - of_rows
    squares = sum(deviations * deviations, -1, keepdims=True)
    average = mean(of_rows, axes, keepdims=True)
    between = of_rows - average
    whole = between * between * width + squares
    count = 1
    for d in axes:
        count *= u.shape[d]
    return average, sum(whole, axes, keepdims=True) / count


def _normalised(u: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """The array, normalised to mean 0 and variance 1 (up to `eps`) along the axes; means and inverse deviations."""
    deviations, average, variance = _statistics_of(u, axes)
    inverse = map("rsqrt", variance + eps)
    return deviations * inverse, average, inverse


def _scaled(normal: Array, scale: Array | None, shift: Array | None) -> Array:
    scaled = normal if scale is None else normal * _fitting("scale", scale, normal)
    return scaled if shift is None else scaled + _fitting("shift", shift, normal)


def _fitting(name: str, x: Array, normal: Array) -> Array:
    """A scale or a shift in the type of the result, to whose shape it must broadcast."""
    lead = normal.rank - x.rank
    if lead < 0 or any(extent not in (1, normal.shape[lead + d]) for d, extent in enumerate(x.shape)):
        raise UsageError(f"{name} of shape {shown(x.shape)} does not broadcast to {shown(normal.shape)}")
    return cast(x, normal.dtype)


def _check_images(name: str, x: Array) -> None:
    if x.rank < 3:
        raise UsageError(f"{name} takes images [N, C, ...], not an array of shape {shown(x.shape)}")


def _per_channel(values: Array | None, x: Array, axis: int) -> Array | None:
    """One value per channel, as an array that broadcasts to `x`."""
    if values is None:
        return None
    if values.shape != (x.shape[axis],):
        raise UsageError(f"values of shape {shown(values.shape)} are not one for each of {x.shape[axis]} channels")
    return cast(reshape(values, [x.shape[axis] if d == axis else 1 for d in range(x.rank)]), x.dtype)
