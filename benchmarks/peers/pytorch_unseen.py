"""The kernels of `benchmarks.unseen` in PyTorch, as users write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch.nn import functional

Tensor: TypeAlias = Any

EPSILON = 1e-5


def _rms_channels(x: Tensor, g: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + EPSILON) * g[:, None, None]


def _layer_first(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, 0, correction=0)
    return (x - mean) * torch.rsqrt(variance + EPSILON) * g[:, None] + b[:, None]


def _convolve_time(x: Tensor, k: Tensor) -> Tensor:
    return functional.conv1d(x.mT, k.permute(2, 1, 0)).mT


def _nearest(x: Tensor, c: Tensor) -> Tensor:
    return (x.square().sum(1, keepdim=True) - 2 * (x @ c.t()) + c.square().sum(1)).amin(1)


def _gru(i: Tensor, j: Tensor, h: Tensor) -> Tensor:
    reset_i, update_i, new_i = i.chunk(3, 1)
    reset_j, update_j, new_j = j.chunk(3, 1)
    reset = torch.sigmoid(reset_i + reset_j)
    update = torch.sigmoid(update_i + update_j)
    new = torch.tanh(new_i + reset * new_j)
    return (1 - update) * new + update * h


def _cosines(q: Tensor, k: Tensor) -> Tensor:
    return functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT * 10


EXPRESSIONS: dict[str, Callable[[Mapping[str, int]], Callable[..., Tensor]]] = {
    "softmax_channels": lambda _: partial(torch.softmax, dim=1),
    "softmax_first": lambda _: partial(torch.softmax, dim=0),
    "rmsnorm_channels": lambda _: _rms_channels,
    "layernorm_first": lambda _: _layer_first,
    "layernorm_last_two": lambda _: lambda x, g, h: functional.layer_norm(x, x.shape[1:], g, h, EPSILON),
    "log_softmax_channels": lambda _: partial(torch.log_softmax, dim=1),
    "l2norm_columns": lambda _: partial(functional.normalize, dim=0),
    "moving_average_last": lambda z: lambda x: functional.avg_pool1d(x, z["K"], 1),
    "moving_average_first": lambda z: lambda x: x.unfold(0, z["K"], 1).mean(-1),
    "maxpool_1d": lambda z: lambda x: functional.max_pool1d(x, z["K"], 1, z["P"]),
    "hardswish_gate": lambda _: lambda x, g: functional.hardswish(x) * g[:, :, None, None],
    "quantize_i8": lambda _: lambda x: torch.clamp(torch.round(x * 32), -128, 127).to(torch.int8),
    "mish": lambda _: functional.mish,
    "pointwise_conv_nhwc": lambda _: lambda x, k, b: torch.relu(x @ k + b),
    "conv_time": lambda _: _convolve_time,
    "low_rank_adapter": lambda _: lambda x, a, b: x @ a @ b,
    "nearest_centroid": lambda _: _nearest,
    "gru_gates": lambda _: _gru,
    "weighted_heads": lambda _: partial(torch.einsum, "bhld,h->bld"),
    "cosine_scores": lambda _: _cosines,
}
"""By the name of the kernel, as functions of the sizes."""
