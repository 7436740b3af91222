"""PyTorch: eager, into new memory or the caller's, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, sqrt
from typing import Any, TypeAlias

import torch
from numpy.typing import NDArray
from torch.nn import functional

from benchmarks.peers.calls import Fresh, Into
from benchmarks.peers.pytorch_unseen import EXPRESSIONS as UNSEEN
from pdojo.kernels import Workload

Tensor: TypeAlias = Any
Function: TypeAlias = Callable[..., Tensor]
Sizes: TypeAlias = Mapping[str, int]

EPSILON = 1e-5
aten: Any = torch.ops.aten


def _rms(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + EPSILON) * w


def _batch(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    scale = g * torch.rsqrt(variance + EPSILON)
    return x * scale[:, None, None] + (b - mean * scale)[:, None, None]


def _rotary(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    c, s = c[:, None], s[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def _rotary_neighbours(x: Tensor, c: Tensor, s: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    c, s = c[:, None], s[:, None]
    return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)


def _causal(z: Sizes) -> Function:
    later = torch.ones(z["L"], z["L"], dtype=torch.bool).triu(1)
    return lambda x: torch.softmax(x.masked_fill(later, -inf), -1)


def _layer(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[1:], g, b, EPSILON)


def _convolve(z: Sizes, groups: int = 1) -> Function:
    return lambda x, k: functional.conv2d(x, k, None, z["S"], z["P"], z["DIL"], groups)


def _channels_last(convolve: Function) -> Function:
    last = torch.channels_last
    return lambda x, k: convolve(x.contiguous(memory_format=last), k.contiguous(memory_format=last)).contiguous()


def _depthwise(z: Sizes) -> Function:
    convolve = _convolve(z, z["C"])
    return lambda x, k: convolve(x, k[:, None])


def _grouped_attention(z: Sizes) -> Function:
    attend = partial(functional.scaled_dot_product_attention, enable_gqa=z["G"] > 1)
    if z["P"] == 0:
        return partial(attend, is_causal=True)
    return lambda q, k, v: attend(q, k, v, attn_mask=torch.ones(z["L"], z["S"], dtype=torch.bool).tril(z["P"]))


EXPRESSIONS: dict[str, Callable[[Sizes], Function]] = {
    "add": lambda _: torch.add,
    "mul": lambda _: torch.mul,
    "relu": lambda _: torch.relu,
    "gelu": lambda _: functional.gelu,
    "silu": lambda _: functional.silu,
    "sigmoid": lambda _: torch.sigmoid,
    "tanh": lambda _: torch.tanh,
    "exp": lambda _: torch.exp,
    "log": lambda _: torch.log,
    "relu_ffn": lambda _: lambda x, b: torch.relu(x + b[:, None, None]),
    "bias_gelu": lambda _: lambda x, b: functional.gelu(x + b),
    "reducemean": lambda _: partial(torch.mean, dim=1),
    "reducesum": lambda _: partial(torch.sum, dim=1),
    "reducemax": lambda _: partial(torch.amax, dim=1),
    "colmean": lambda _: partial(torch.mean, dim=0),
    "colsum": lambda _: partial(torch.sum, dim=0),
    "colmax": lambda _: partial(torch.amax, dim=0),
    "cumsum": lambda _: partial(torch.cumsum, dim=1),
    "softmax": lambda _: partial(torch.softmax, dim=-1),
    "masked_softmax": lambda _: lambda x, k: torch.softmax(torch.where(k, x, -inf), -1),
    "causal_softmax": _causal,
    "log_softmax": lambda _: partial(torch.log_softmax, dim=-1),
    "layernorm": lambda _: _layer,
    "residual_layernorm": lambda _: lambda x, r, g, b: _layer(x + r, g, b),
    "rmsnorm": lambda _: lambda x, w: functional.rms_norm(x, x.shape[1:], w, EPSILON),
    "batchnorm": lambda _: lambda x, g, b: functional.batch_norm(x, None, None, g, b, True, 0.0, EPSILON),
    "groupnorm": lambda z: lambda x, g, b: functional.group_norm(x, z["G"], g, b, EPSILON),
    "instancenorm": lambda _: lambda x, g, b: functional.instance_norm(x, weight=g, bias=b, eps=EPSILON),
    "argmax": lambda _: partial(torch.argmax, dim=1),
    "argmin": lambda _: partial(torch.argmin, dim=1),
    "matmul": lambda _: torch.mm,
    "matmul_nt": lambda _: lambda a, b: torch.mm(a, b.t()),
    "matmul_tn": lambda _: lambda a, b: torch.mm(a.t(), b),
    "matmul_tt": lambda _: lambda a, b: torch.mm(a.t(), b.t()),
    "bmm": lambda _: torch.bmm,
    "bmm_broadcast_a": lambda _: torch.matmul,
    "bmm_broadcast_b": lambda _: torch.matmul,
    "swiglu": lambda _: lambda x, w, v: functional.silu(x @ w) * (x @ v),
    "attention": lambda _: functional.scaled_dot_product_attention,
    "attention_online": _grouped_attention,
    "dequant_matmul": lambda _: lambda x, w, s: x @ (w.to(x.dtype) * s),
    "matmul_i8": lambda _: lambda a, b: aten._int_mm(a.view(torch.uint8), b),
    "matmul_bf16": lambda _: lambda a, b: a.float() @ b.float(),
    "conv": _convolve,
    "conv_winograd": lambda z: _convolve({**z, "S": 1, "DIL": 1}),
    "depthwise_conv": _depthwise,
    "grouped_conv": lambda z: _convolve(z, z["G"]),
    "conv_transpose": lambda z: lambda x, k: functional.conv_transpose2d(x, k, None, z["S"], z["P"], z["OP"]),
    "maxpool": lambda z: lambda x: functional.max_pool2d(x, z["K"], z["S"], z["P"]),
    "maxpool_ceil": lambda z: lambda x: functional.max_pool2d(x, z["K"], z["S"], z["P"], ceil_mode=True),
    "avgpool": lambda z: lambda x: functional.avg_pool2d(x, z["K"], z["S"], z["P"]),
    "avgpool_ceil": lambda z: lambda x: functional.avg_pool2d(x, z["K"], z["S"], z["P"], ceil_mode=True),
    "sumpool": lambda z: lambda x: functional.avg_pool2d(x, z["K"], z["S"], z["P"], divisor_override=1),
    "copy": lambda _: torch.clone,
    "fill": lambda z: lambda a: a.expand(z["R"], z["C"]).contiguous(),
    "axpy": lambda _: lambda a, x, y: torch.addcmul(y, a, x),
    "batchnorm_folded": lambda _: lambda x, g, b: torch.addcmul(b, x, g),
    "dot": lambda _: lambda x, y: (x[:, None] @ y[:, :, None])[:, 0, 0],
    "gemv": lambda _: torch.mv,
    "gemv_t": lambda _: lambda a, x: torch.mv(a.t(), x),
    "transpose": lambda _: lambda x: x.t().contiguous(),
    "cross_entropy": lambda _: partial(functional.cross_entropy, reduction="none"),
    "rotary": lambda _: _rotary,
    "rotary_interleaved": lambda _: _rotary_neighbours,
    **UNSEEN,
}
"""The kernels in PyTorch, as functions of the sizes."""


class Scratch:
    """Memory for intermediate results, allocated once."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def __call__(self, name: str, shape: Sequence[int], like: Tensor) -> Tensor:
        """The memory of the given name."""
        if name not in self._held:
            self._held[name] = torch.empty(tuple(shape), dtype=like.dtype)
        return self._held[name]


