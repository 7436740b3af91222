"""ONNX Runtime: a model of a few operators, bound to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from math import inf, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.calls import Fresh, Into
from benchmarks.peers.threads import unbound
from pdojo.errors import UsageError
from pdojo.kernels import Workload

onnxruntime: Any = import_module("onnxruntime")
onnx: Any = import_module("onnx")
"""Optional packages, which type checkers may not find."""

OPSET = 23
EPSILON = 1e-5


class Model:
    """A graph under construction; values are represented by their names."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; returns its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def split(self, value: str) -> tuple[str, str]:
        """The two halves of the last axis."""
        names = (f"v{len(self.nodes)}a", f"v{len(self.nodes)}b")
        self.nodes.append(onnx.helper.make_node("Split", [value], list(names), axis=-1, num_outputs=2))
        return names

    def axes(self, *numbers: int) -> str:
        """A constant of axes."""
        return self._constant(np.asarray(numbers, np.int64))

    def number(self, value: float) -> str:
        """A constant of the element type."""
        return self._constant(np.asarray(value, self.dtype))

    def triangle(self, size: int) -> str:
        """A constant mask: true on the diagonal and before it."""
        return self._constant(np.tri(size, dtype=np.bool_))

    def _constant(self, values: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(values, name))
        return name


Writer: TypeAlias = Callable[..., str]


def _channels(m: Model, b: str) -> str:
    return m("Unsqueeze", b, m.axes(1, 2))


def _layer(m: Model, x: str, g: str, b: str) -> str:
    return m("LayerNormalization", x, g, b, axis=-1, epsilon=EPSILON)


def _batch(m: Model, x: str, g: str, b: str) -> str:
    """Batch normalisation written out, as the operator's training mode is not for inference."""
    d = m("Sub", x, m("ReduceMean", x, m.axes(0, 2, 3)))
    variance = m("ReduceMean", m("Mul", d, d), m.axes(0, 2, 3))
    scale = m("Div", _channels(m, g), m("Sqrt", m("Add", variance, m.number(EPSILON))))
    return m("Add", m("Mul", d, scale), _channels(m, b))


def _entropy(m: Model, x: str, t: str) -> str:
    picked = m("GatherElements", m("LogSoftmax", x, axis=-1), m("Unsqueeze", t, m.axes(1)), axis=1)
    return m("Neg", m("Squeeze", picked, m.axes(1)))


def _silu(m: Model, x: str) -> str:
    return m("Mul", x, m("Sigmoid", x))


def _attention(m: Model, q: str, k: str, v: str, depth: int) -> str:
    scores = m("Mul", m("MatMul", q, m("Transpose", k, perm=[0, 2, 1])), m.number(1 / sqrt(depth)))
    return m("MatMul", m("Softmax", scores, axis=-1), v)


def _rotary(m: Model, x: str, c: str, s: str) -> str:
    a, b = m.split(x)
    c, s = m("Unsqueeze", c, m.axes(1)), m("Unsqueeze", s, m.axes(1))
    first = m("Sub", m("Mul", a, c), m("Mul", b, s))
    return m("Concat", first, m("Add", m("Mul", b, c), m("Mul", a, s)), axis=-1)


