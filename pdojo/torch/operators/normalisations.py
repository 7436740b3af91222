"""Normalisations to mean 0 and variance 1, or to a mean square of 1, with their statistics."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pdojo import build
from pdojo.build import Array
from pdojo.build.norms import batch_norm_in_training
from pdojo.dialect.element_types import wide_type
from pdojo.torch.element_types import TENSORS
from pdojo.torch.operators.registry import Call, aten


def last_axes(x: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """The axes that `normalized_shape` describes."""
    return tuple(range(x.rank - len(normalized_shape), x.rank))


@aten("native_layer_norm.default")
def layer_norm(
    call: Call, x: Array, normalized_shape: Sequence[int], scale: Array | None, shift: Array | None, eps: float
) -> list[Array]:
    """The normalisation along the last axes, the means, and the inverse deviations."""
    return build.layer_norm_with_statistics(x, scale, shift, axis=last_axes(x, normalized_shape), eps=eps)


@aten("native_group_norm.default")
def group_norm(
    call: Call, x: Array, scale: Array | None, shift: Array | None, n: int, c: int, size: int, groups: int, eps: float
) -> list[Array]:
    """The normalisation of groups of channels, the means, and the inverse deviations."""
    return build.group_norm_with_statistics(x, groups, scale, shift, eps=eps)


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
    return build.batch_norm_with_statistics(x, scale, shift, eps=eps)[:3]


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
) -> Sequence[Array | None]:
    """`batch_norm_of_batch` with the running statistics after the batch; `batch_norm` if not in training."""
    if not training:
        return [*batch_norm(call, x, scale, shift, mean, variance, momentum, eps), mean, variance]
    return batch_norm_in_training(x, scale, shift, mean, variance, momentum=momentum, unbiased=True, eps=eps)


@aten("_fused_rms_norm.default")
def rms_norm(
    call: Call, x: Array, normalized_shape: Sequence[int], scale: Array | None, eps: float | None
) -> list[Array]:
    """The quotient by the root mean square along the last axes, and the inverse of the root."""
    known: float = torch.finfo(TENSORS[wide_type(x.dtype)]).eps if eps is None else eps
    return build.rms_norm_with_statistics(x, scale, axis=last_axes(x, normalized_shape), eps=known)