def _gelu_into(h: Scratch, x: Tensor, b: Tensor, out: Tensor) -> None:
    aten.gelu.out(torch.add(x, b, out=out), out=out)


def _layer_into(h: Scratch, x: Tensor, g: Tensor, b: Tensor, out: Tensor) -> None:
    mean, deviation = (h(name, (x.shape[0], 1), x) for name in ("mean", "deviation"))
    aten.native_layer_norm.out(x, x.shape[1:], g, b, EPSILON, out0=out, out1=mean, out2=deviation)


def _residual_into(h: Scratch, x: Tensor, r: Tensor, g: Tensor, b: Tensor, out: Tensor) -> None:
    _layer_into(h, torch.add(x, r, out=h("sum", x.shape, x)), g, b, out)


def _batch_into(h: Scratch, x: Tensor, g: Tensor, b: Tensor, out: Tensor) -> None:
    mean, deviation = (h(name, g.shape, x) for name in ("mean", "deviation"))
    aten.native_batch_norm.out(x, g, b, None, None, True, 0.0, EPSILON, out=out, save_mean=mean, save_invstd=deviation)


def _swiglu_into(h: Scratch, x: Tensor, w: Tensor, v: Tensor, out: Tensor) -> None:
    rows = (x.shape[0] * x.shape[1], w.shape[1])
    flat = x.view(-1, x.shape[2])
    gate, up = torch.mm(flat, w, out=h("gate", rows, x)), torch.mm(flat, v, out=h("up", rows, x))
    aten.silu.out(gate, out=gate)
    torch.mul(gate, up, out=out.view(rows))


def _attention_into(h: Scratch, q: Tensor, k: Tensor, v: Tensor, out: Tensor) -> None:
    shape = (q.shape[0], q.shape[1], k.shape[1])
    scores, weights = h("scores", shape, q), h("weights", shape, q)
    torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=1 / sqrt(q.shape[2]), out=scores)
    torch.bmm(torch.softmax(scores, -1, out=weights), v, out=out)


