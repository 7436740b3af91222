"""The variants of each library for each kernel; a test compares them with the implementations."""

from __future__ import annotations

from benchmarks.unseen import unseen_names

_ELEMENTWISE = frozenset("add mul relu gelu silu sigmoid tanh exp log relu_ffn bias_gelu axpy batchnorm_folded".split())
_ROWS = frozenset(
    "reducemean reducesum reducemax dot softmax log_softmax masked_softmax causal_softmax layernorm residual_layernorm"
    " rmsnorm batchnorm groupnorm instancenorm argmax argmin cumsum".split()
)
_COLUMNS = frozenset("colmean colsum colmax".split())
_PRODUCTS = frozenset(
    "matmul matmul_nt matmul_tn matmul_tt bmm bmm_broadcast_a bmm_broadcast_b swiglu attention dequant_matmul gemv"
    " gemv_t".split()
)
_WINDOWS = frozenset(
    "conv depthwise_conv grouped_conv conv_transpose maxpool maxpool_ceil avgpool avgpool_ceil sumpool".split()
)
_OTHERS = frozenset("copy fill transpose cross_entropy rotary rotary_interleaved".split())
_UNSEEN = frozenset(unseen_names())
_ALL = _ELEMENTWISE | _ROWS | _COLUMNS | _PRODUCTS | _WINDOWS | _OTHERS
_TORCH_ONLY = frozenset("matmul_bf16 matmul_i8 conv_winograd attention_online".split())
"""Kernels that only eager PyTorch is compared with."""

TORCH_OUT = _ALL - frozenset(
    "rmsnorm instancenorm conv depthwise_conv grouped_conv conv_transpose maxpool maxpool_ceil cross_entropy dot axpy"
    " batchnorm_folded".split()
)
"""Kernels that PyTorch can write into the caller's memory."""
TORCH_ALTERNATIVES = {
    "argmax": ("max",),
    "attention": ("four dimensions", "explicit"),
    "batchnorm": ("explicit",),
    "conv": ("channels last",),
    "cross_entropy": ("gather",),
    "depthwise_conv": ("channels last",),
    "dequant_matmul": ("scale last",),
    "reducemean": ("matrix times vector",),
    "rmsnorm": ("explicit",),
}
"""Alternative formulations; all return new memory."""
NUMPY_OUT = frozenset(
    "add mul relu tanh exp log reducemean reducesum reducemax colmean colsum colmax cumsum softmax matmul gemv gemv_t"
    " bmm bmm_broadcast_a bmm_broadcast_b swiglu transpose copy fill".split()
)
_CEIL_MODE = {"maxpool_ceil", "avgpool_ceil"}
_NO_NUMPY = {"gelu", "bias_gelu", "conv_transpose", *_CEIL_MODE}
"""Kernels without a NumPy variant: NumPy has no erf, and neither ceil mode nor transposed convolutions."""


def torch(kernel: str) -> tuple[str, ...]:
    """Variants of eager PyTorch."""
    if kernel not in _ALL | _UNSEEN | _TORCH_ONLY:
        return ()
    into = ("eager, out",) if kernel in TORCH_OUT else ()
    return ("eager", *into, *(f"eager, {name}" for name in TORCH_ALTERNATIVES.get(kernel, ())))


def torch_compile(kernel: str) -> tuple[str, ...]:
    """Variants of torch.compile; `autotune` is slow and runs only on request."""
    return ("fresh", "out", "autotune") if kernel in _ALL | _UNSEEN else ()


def onnxruntime(kernel: str) -> tuple[str, ...]:
    """Variants of ONNX Runtime: spinning or sleeping threads, the caller's memory or new memory."""
    return ("bound", "bound, no spinning", "fresh") if kernel in _ALL else ()


def jax(kernel: str) -> tuple[str, ...]:
    """Variants of JAX: new memory, or the donated memory of the last result."""
    return ("jit", "jit, donated") if kernel in _ALL - _CEIL_MODE else ()


def numpy(kernel: str) -> tuple[str, ...]:
    """Variants of NumPy."""
    if kernel not in _ALL - _NO_NUMPY:
        return ()
    return ("fresh", "out") if kernel in NUMPY_OUT else ("fresh",)


TVM = frozenset("add mul relu relu_ffn softmax layernorm rmsnorm reducemean batchnorm matmul bmm swiglu conv".split())
"""Kernels with a tensor expression (`tvm_definitions`)."""


def tvm(kernel: str) -> tuple[str, ...]:
    """Variants of TVM: the best of some of MetaSchedule's trials."""
    return ("MetaSchedule",) if kernel in TVM else ()
