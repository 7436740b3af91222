"""The kernels in array functions common to NumPy and JAX; `xp` is the module of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any, TypeAlias

Array: TypeAlias = Any
Module: TypeAlias = Any
Sizes: TypeAlias = Mapping[str, int]
Function: TypeAlias = Callable[..., Array]

EPSILON = 1e-5


def _sigmoid(xp: Module, x: Array) -> Array:
    return 1 / (1 + xp.exp(-x))


def _softmax(xp: Module, x: Array) -> Array:
    e = xp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _log_softmax(xp: Module, x: Array) -> Array:
    d = x - x.max(-1, keepdims=True)
    return d - xp.log(xp.exp(d).sum(-1, keepdims=True))


def _normalised(xp: Module, x: Array, axes: int | tuple[int, ...]) -> Array:
    d = x - x.mean(axes, keepdims=True)
    return d / xp.sqrt((d * d).mean(axes, keepdims=True) + EPSILON)


def _batchnorm(xp: Module, x: Array, g: Array, b: Array) -> Array:
    d = x - x.mean((0, 2, 3), keepdims=True)
    scale = g[:, None, None] / xp.sqrt((d * d).mean((0, 2, 3), keepdims=True) + EPSILON)
    return d * scale + b[:, None, None]


def _attention(xp: Module, q: Array, k: Array, v: Array) -> Array:
    return _softmax(xp, q @ k.swapaxes(1, 2) * (1 / sqrt(q.shape[2]))) @ v


def _rotary(xp: Module, x: Array, c: Array, s: Array) -> Array:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    c, s = c[:, None], s[:, None]
    return xp.concatenate((a * c - b * s, b * c + a * s), -1)


def _groupnorm(xp: Module, x: Array, g: Array, b: Array, groups: int) -> Array:
    normalised = _normalised(xp, x.reshape(len(x), groups, -1), 2).reshape(x.shape)
    return normalised * g[:, None, None] + b[:, None, None]


def _masked_softmax(xp: Module, x: Array, mask: Array) -> Array:
    return _softmax(xp, xp.where(mask, x, -xp.inf))


def _rotary_neighbours(xp: Module, x: Array, c: Array, s: Array) -> Array:
    a, b = x[..., ::2], x[..., 1::2]
    c, s = c[:, None], s[:, None]
    return xp.stack((a * c - b * s, b * c + a * s), -1).reshape(x.shape)


def _cross_entropy(xp: Module, x: Array, t: Array) -> Array:
    return -xp.take_along_axis(_log_softmax(xp, x), t[:, None], 1)[:, 0]


def _swiglu(xp: Module, x: Array, w: Array, v: Array) -> Array:
    gate = x @ w
    return gate * _sigmoid(xp, gate) * (x @ v)


SHARED: dict[str, Callable[[Module, Sizes], Function]] = {
    "add": lambda xp, _: xp.add,
    "mul": lambda xp, _: xp.multiply,
    "relu": lambda xp, _: lambda x: xp.maximum(x, 0),
    "silu": lambda xp, _: lambda x: x * _sigmoid(xp, x),
    "sigmoid": lambda xp, _: lambda x: _sigmoid(xp, x),
    "tanh": lambda xp, _: xp.tanh,
    "exp": lambda xp, _: xp.exp,
    "log": lambda xp, _: xp.log,
    "copy": lambda xp, _: xp.copy,
    "fill": lambda xp, z: lambda a: xp.full((z["R"], z["C"]), a[0]),
    "axpy": lambda xp, _: lambda a, x, y: a * x + y,
    "batchnorm_folded": lambda xp, _: lambda x, g, b: x * g + b,
    "relu_ffn": lambda xp, _: lambda x, b: xp.maximum(x + b[:, None, None], 0),
    "reducemean": lambda xp, _: lambda x: x.mean(1),
    "reducesum": lambda xp, _: lambda x: x.sum(1),
    "reducemax": lambda xp, _: lambda x: x.max(1),
    "colmean": lambda xp, _: lambda x: x.mean(0),
    "colsum": lambda xp, _: lambda x: x.sum(0),
    "colmax": lambda xp, _: lambda x: x.max(0),
    "cumsum": lambda xp, _: lambda x: xp.cumsum(x, 1),
    "dot": lambda xp, _: lambda x, y: xp.einsum("rc,rc->r", x, y),
    "gemv": lambda xp, _: xp.matmul,
    "gemv_t": lambda xp, _: lambda a, x: x @ a,
    "softmax": lambda xp, _: lambda x: _softmax(xp, x),
    "masked_softmax": lambda xp, _: lambda x, k: _masked_softmax(xp, x, k),
    "causal_softmax": lambda xp, z: lambda x: _masked_softmax(xp, x, xp.tri(z["L"], dtype=bool)),
    "log_softmax": lambda xp, _: lambda x: _log_softmax(xp, x),
    "layernorm": lambda xp, _: lambda x, g, b: _normalised(xp, x, 1) * g + b,
    "residual_layernorm": lambda xp, _: lambda x, r, g, b: _normalised(xp, x + r, 1) * g + b,
    "rmsnorm": lambda xp, _: lambda x, w: x / xp.sqrt((x * x).mean(1, keepdims=True) + EPSILON) * w,
    "batchnorm": lambda xp, _: lambda x, g, b: _batchnorm(xp, x, g, b),
    "groupnorm": lambda xp, z: lambda x, g, b: _groupnorm(xp, x, g, b, z["G"]),
    "instancenorm": lambda xp, z: lambda x, g, b: _groupnorm(xp, x, g, b, z["C"]),
    "argmax": lambda xp, _: lambda x: xp.argmax(x, 1),
    "argmin": lambda xp, _: lambda x: xp.argmin(x, 1),
    "matmul": lambda xp, _: xp.matmul,
    "matmul_nt": lambda xp, _: lambda a, b: a @ b.T,
    "matmul_tn": lambda xp, _: lambda a, b: a.T @ b,
    "matmul_tt": lambda xp, _: lambda a, b: a.T @ b.T,
    "bmm": lambda xp, _: xp.matmul,
    "bmm_broadcast_a": lambda xp, _: xp.matmul,
    "bmm_broadcast_b": lambda xp, _: xp.matmul,
    "swiglu": lambda xp, _: lambda x, w, v: _swiglu(xp, x, w, v),
    "attention": lambda xp, _: lambda q, k, v: _attention(xp, q, k, v),
    "dequant_matmul": lambda xp, _: lambda x, w, s: x @ (w.astype(x.dtype) * s),
    "transpose": lambda xp, _: lambda x: xp.copy(x.T, order="C"),
    "cross_entropy": lambda xp, _: lambda x, t: _cross_entropy(xp, x, t),
    "rotary": lambda xp, _: lambda x, c, s: _rotary(xp, x, c, s),
    "rotary_interleaved": lambda xp, _: lambda x, c, s: _rotary_neighbours(xp, x, c, s),
}
"""The kernels as functions of the module and the sizes."""
