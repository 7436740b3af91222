"""Normalisations to mean 0 and variance 1, or to a mean square of 1, with their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.norms import channel_statistics, statistics_of
from pdojo.torch.element_types import TENSORS
from pdojo.torch.operators.registry import Call, aten


def scaled(normal: Array, scale: Array | None, shift: Array | None) -> Array:
    """`normal * scale + shift` with arrays that broadcast."""
    found = normal if scale is None else normal * build.cast(scale, normal.dtype)
    return found if shift is None else found + build.cast(shift, normal.dtype)


def by_channel(values: Array | None, rank: int) -> Array | None:
    """One value for each channel, which are along axis 1 of an array of `rank` dimensions."""
    return None if values is None else build.reshape(values, (-1, *[1] * (rank - 2)))


def last_axes(x: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """The axes that `normalized_shape` describes."""
    return tuple(range(x.rank - len(normalized_shape), x.rank))


@aten("native_layer_norm.default")
def layer_norm(
    call: Call, x: Array, normalized_shape: Sequence[int], scale: Array | None, shift: Array | None, eps: float
) -> list[Array]:
    """The normalisation along the last axes, the means, and the inverse deviations."""
    deviations, average, variance = statistics_of(wide(x), last_axes(x, normalized_shape))
    inverse = build.map("rsqrt", variance + eps)
    return [scaled(deviations * inverse, scale, shift), average, inverse]


@aten("native_group_norm.default")
def group_norm(
    call: Call, x: Array, scale: Array | None, shift: Array | None, n: int, c: int, size: int, groups: int, eps: float
) -> list[Array]:
    """The normalisation of groups of channels, the means, and the inverse deviations."""
    parts = build.reshape(wide(x), (n, groups, c // groups, *x.shape[2:]))
    deviations, average, variance = statistics_of(parts, range(2, parts.rank))
    inverse = build.map("rsqrt", variance + eps)
    normal = build.reshape(deviations * inverse, x.shape)
    found = scaled(normal, by_channel(scale, x.rank), by_channel(shift, x.rank))
    return [found, build.reshape(average, (n, groups)), build.reshape(inverse, (n, groups))]


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm(
    call: Call,
    x: Array,
    scale: Array | None,
    shift: Array | None,
    mean: Array,
    variance: Array,
    momentum: float,
    eps: float,
) -> list[Array | None]:
    """The normalisation of each channel with given statistics."""
    return [build.batch_norm(x, scale, shift, statistics=(mean, variance), axis=1, eps=eps), None, None]


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    call: Call, x: Array, scale: Array | None, shift: Array | None, training: bool, momentum: float, eps: float
) -> list[Array]:
    """The normalisation of each channel with the statistics of the batch, the means, and the inverse deviations."""
    found, average, inverse, _ = _of_batch(x, scale, shift, eps)
    return [found, average, inverse]


@aten("_native_batch_norm_legit_functional.default")
def batch_norm_with_update(
    call: Call,
    x: Array,
    scale: Array | None,
    shift: Array | None,
    mean: Array,
    variance: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Array | None]:
    """`batch_norm_of_batch` with the running statistics after the batch; `batch_norm` if not in training."""
    if not training:
        return [*batch_norm(call, x, scale, shift, mean, variance, momentum, eps), mean, variance]
    found, average, inverse, spread = _of_batch(x, scale, shift, eps)
    count = prod(x.shape) // x.shape[1]
    unbiased = spread * count / (count - 1)
    return [found, average, inverse, _moved(mean, average, momentum), _moved(variance, unbiased, momentum)]


def _of_batch(x: Array, scale: Array | None, shift: Array | None, eps: float) -> tuple[Array, Array, Array, Array]:
    """The normalised array; mean, inverse deviation and variance of each channel."""
    deviations, average, variance = channel_statistics(wide(x), 1)
    inverse = build.map("rsqrt", variance + eps)
    found = scaled(deviations * inverse, by_channel(scale, x.rank), by_channel(shift, x.rank))
    flat = [build.reshape(each, (x.shape[1],)) for each in (average, inverse, variance)]
    return found, flat[0], flat[1], flat[2]


def _moved(old: Array, new: Array, momentum: float) -> Array:
    """A running statistic after a batch."""
    return build.cast(old, new.dtype) * (1 - momentum) + new * momentum


@aten("_fused_rms_norm.default")
def rms_norm(
    call: Call, x: Array, normalized_shape: Sequence[int], scale: Array | None, eps: float | None
) -> list[Array]:
    """The quotient by the root mean square along the last axes, and the inverse of the root."""
    values = wide(x)
    least = torch.finfo(TENSORS[values.dtype]).eps if eps is None else eps
    squares = build.mean(values * values, last_axes(x, normalized_shape), keepdims=True)
    inverse = build.map("rsqrt", squares + least)
    return [scaled(values * inverse, scale, None), inverse]