def _dequant_into(h: Scratch, x: Tensor, w: Tensor, s: Tensor, out: Tensor) -> None:
    torch.mm(x, torch.mul(w, s, out=h("weights", w.shape, x)), out=out)


def _masked_into(h: Scratch, x: Tensor, k: Tensor, out: Tensor) -> None:
    torch.softmax(torch.where(k, x, h("hidden", (), x).fill_(-inf), out=h("kept", x.shape, x)), -1, out=out)


def _causal_into(z: Sizes, h: Scratch) -> Function:
    later = torch.ones(z["L"], z["L"], dtype=torch.bool).triu(1)

    def into(x: Tensor, out: Tensor) -> None:
        torch.softmax(h("kept", x.shape, x).copy_(x).masked_fill_(later, -inf), -1, out=out)

    return into


def _group_into(z: Sizes, h: Scratch) -> Function:
    sizes = (z["N"], z["C"], z["H"] * z["W"], z["G"])

    def into(x: Tensor, g: Tensor, b: Tensor, out: Tensor) -> None:
        mean, deviation = (h(name, (z["N"], z["G"]), x) for name in ("mean", "deviation"))
        aten.native_group_norm.out(x, g, b, *sizes, EPSILON, out0=out, out1=mean, out2=deviation)

    return into


def _rotary_into(h: Scratch, x: Tensor, c: Tensor, s: Tensor, out: Tensor) -> None:
    _turn_into((*x.chunk(2, -1),), (*out.chunk(2, -1),), c, s)


def _rotary_neighbours_into(h: Scratch, x: Tensor, c: Tensor, s: Tensor, out: Tensor) -> None:
    _turn_into((x[..., ::2], x[..., 1::2]), (out[..., ::2], out[..., 1::2]), c, s)


def _turn_into(given: tuple[Tensor, ...], out: tuple[Tensor, ...], c: Tensor, s: Tensor) -> None:
    (a, b), (first, second) = given, out
    c, s = c[:, None], s[:, None]
    torch.mul(a, c, out=first).addcmul_(b, s, value=-1)
    torch.mul(b, c, out=second).addcmul_(a, s)


INTO: dict[str, Callable[[Sizes, Scratch], Function]] = {
    "add": lambda _, h: torch.add,
    "mul": lambda _, h: torch.mul,
    "relu": lambda _, h: partial(torch.clamp, min=0),
    "gelu": lambda _, h: aten.gelu.out,
    "silu": lambda _, h: aten.silu.out,
    "sigmoid": lambda _, h: torch.sigmoid,
    "tanh": lambda _, h: torch.tanh,
    "exp": lambda _, h: torch.exp,
    "log": lambda _, h: torch.log,
    "relu_ffn": lambda _, h: lambda x, b, out: torch.add(x, b[:, None, None], out=out).relu_(),
    "bias_gelu": lambda _, h: partial(_gelu_into, h),
    "reducemean": lambda _, h: partial(torch.mean, dim=1),
    "reducesum": lambda _, h: partial(torch.sum, dim=1),
    "reducemax": lambda _, h: partial(torch.amax, dim=1),
    "colmean": lambda _, h: partial(torch.mean, dim=0),
    "colsum": lambda _, h: partial(torch.sum, dim=0),
    "colmax": lambda _, h: partial(torch.amax, dim=0),
    "cumsum": lambda _, h: partial(torch.cumsum, dim=1),
    "gemv": lambda _, h: torch.mv,
    "gemv_t": lambda _, h: lambda a, x, out: torch.mv(a.t(), x, out=out),
    "copy": lambda _, h: lambda x, out: out.copy_(x),
    "fill": lambda _, h: lambda a, out: out.copy_(a.expand_as(out)),
    "sumpool": lambda z, h: (
        lambda x, out: aten.avg_pool2d.out(x, [z["K"]], [z["S"]], [z["P"]], divisor_override=1, out=out)
    ),
    "softmax": lambda _, h: partial(torch.softmax, dim=-1),
    "masked_softmax": lambda _, h: partial(_masked_into, h),
    "causal_softmax": _causal_into,
    "log_softmax": lambda _, h: partial(torch.log_softmax, dim=-1),
    "layernorm": lambda _, h: partial(_layer_into, h),
    "residual_layernorm": lambda _, h: partial(_residual_into, h),
    "batchnorm": lambda _, h: partial(_batch_into, h),
    "groupnorm": _group_into,
    "argmax": lambda _, h: partial(torch.argmax, dim=1),
    "argmin": lambda _, h: partial(torch.argmin, dim=1),
    "matmul": lambda _, h: torch.mm,
    "matmul_nt": lambda _, h: lambda a, b, out: torch.mm(a, b.t(), out=out),
    "matmul_tn": lambda _, h: lambda a, b, out: torch.mm(a.t(), b, out=out),
    "matmul_tt": lambda _, h: lambda a, b, out: torch.mm(a.t(), b.t(), out=out),
    "bmm": lambda _, h: torch.bmm,
    "bmm_broadcast_a": lambda _, h: torch.matmul,
    "bmm_broadcast_b": lambda _, h: torch.matmul,
    "swiglu": lambda _, h: partial(_swiglu_into, h),
    "attention": lambda _, h: partial(_attention_into, h),
    "dequant_matmul": lambda _, h: partial(_dequant_into, h),
    "avgpool": lambda z, h: lambda x, out: aten.avg_pool2d.out(x, [z["K"]], [z["S"]], [z["P"]], out=out),
    "avgpool_ceil": lambda z, h: (
        lambda x, out: aten.avg_pool2d.out(x, [z["K"]], [z["S"]], [z["P"]], ceil_mode=True, out=out)
    ),
    "transpose": lambda _, h: lambda x, out: out.copy_(x.t()),
    "rotary": lambda _, h: partial(_rotary_into, h),
    "rotary_interleaved": lambda _, h: partial(_rotary_neighbours_into, h),
}
"""Kernels that write into the memory `out`."""


