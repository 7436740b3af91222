"""Library kernels, rebuilt by `pdojo.build`: for each, a function of handles of its inputs, and its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pdojo import build
from pdojo.build import Array
from pdojo.build.attention import rotary_embedding

Sizes: TypeAlias = Mapping[str, int]
Rebuilt: TypeAlias = Callable[..., Array]


IN_F32 = {"axpy", "batchnorm_folded", "bias_gelu", "dequant_matmul", "residual_layernorm", "swiglu"}
"""Kernels of several functions that compute 16-bit types in f32, from the inputs to the result."""


def rebuilt(name: str, inputs: Sequence[Array], sizes: Sizes) -> Array:
    """The output of a library kernel, rebuilt."""
    function = REBUILT[name][1]
    dtype = inputs[0].dtype
    if name not in IN_F32 or dtype not in ("f16", "bf16"):
        return function(*inputs, sizes)
    return build.cast(function(*(build.cast(each, "f32") for each in inputs), sizes), dtype)


def _rotary(x: Array, c: Array, s: Array, *, interleaved: bool = False) -> Array:
    return rotary_embedding(x, c[:, None, :], s[:, None, :], interleaved=interleaved)


def _depthwise_conv(x: Array, k: Array, sizes: Sizes) -> Array:
    return build.conv(
        x,
        k[:, None],
        stride=sizes["S"],
        padding=sizes["P"],
        dilation=sizes["DIL"],
        groups=sizes["C"],
    )


def _swiglu(x: Array, w: Array, v: Array, sizes: Sizes) -> Array:
    gate, values = build.matmul(x, w), build.matmul(x, v)
    return build.silu(gate) * values


def _bias(b: Array) -> Array:
    return b[:, None, None]


def _pool(accumulation: str, *, ceil: bool = False) -> Callable[[Array, Sizes], Array]:
    def pooled(x: Array, sizes: Sizes) -> Array:
        window = (sizes["K"], sizes["K"])
        return build.pool(accumulation, x, window, stride=sizes["S"], padding=sizes["P"], ceil=ceil)

    return pooled


def _avg_pool(*, ceil: bool = False) -> Callable[[Array, Sizes], Array]:
    def pooled(x: Array, sizes: Sizes) -> Array:
        return build.avg_pool(x, (sizes["K"], sizes["K"]), stride=sizes["S"], padding=sizes["P"], ceil=ceil)

    return pooled


_OF_ONE: dict[str, tuple[str, Callable[[Array, Sizes], Array]]] = {
    "argmax": ("5x8", lambda x, _: build.argmax(x)),
    "argmin": ("5x8", lambda x, _: build.argmin(x)),
    "avgpool": ("2x2x5x6x2,P=1", _avg_pool()),
    "avgpool_ceil": ("1x2x6x5x3,P=1", _avg_pool(ceil=True)),
    "causal_softmax": ("2x6", lambda x, _: build.causal_softmax(x)),
    "colmax": ("5x8", lambda x, _: build.max(x, axis=0)),
    "colmean": ("5x8", lambda x, _: build.mean(x, axis=0)),
    "colsum": ("5x8", lambda x, _: build.sum(x, axis=0)),
    "copy": ("5x8", lambda x, _: x),
    "cumsum": ("5x8", lambda x, _: build.cumulative("+", x)),
    "exp": ("5x8", lambda x, _: build.exp(x)),
    "fill": ("5x8", lambda a, s: build.broadcast_to(a, (s["R"], s["C"]))),
    "gelu": ("5x8", lambda x, _: build.gelu(x)),
    "log": ("5x8", lambda x, _: build.log(x)),
    "log_softmax": ("5x8", lambda x, _: build.log_softmax(x)),
    "maxpool": ("2x2x7x6x3", _pool("max")),
    "maxpool_ceil": ("1x2x6x5x3,P=1", _pool("max", ceil=True)),
    "reducemax": ("5x8", lambda x, _: build.max(x, axis=1)),
    "reducemean": ("5x8", lambda x, _: build.mean(x, axis=1)),
    "reducesum": ("5x8", lambda x, _: build.sum(x, axis=1)),
    "relu": ("5x8", lambda x, _: build.relu(x)),
    "sigmoid": ("5x8", lambda x, _: build.sigmoid(x)),
    "silu": ("5x8", lambda x, _: build.silu(x)),
    "softmax": ("5x8", lambda x, _: build.softmax(x)),
    "sumpool": ("2x2x5x6x2,P=1", _pool("+")),
    "tanh": ("5x8", lambda x, _: build.tanh(x)),
    "transpose": ("5x8", lambda x, _: build.transpose(x)),
}

_OF_TWO: dict[str, tuple[str, Callable[[Array, Array, Sizes], Array]]] = {
    "add": ("5x8", lambda x, y, _: x + y),
    "bias_gelu": ("5x8", lambda x, b, _: build.gelu(x + b)),
    "bmm": ("2x3x4x5", lambda a, b, _: build.matmul(a, b)),
    "bmm_broadcast_a": ("2x3x4x5", lambda a, b, _: build.matmul(a, b)),
    "bmm_broadcast_b": ("2x3x4x5", lambda a, b, _: build.matmul(a, b)),
    "conv": (
        "2x3x2x7x6x3,S=2,P=1,DIL=2",
        lambda x, k, s: build.conv(x, k, stride=s["S"], padding=s["P"], dilation=s["DIL"]),
    ),
    "conv_transpose": (
        "2x3x2x4x3x3",
        lambda x, k, s: build.conv_transpose(x, k, stride=s["S"], padding=s["P"], output_padding=s["OP"]),
    ),
    "cross_entropy": ("5x8", lambda x, t, _: build.cross_entropy(x, t, reduction="none")),
    # What it computes; the fewer products are the library's own.
    "conv_winograd": ("1x2x2x4x5,P=1", lambda x, k, s: build.conv(x, k, padding=s["P"])),
    "depthwise_conv": ("2x3x7x6x3,S=2,P=1", _depthwise_conv),
    "dot": ("5x8", lambda x, y, _: build.contract("rc,rc->r", x, y)),
    "gemv": ("5x8", lambda a, x, _: build.matmul(a, x)),
    "gemv_t": ("5x8", lambda a, x, _: build.matmul(build.transpose(a), x)),
    "grouped_conv": (
        "2x6x4x5x6x3,G=2",
        lambda x, k, s: build.conv(x, k, stride=s["S"], padding=s["P"], dilation=s["DIL"], groups=s["G"]),
    ),
    "masked_softmax": ("5x8", lambda x, k, _: build.softmax(x, mask=k)),
    "matmul": ("3x4x5", lambda a, b, _: build.matmul(a, b)),
    "matmul_bf16": ("3x4x5", lambda a, b, _: build.matmul(a, b, dtype="f32")),
    "matmul_i8": (
        "3x4x5",
        lambda a, b, _: build.matmul(build.cast(build.cast(a, "u8"), "i32"), build.cast(b, "i32")),
    ),
    "matmul_nt": ("3x4x5", lambda a, b, _: build.matmul(a, build.transpose(b))),
    "matmul_tn": ("3x4x5", lambda a, b, _: build.matmul(build.transpose(a), b)),
    "matmul_tt": ("3x4x5", lambda a, b, _: build.matmul(build.transpose(a), build.transpose(b))),
    "mul": ("5x8", lambda x, y, _: x * y),
    "relu_ffn": ("2x3x4x5", lambda x, b, _: build.relu(x + _bias(b))),
    "rmsnorm": ("5x8", lambda x, w, _: build.rms_norm(x, w)),
}

_OF_THREE: dict[str, tuple[str, Callable[[Array, Array, Array, Sizes], Array]]] = {
    "attention": ("2x3x4x4", lambda q, k, v, _: build.attention(q, k, v)),
    # What it computes; the order of the sums is the library's own.
    "attention_online": ("1x2x2x4x4x3,R=2,C=2", lambda q, k, v, _: build.attention(q, k, v, causal=True)),
    "axpy": ("5x8", lambda a, x, y, _: a * x + y),
    "batchnorm": ("2x3x4x5", lambda x, g, b, _: build.batch_norm(x, g, b)),
    "batchnorm_folded": ("5x8", lambda x, g, b, _: x * g + b),
    "dequant_matmul": ("3x4x5", lambda x, w, s, _: build.matmul(x, build.cast(w, x.dtype) * s)),
    "groupnorm": ("2x6x3x4,G=2", lambda x, g, b, s: build.group_norm(x, s["G"], g, b)),
    "instancenorm": ("2x3x4x5", lambda x, g, b, _: build.instance_norm(x, g, b)),
    "layernorm": ("5x8", lambda x, g, b, _: build.layer_norm(x, g, b)),
    "rotary": ("1x3x2x8", lambda x, c, s, _: _rotary(x, c, s)),
    "rotary_interleaved": ("1x3x2x8", lambda x, c, s, _: _rotary(x, c, s, interleaved=True)),
    "swiglu": ("2x3x4x5", _swiglu),
}

_OF_FOUR: dict[str, tuple[str, Callable[[Array, Array, Array, Array, Sizes], Array]]] = {
    "residual_layernorm": ("5x8", lambda x, r, g, b, _: build.layer_norm(x + r, g, b)),
}

REBUILT: dict[str, tuple[str, Rebuilt]] = {**_OF_ONE, **_OF_TWO, **_OF_THREE, **_OF_FOUR}
"""By library kernel: sizes for tests, and the kernel as a function of its inputs and all sizes."""
