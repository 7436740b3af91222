"""The variants of each library for each kernel; a test compares them with the implementations."""

from __future__ import annotations

_ELEMENTWISE = frozenset("add mul relu gelu silu sigmoid tanh exp log relu_ffn bias_gelu axpy batchnorm_folded".split())
_ROWS = frozenset(
    "reducemean reducesum reducemax dot softmax log_softmax layernorm residual_layernorm rmsnorm batchnorm"
    " argmax".split()
)
_PRODUCTS = frozenset("matmul bmm swiglu attention dequant_matmul gemv".split())
_WINDOWS = frozenset("conv depthwise_conv maxpool avgpool sumpool".split())
_ALL = _ELEMENTWISE | _ROWS | _PRODUCTS | _WINDOWS | {"copy", "fill", "transpose", "cross_entropy", "rotary"}

TORCH_OUT = _ALL - {"rmsnorm", "conv", "depthwise_conv", "maxpool", "cross_entropy", "dot", "axpy", "batchnorm_folded"}
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
    "add mul relu tanh exp log reducemean reducesum reducemax softmax matmul gemv bmm swiglu transpose copy"
    " fill".split()
)
_NO_NUMPY = {"gelu", "bias_gelu"}
"""Kernels without a NumPy variant: NumPy has no erf."""


def torch(kernel: str) -> tuple[str, ...]:
    """Variants of eager PyTorch."""
    if kernel not in _ALL | {"matmul_bf16"}:
        return ()
    into = ("eager, out",) if kernel in TORCH_OUT else ()
    return ("eager", *into, *(f"eager, {name}" for name in TORCH_ALTERNATIVES.get(kernel, ())))


def torch_compile(kernel: str) -> tuple[str, ...]:
    """Variants of torch.compile; `autotune` is slow and runs only on request."""
    return ("fresh", "out", "autotune") if kernel in _ALL else ()


def onnxruntime(kernel: str) -> tuple[str, ...]:
    """Variants of ONNX Runtime: spinning or sleeping threads, the caller's memory or new memory."""
    return ("bound", "bound, no spinning", "fresh") if kernel in _ALL else ()


def jax(kernel: str) -> tuple[str, ...]:
    """Variants of JAX: new memory, or the donated memory of the last result."""
    return ("jit", "jit, donated") if kernel in _ALL else ()


def numpy(kernel: str) -> tuple[str, ...]:
    """Variants of NumPy."""
    if kernel not in _ALL - _NO_NUMPY:
        return ()
    return ("fresh", "out") if kernel in NUMPY_OUT else ("fresh",)


TVM = frozenset("add mul relu relu_ffn softmax layernorm rmsnorm reducemean batchnorm matmul bmm swiglu conv".split())
"""Kernels with a tensor expression (`tvm_definitions`)."""


def tvm(kernel: str) -> tuple[str, ...]:
    """Variants of TVM: the best of a number of MetaSchedule's trials."""
    return ("MetaSchedule",) if kernel in TVM else ()
