"""References of the kernels of this folder: NumPy in float64, independent of the dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pdojo.kernels import Workload

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = Mapping[str, int]


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _normalised(x: Array, axes: int | tuple[int, ...]) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def _of_length_one(x: Array, axis: int) -> Array:
    return x / np.linalg.norm(x, axis=axis, keepdims=True)


def _sigmoid(x: Array) -> Array:
    return (1 + np.tanh(x / 2)) / 2


def _rmsnorm_channels(x: Array, g: Array) -> Array:
    return x / np.sqrt(np.square(x).mean(1, keepdims=True) + 1e-5) * g[:, None, None]


def _layernorm_first(x: Array, g: Array, b: Array) -> Array:
    return _normalised(x, 0) * g[:, None] + b[:, None]


def _layernorm_last_two(x: Array, g: Array, h: Array) -> Array:
    return _normalised(x, (1, 2)) * g + h


def _maxpool_1d(z: Sizes, x: Array) -> Array:
    edges = ((0, 0), (0, 0), (z["P"], z["P"]))
    return sliding_window_view(np.pad(x, edges, constant_values=-np.inf), z["K"], 2).max(-1)


def _hardswish_gate(x: Array, g: Array) -> Array:
    return x * np.clip(x + 3, 0, 6) / 6 * g[:, :, None, None]


def _quantize_i8(x: Array) -> Array:
    return np.clip(np.rint(x * 32), -128, 127).astype(np.int8)


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0, x))


def _pointwise_conv_nhwc(x: Array, k: Array, b: Array) -> Array:
    return np.maximum(x @ k + b, 0)


def _conv_time(x: Array, k: Array) -> Array:
    return np.einsum("btcj,jco->bto", sliding_window_view(x, len(k), 1), k, optimize=True)


def _low_rank_adapter(x: Array, a: Array, b: Array) -> Array:
    return x @ a @ b


def _nearest_centroid(x: Array, c: Array) -> Array:
    """The differences themselves: nothing cancels."""
    return np.min([np.square(x - centroid).sum(1) for centroid in c], axis=0)


def _gru_gates(i: Array, j: Array, h: Array) -> Array:
    given, kept = np.split(i, 3, axis=1), np.split(j, 3, axis=1)
    reset, update = (_sigmoid(a + b) for a, b in zip(given[:2], kept[:2], strict=True))
    new = np.tanh(given[2] + reset * kept[2])
    return new + update * (h - new)


def _weighted_heads(x: Array, w: Array) -> Array:
    return np.tensordot(w, x, (0, 1))


def _cosine_scores(q: Array, k: Array) -> Array:
    return 10 * _of_length_one(q, 2) @ _of_length_one(k, 2).transpose(0, 2, 1)


def _moving_average(z: Sizes, x: Array, axis: int) -> Array:
    return sliding_window_view(x, z["K"], axis).mean(-1)


REFERENCES: dict[str, Callable[[Sizes], Callable[..., Array]]] = {
    "softmax_channels": lambda _: partial(_softmax, axis=1),
    "softmax_first": lambda _: partial(_softmax, axis=0),
    "rmsnorm_channels": lambda _: _rmsnorm_channels,
    "layernorm_first": lambda _: _layernorm_first,
    "layernorm_last_two": lambda _: _layernorm_last_two,
    "log_softmax_channels": lambda _: partial(_log_softmax, axis=1),
    "l2norm_columns": lambda _: partial(_of_length_one, axis=0),
    "moving_average_last": lambda z: partial(_moving_average, z, axis=1),
    "moving_average_first": lambda z: partial(_moving_average, z, axis=0),
    "maxpool_1d": lambda z: partial(_maxpool_1d, z),
    "hardswish_gate": lambda _: _hardswish_gate,
    "quantize_i8": lambda _: _quantize_i8,
    "mish": lambda _: _mish,
    "pointwise_conv_nhwc": lambda _: _pointwise_conv_nhwc,
    "conv_time": lambda _: _conv_time,
    "low_rank_adapter": lambda _: _low_rank_adapter,
    "nearest_centroid": lambda _: _nearest_centroid,
    "gru_gates": lambda _: _gru_gates,
    "weighted_heads": lambda _: _weighted_heads,
    "cosine_scores": lambda _: _cosine_scores,
}
"""By the name of the kernel, as functions of the sizes."""


def numpy_reference(workload: Workload) -> Callable[..., list[Array]]:
    """The meaning of a kernel of this folder, from its inputs to its only result."""
    plain = REFERENCES[workload.kernel](workload.sizes)
    return lambda *inputs: [plain(*(np.asarray(array, np.float64) for array in inputs))]
