"""Which variants each library has of each kernel; the implementations are tested to have the same."""

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
"""PyTorch can write these into memory of the caller."""
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
"""Other ways to write the same; all of them return fresh memory."""
NUMPY_OUT = frozenset(
    "add mul relu tanh exp log reducemean reducesum reducemax softmax matmul gemv bmm swiglu transpose copy"
    " fill".split()
)
_NO_NUMPY = {"gelu", "bias_gelu"}
"""NumPy has no erf."""


def torch(kernel: str) -> tuple[str, ...]:
    """PyTorch, eager."""
    if kernel not in _ALL | {"matmul_bf16"}:
        return ()
    into = ("eager, out",) if kernel in TORCH_OUT else ()
    return ("eager", *into, *(f"eager, {name}" for name in TORCH_ALTERNATIVES.get(kernel, ())))


def torch_compile(kernel: str) -> tuple[str, ...]:
    """torch.compile; `autotune` takes long, and is left out unless asked for."""
    return ("fresh", "out", "autotune") if kernel in _ALL else ()


def onnxruntime(kernel: str) -> tuple[str, ...]:
    """ONNX Runtime: threads that spin while they wait, or sleep; memory of the caller, or fresh."""
    return ("bound", "bound, no spinning", "fresh") if kernel in _ALL else ()


def jax(kernel: str) -> tuple[str, ...]:
    """JAX: fresh memory, or the memory of the result before, donated."""
    return ("jit", "jit, donated") if kernel in _ALL else ()


def numpy(kernel: str) -> tuple[str, ...]:
    """NumPy."""
    if kernel not in _ALL - _NO_NUMPY:
        return ()
    return ("fresh", "out") if kernel in NUMPY_OUT else ("fresh",)


TVM = frozenset("add mul relu relu_ffn softmax layernorm rmsnorm reducemean batchnorm matmul bmm swiglu conv".split())
"""What is written out as tensor expressions (`tvm_definitions`)."""


def tvm(kernel: str) -> tuple[str, ...]:
    """TVM: the best of a number of trials of MetaSchedule."""
    return ("MetaSchedule",) if kernel in TVM else ()
