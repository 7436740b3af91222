"""ONNX Runtime: a model of one operator, bound to the arrays, its output preallocated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError

onnxruntime: Any = import_module("onnxruntime")
onnx: Any = import_module("onnx")
"""Optional packages, which type checkers may not find."""

_OPSET = 23
_OPERATORS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "add": ("Add", {}),
    "layernorm": ("LayerNormalization", {"axis": -1, "epsilon": 1e-5}),
    "matmul": ("MatMul", {}),
    "reducemean": ("ReduceMean", {"keepdims": 0}),
    "relu": ("Relu", {}),
    "rmsnorm": ("RMSNormalization", {"axis": -1, "epsilon": 1e-5}),
    "softmax": ("Softmax", {"axis": -1}),
}


class OnnxPeer:
    """One operator on given float32 arrays, the last of which is the output."""

    def __init__(self, operator: str, arrays: Sequence[NDArray[Any]], threads: int) -> None:
        if operator not in _OPERATORS:
            known = ", ".join(sorted(_OPERATORS))
            raise UsageError(f"ONNX Runtime is not compared on '{operator}'; known: {known}")
        if any(array.dtype != np.float32 for array in arrays):
            raise UsageError("ONNX Runtime is compared on float32 arrays")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Threads inherit the processors of the thread that makes them, and an OpenMP runtime may have bound this one.
        bound = os.sched_getaffinity(0)
        os.sched_setaffinity(0, _allowed())
        try:
            model = _model(operator, arrays)
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        finally:
            os.sched_setaffinity(0, bound)
        self._binding = self._session.io_binding()
        self._arrays = list(arrays)
        for number, array in enumerate(arrays):
            bind = self._binding.bind_output if number == len(arrays) - 1 else self._binding.bind_input
            bind(f"a{number}", "cpu", 0, np.float32, list(array.shape), array.ctypes.data)

    def __call__(self) -> None:
        """Compute."""
        self._session.run_with_iobinding(self._binding)

    def finish(self) -> None:
        """The result is in the output array."""


def _allowed() -> set[int]:
    """The processors that the process was given: those of any thread that is not bound."""
    found = set(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        found |= os.sched_getaffinity(int(thread))
    return found


def _model(operator: str, arrays: Sequence[NDArray[Any]]) -> bytes:
    name, attributes = _OPERATORS[operator]
    values = [
        onnx.helper.make_tensor_value_info(f"a{number}", onnx.TensorProto.FLOAT, list(array.shape))
        for number, array in enumerate(arrays)
    ]
    inputs = [value.name for value in values[:-1]]
    constants: list[Any] = []
    if operator == "reducemean":
        constants.append(onnx.helper.make_tensor("axes", onnx.TensorProto.INT64, [1], [1]))
        inputs.append("axes")
    node = onnx.helper.make_node(name, inputs, [values[-1].name], **attributes)
    graph = onnx.helper.make_graph([node], operator, values[:-1], values[-1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=10)
    return model.SerializeToString()
