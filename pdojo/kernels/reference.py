"""References of the library kernels: NumPy in float64, the references of the same operators of `pdojo.build`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pdojo.build.records.attention import attention, rotary_embedding
from pdojo.build.records.convolutions import conv, conv_transpose
from pdojo.build.records.norms import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from pdojo.build.records.reductions import argmax, argmin
from pdojo.build.records.softmax import causal_softmax, log_softmax, softmax
from pdojo.errors import UsageError
from pdojo.kernels.workload import Workload, workload
from pdojo.math.composites import COMPOSITES

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[..., list[Array]]
"""Maps the inputs of a kernel, in order, to the arrays that it writes, in order."""
Sizes: TypeAlias = Mapping[str, int]
_gelu, _relu, _sigmoid, _silu = (COMPOSITES[name].exact for name in ("gelu", "relu", "sigmoid", "silu"))


def _cross_entropy(x: Array, classes: Array) -> Array:
    logarithms = log_softmax(x)
    shifted = x - x.max(axis=-1, keepdims=True)
    valid = (classes >= 0) & (classes < x.shape[1])
    rows = np.arange(len(x))
    picked = np.clip(classes, 0, x.shape[1] - 1)
    # A class out of range selects no logit, so only the logarithm of the sum remains.
    return np.where(valid, -logarithms[rows, picked], (shifted - logarithms)[:, 0])


def _swiglu(x: Array, w: Array, v: Array) -> Array:
    return _silu(x @ w) * (x @ v)


def _masked_softmax(x: Array, mask: Array) -> Array:
    # A row without kept elements is NaN.
    with np.errstate(invalid="ignore"):
        return softmax(x, mask=mask.astype(np.bool_))


def _attention_online(q: Array, k: Array, v: Array, sizes: Sizes) -> Array:
    return attention(q, k, v, mask=np.tri(sizes["L"], sizes["S"], sizes["P"], dtype=np.bool_))


def _windows(x: Array, sizes: Sizes, fill: float) -> Array:
    """All windows of zero- or `fill`-padded images, shape [N, C, rows, columns, K, K]."""
    padding, step, dilation = sizes["P"], sizes["S"], sizes.get("DIL", 1)
    reach = dilation * (sizes["K"] - 1) + 1
    edges = (padding, padding)
    padded = np.pad(x, ((0, 0), (0, 0), edges, edges), constant_values=fill)
    windows = sliding_window_view(padded, (reach, reach), axis=(2, 3))
    return windows[:, :, ::step, ::step, ::dilation, ::dilation]


def _conv(x: Array, k: Array, sizes: Sizes) -> Array:
    windows: dict[str, Any] = {"stride": sizes.get("S", 1), "padding": sizes["P"], "dilation": sizes.get("DIL", 1)}
    return conv(x, k, **windows, groups=sizes.get("G", 1))


def _conv_transpose(x: Array, k: Array, sizes: Sizes) -> Array:
    return conv_transpose(x, k, stride=sizes["S"], padding=sizes["P"], output_padding=sizes["OP"])


def _rotary(x: Array, cosines: Array, sines: Array, *, interleaved: bool = False) -> Array:
    return rotary_embedding(x, cosines[:, None, :], sines[:, None, :], interleaved=interleaved)


def _pooled_up(x: Array, sizes: Sizes, pool: Callable[[Array, int], Array]) -> Array:
    """Pooling in ceil mode; `pool` receives the part of a window inside the images, and the number to average over."""
    size, step, padding = sizes["K"], sizes["S"], sizes["P"]

    def spans(length: int) -> list[tuple[slice, int]]:
        most = -(-(length + 2 * padding - size) // step) + 1
        starts = range(-padding, length, step)[:most]
        return [(slice(max(s, 0), max(s + size, 0)), min(s + size, length + padding) - s) for s in starts]

    rows, columns = (spans(length) for length in x.shape[2:])
    found = [[pool(x[:, :, h, w], tall * wide) for w, wide in columns] for h, tall in rows]
    return np.moveaxis(np.array(found), (0, 1), (2, 3))


def _maxpool_ceil(x: Array, sizes: Sizes) -> Array:
    return _pooled_up(x, sizes, lambda window, _: window.max(axis=(2, 3), initial=-np.inf))


def _avgpool_ceil(x: Array, sizes: Sizes) -> Array:
    return _pooled_up(x, sizes, lambda window, count: window.sum(axis=(2, 3)) / count)


def _matmul_i8(a: Array, b: Array) -> Array:
    """`a @ b`, with the bytes of `a` unsigned."""
    return (a % 256) @ b


_REFERENCES: dict[
    str,
    Callable[[Array], Array]
    | Callable[[Array, Array], Array]
    | Callable[[Array, Array, Array], Array]
    | Callable[[Array, Array, Array, Array], Array],
] = {
    "add": np.add,
    "argmax": partial(argmax, axis=1),
    "argmin": partial(argmin, axis=1),
    "attention": attention,
    "axpy": lambda a, x, y: a * x + y,
    "batchnorm": batch_norm,
    "batchnorm_folded": lambda x, g, b: x * g + b,
    "bias_gelu": lambda x, b: _gelu(x + b),
    "bmm": np.matmul,
    "bmm_broadcast_a": np.matmul,
    "bmm_broadcast_b": np.matmul,
    "causal_softmax": causal_softmax,
    "colmax": partial(np.max, axis=0),
    "colmean": partial(np.mean, axis=0),
    "colsum": partial(np.sum, axis=0),
    "copy": np.copy,
    "cross_entropy": _cross_entropy,
    "cumsum": partial(np.cumsum, axis=1),
    "dequant_matmul": lambda x, w, s: x @ (w * s),
    "dot": lambda x, y: np.einsum("rc,rc->r", x, y),
    "exp": np.exp,
    "gelu": _gelu,
    "gemv": np.matmul,
    "gemv_t": lambda a, x: x @ a,
    "instancenorm": instance_norm,
    "layernorm": layer_norm,
    "log": np.log,
    "log_softmax": log_softmax,
    "masked_softmax": _masked_softmax,
    "matmul": np.matmul,
    "matmul_bf16": np.matmul,
    "matmul_i8": _matmul_i8,
    "matmul_nt": lambda a, b: a @ b.T,
    "matmul_tn": lambda a, b: a.T @ b,
    "matmul_tt": lambda a, b: a.T @ b.T,
    "mul": np.multiply,
    "reducemax": partial(np.max, axis=1),
    "reducemean": partial(np.mean, axis=1),
    "reducesum": partial(np.sum, axis=1),
    "relu": _relu,
    "relu_ffn": lambda x, b: _relu(x + b[:, None, None]),
    "residual_layernorm": lambda x, r, g, b: layer_norm(x + r, g, b),
    "rmsnorm": rms_norm,
    "rotary": _rotary,
    "rotary_interleaved": partial(_rotary, interleaved=True),
    "sigmoid": _sigmoid,
    "silu": _silu,
    "softmax": softmax,
    "swiglu": _swiglu,
    "tanh": np.tanh,
    "transpose": np.transpose,
}
_SIZED: dict[
    str,
    Callable[[Array, Sizes], Array]
    | Callable[[Array, Array, Sizes], Array]
    | Callable[[Array, Array, Array, Sizes], Array],
] = {
    "attention_online": _attention_online,
    "avgpool": lambda x, sizes: _windows(x, sizes, 0).mean(axis=(4, 5)),
    "avgpool_ceil": _avgpool_ceil,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "conv_winograd": _conv,
    "depthwise_conv": lambda x, k, sizes: _conv(x, k[:, None], {**sizes, "G": len(k)}),
    "fill": lambda a, sizes: np.full((sizes["R"], sizes["C"]), a[0]),
    "grouped_conv": _conv,
    "groupnorm": lambda x, g, b, sizes: group_norm(x, sizes["G"], g, b),
    "maxpool": lambda x, sizes: _windows(x, sizes, -np.inf).max(axis=(4, 5)),
    "maxpool_ceil": _maxpool_ceil,
    "sumpool": lambda x, sizes: _windows(x, sizes, 0).sum(axis=(4, 5)),
}
"""Operators whose result depends on sizes that the inputs' shapes do not determine."""


def numpy_reference(kernel: Workload | str) -> Reference:
    """The meaning of a workload on inputs of any type; floating-point operators return float64.

    A string is read by `pdojo.kernels.workload`. Raises UsageError for a kernel without a meaning.
    """
    found = workload(kernel) if isinstance(kernel, str) else kernel
    plain: Callable[..., Array] | None = _REFERENCES.get(found.kernel) or _SIZED.get(found.kernel)
    if plain is None:
        raise UsageError(f"there is no NumPy reference of '{found.kernel}'")
    sizes = (found.sizes,) if found.kernel in _SIZED else ()
    return lambda *inputs: [plain(*(_wide(array) for array in inputs), *sizes)]


def _wide(array: Array) -> Array:
    """The array in the type of exact results: int64 for integers, float64 for other types."""
    given = np.asarray(array)
    if given.dtype == np.uint16:
        # bf16, which NumPy lacks: the upper half of an f32.
        return (given.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return given.astype(np.int64 if given.dtype.kind in "iub" else np.float64)