def _rotary_neighbours(m: Model, x: str, c: str, s: str, z: dict[str, int]) -> str:
    a, b = m.split(m("Reshape", x, m.axes(z["B"], z["L"], z["H"], z["D"] // 2, 2)))
    c, s = m("Unsqueeze", c, m.axes(1, 3)), m("Unsqueeze", s, m.axes(1, 3))
    first = m("Sub", m("Mul", a, c), m("Mul", b, s))
    turned = m("Concat", first, m("Add", m("Mul", b, c), m("Mul", a, s)), axis=-1)
    return m("Reshape", turned, m.axes(z["B"], z["L"], z["H"], z["D"]))


def _masked(m: Model, x: str, mask: str) -> str:
    return m("Softmax", m("Where", mask, x, m.number(-inf)), axis=-1)


def _transposed(m: Model, x: str, k: str, z: dict[str, int]) -> str:
    return m("ConvTranspose", x, k, output_padding=[z["OP"]] * 2, **_window(z))


def _window(z: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"kernel_shape": [z["K"]] * 2, "strides": [z["S"]] * 2, "pads": [z["P"]] * 4}
    return {**found, "dilations": [z["DIL"]] * 2} if "DIL" in z else found


def _mean_pool(m: Model, x: str, z: dict[str, int], ceil_mode: int = 0) -> str:
    return m("AveragePool", x, count_include_pad=1, ceil_mode=ceil_mode, **_window(z))


def _dot(m: Model, x: str, y: str) -> str:
    columns = m("MatMul", m("Unsqueeze", x, m.axes(1)), m("Unsqueeze", y, m.axes(2)))
    return m("Squeeze", columns, m.axes(1, 2))


_OF_ONE_NODE = {
    **{"add": "Add", "mul": "Mul", "relu": "Relu", "gelu": "Gelu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp"},
    **{"log": "Log", "copy": "Identity", "gemv": "MatMul", "matmul": "MatMul"},
    **dict.fromkeys(("bmm", "bmm_broadcast_a", "bmm_broadcast_b"), "MatMul"),
}
"""Operators that take the inputs of a kernel as they are."""


def _writer(kernel: str, z: dict[str, int]) -> Writer:
    """The writer of a kernel: a function of the model and the inputs."""
    if kernel in _OF_ONE_NODE:
        return lambda m, *inputs: m(_OF_ONE_NODE[kernel], *inputs)
    writers: dict[str, Writer] = {
        "silu": _silu,
        "relu_ffn": lambda m, x, b: m("Relu", m("Add", x, _channels(m, b))),
        "bias_gelu": lambda m, x, b: m("Gelu", m("Add", x, b)),
        "reducemean": lambda m, x: m("ReduceMean", x, m.axes(1), keepdims=0),
        "reducesum": lambda m, x: m("ReduceSum", x, m.axes(1), keepdims=0),
        "reducemax": lambda m, x: m("ReduceMax", x, m.axes(1), keepdims=0),
        "colmean": lambda m, x: m("ReduceMean", x, m.axes(0), keepdims=0),
        "colsum": lambda m, x: m("ReduceSum", x, m.axes(0), keepdims=0),
        "colmax": lambda m, x: m("ReduceMax", x, m.axes(0), keepdims=0),
        "cumsum": lambda m, x: m("CumSum", x, m.axes(1)),
        "dot": _dot,
        "gemv_t": lambda m, a, x: m("MatMul", x, a),
        "axpy": lambda m, a, x, y: m("Add", m("Mul", a, x), y),
        "batchnorm_folded": lambda m, x, g, b: m("Add", m("Mul", x, g), b),
        "fill": lambda m, a: m("Expand", a, m.axes(z["R"], z["C"])),
        "softmax": lambda m, x: m("Softmax", x, axis=-1),
        "log_softmax": lambda m, x: m("LogSoftmax", x, axis=-1),
        "masked_softmax": _masked,
        "causal_softmax": lambda m, x: _masked(m, x, m.triangle(z["L"])),
        "layernorm": _layer,
        "residual_layernorm": lambda m, x, r, g, b: _layer(m, m("Add", x, r), g, b),
        "rmsnorm": lambda m, x, w: m("RMSNormalization", x, w, axis=-1, epsilon=EPSILON),
        "batchnorm": _batch,
        "groupnorm": lambda m, x, g, b: m("GroupNormalization", x, g, b, num_groups=z["G"], epsilon=EPSILON),
        "instancenorm": lambda m, x, g, b: m("InstanceNormalization", x, g, b, epsilon=EPSILON),
        "argmax": lambda m, x: m("ArgMax", x, axis=1, keepdims=0),
        "argmin": lambda m, x: m("ArgMin", x, axis=1, keepdims=0),
        "matmul_nt": lambda m, a, b: m("Gemm", a, b, transB=1),
        "matmul_tn": lambda m, a, b: m("Gemm", a, b, transA=1),
        "matmul_tt": lambda m, a, b: m("Gemm", a, b, transA=1, transB=1),
        "swiglu": lambda m, x, w, v: m("Mul", _silu(m, m("MatMul", x, w)), m("MatMul", x, v)),
        "attention": lambda m, q, k, v: _attention(m, q, k, v, z["D"]),
        "dequant_matmul": lambda m, x, w, s: m("MatMul", x, m("DequantizeLinear", w, s, axis=1)),
        "conv": lambda m, x, k: m("Conv", x, k, **_window(z)),
        "depthwise_conv": lambda m, x, k: m("Conv", x, m("Unsqueeze", k, m.axes(1)), group=z["C"], **_window(z)),
        "grouped_conv": lambda m, x, k: m("Conv", x, k, group=z["G"], **_window(z)),
        "conv_transpose": lambda m, x, k: _transposed(m, x, k, z),
        "maxpool": lambda m, x: m("MaxPool", x, **_window(z)),
        "maxpool_ceil": lambda m, x: m("MaxPool", x, ceil_mode=1, **_window(z)),
        "avgpool": lambda m, x: _mean_pool(m, x, z),
        "avgpool_ceil": lambda m, x: _mean_pool(m, x, z, 1),
        "sumpool": lambda m, x: m("Mul", _mean_pool(m, x, z), m.number(z["K"] ** 2)),
        "transpose": lambda m, x: m("Transpose", x, perm=[1, 0]),
        "cross_entropy": _entropy,
        "rotary": _rotary,
        "rotary_interleaved": lambda m, x, c, s: _rotary_neighbours(m, x, c, s, z),
    }
    return writers[kernel]


class _Built:
    """A model; `bind` makes its session for the first arrays, whose types and shapes all others must have."""

    def __init__(self, workload: Workload, variant: str, threads: int) -> None:
        self._workload = workload
        self._fresh = variant == "fresh"
        self._spinning = "no spinning" not in variant
        self._threads = threads
        self._session: Any = None

    def bind(self, arrays: Sequence[NDArray[Any]]) -> Fresh | Into:
        """A call on arrays."""
        if any(array.dtype.itemsize == 2 for array in arrays):
            raise UsageError("ONNX Runtime is compared on 32 and 64 bits")
        if self._session is None:
            self._session = self._start(arrays)
        session = self._session
        if self._fresh:
            given = {f"a{number}": array for number, array in enumerate(arrays[:-1])}
            return Fresh(lambda: session.run(None, given)[0], [], arrays[-1])
        binding = session.io_binding()
        for number, array in enumerate(arrays):
            place = binding.bind_output if number == len(arrays) - 1 else binding.bind_input
            place(f"a{number}", "cpu", 0, array.dtype, list(array.shape), array.ctypes.data)
        return Into(lambda: session.run_with_iobinding(binding))

    def _start(self, arrays: Sequence[NDArray[Any]]) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if not self._spinning:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with unbound():
            return onnxruntime.InferenceSession(
                _model(self._workload, arrays), options, providers=["CPUExecutionProvider"]
            )


def build(workload: Workload, variant: str, threads: int) -> _Built:
    """A model with its own session, as sessions set if threads spin."""
    return _Built(workload, variant, threads)


def _model(workload: Workload, arrays: Sequence[NDArray[Any]]) -> bytes:
    kinds = [onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
    values = [
        onnx.helper.make_tensor_value_info(f"a{number}", kind, list(array.shape))
        for number, (array, kind) in enumerate(zip(arrays, kinds, strict=True))
    ]
    names = [value.name for value in values]
    model = Model(arrays[0].dtype)
    result = _writer(workload.kernel, workload.sizes)(model, *names[:-1])
    (last,) = (node for node in model.nodes if result in node.output)
    last.output[0] = names[-1]
    graph = onnx.helper.make_graph(model.nodes, workload.kernel, values[:-1], values[-1:], model.constants)
    built = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=10)
    return built.SerializeToString()