def _explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(1, 2) / sqrt(q.shape[2]), -1) @ v


def _with_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]


def _gathered_entropy(x: Tensor, t: Tensor) -> Tensor:
    return torch.logsumexp(x, 1) - x.gather(1, t[:, None])[:, 0]


ALTERNATIVES: dict[str, dict[str, Callable[[Sizes], Function]]] = {
    "argmax": {"max": lambda _: lambda x: x.max(1).indices},
    "attention": {"four dimensions": lambda _: _with_heads, "explicit": lambda _: _explicit_attention},
    "batchnorm": {"explicit": lambda _: _batch},
    "conv": {"channels last": lambda z: _channels_last(_convolve(z))},
    "cross_entropy": {"gather": lambda _: _gathered_entropy},
    "depthwise_conv": {
        "channels last": lambda z: lambda x, k: _channels_last(_convolve(z, z["C"]))(x, k[:, None]),
    },
    "dequant_matmul": {"scale last": lambda _: lambda x, w, s: (x @ w.to(x.dtype)) * s},
    "reducemean": {
        "matrix times vector": lambda z: lambda x: torch.mv(x, torch.full((z["C"],), 1 / z["C"], dtype=x.dtype))
    },
    "rmsnorm": {"explicit": lambda _: _rms},
}


class _Built:
    """An implementation; `out` is true if it takes the output array."""

    def __init__(self, function: Function, workload: Workload, *, out: bool) -> None:
        self._function = function
        self._out = out
        self._bits = workload.element_type == "bf16" or workload.kernel == "matmul_bf16"

    def bind(self, arrays: Sequence[NDArray[Any]]) -> Fresh | Into:
        """A call on arrays."""
        tensors = [self._tensor(array) for array in arrays]
        if self._out:
            return Into(partial(self._function, *tensors[:-1], out=tensors[-1]))
        return Fresh(self._function, tensors[:-1], tensors[-1])

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """A tensor on the array's memory; the bits of bf16, which NumPy lacks, come as integers."""
        if self._bits and array.dtype == "uint16":
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
        return torch.from_numpy(array)


def _set_up(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def build_eager(workload: Workload, variant: str, threads: int) -> _Built:
    """PyTorch's eager implementation."""
    _set_up(threads)
    kernel, sizes = workload.kernel, workload.sizes
    alternative = variant.removeprefix("eager").removeprefix(", ")
    if alternative == "out":
        return _Built(INTO[kernel](sizes, Scratch()), workload, out=True)
    chosen = ALTERNATIVES[kernel][alternative] if alternative else EXPRESSIONS[kernel]
    return _Built(chosen(sizes), workload, out=False)


def build_compiled(workload: Workload, variant: str, threads: int) -> _Built:
    """Compiled by Inductor, which needs a C++ compiler; in this process, so that no helper processes stay."""
    _set_up(threads)
    import torch._inductor.config as inductor

    inductor.compile_threads = 1
    torch.compiler.reset()
    expression = EXPRESSIONS[workload.kernel](workload.sizes)
    if variant == "fresh":
        return _Built(torch.compile(expression, dynamic=False), workload, out=False)

    def into(*inputs: Tensor, out: Tensor) -> None:
        out.copy_(expression(*inputs))

    mode = "max-autotune-no-cudagraphs" if variant == "autotune" else None
    return _Built(torch.compile(into, dynamic=False, mode=mode), workload, out=True)
