"""Models that ONNX Runtime's quantiser writes, beside ONNX Runtime."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import ModelProto, TensorProto, helper, numpy_helper

import pdojo.onnx
from beside_runtime import Draw, by_runtime
from pdojo.onnx.operators.registry import registered

quantiser: Any = import_module("onnxruntime.quantization")


def model(nodes: list[Any], inputs: dict[str, list[Any]], constants: dict[str, Any]) -> ModelProto:
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    tensors = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    graph = helper.make_graph(nodes, "net", given, [helper.make_empty_tensor_value_info("y")], tensors)
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(draw: Draw) -> ModelProto:
    """Convolutions with a residual sum, pools, a gate, a concatenation, a linear layer and a softmax."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "w2", "b2"], ["d"], pads=[1] * 4),
        node("Add", ["d", "c"], ["e"]),
        node("LeakyRelu", ["e"], ["f"], alpha=0.1),
        node("AveragePool", ["f"], ["g"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        node("Sigmoid", ["g"], ["h"]),
        node("Mul", ["g", "h"], ["i"]),
        node("Concat", ["g", "i"], ["j"], axis=1),
        node("GlobalAveragePool", ["j"], ["k"]),
        node("Flatten", ["k"], ["l"]),
        node("Gemm", ["l", "w3", "b3"], ["m"], transB=1),
        node("Softmax", ["m"], ["y"], axis=1),
    ]
    constants = {"w1": draw.numbers(4, 3, 3, 3) * 0.3, "b1": draw.numbers(4), "b2": draw.numbers(4)}
    constants |= {"w2": draw.numbers(4, 4, 3, 3) * 0.2, "w3": draw.numbers(5, 8) * 0.3, "b3": draw.numbers(5)}
    return model(nodes, {"x": ["n", 3, 8, 8]}, {k: v.astype(np.float32) for k, v in constants.items()})


class Samples:
    """Random images for the calibration."""

    def __init__(self, draw: Draw) -> None:
        self.images = iter([{"x": draw.numbers(1, 3, 8, 8)} for _ in range(8)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self.images, None)


@pytest.mark.parametrize(
    ("activations", "weights", "each"),
    [("QUInt8", "QInt8", True), ("QInt8", "QInt8", False), ("QUInt8", "QUInt8", False)],
)
def test_quantised_operators(tmp_path: Path, activations: str, weights: str, each: bool) -> None:
    draw = Draw(5)
    (tmp_path / "net.onnx").write_bytes(images(draw).SerializeToString())
    quantiser.quantize_static(
        str(tmp_path / "net.onnx"),
        str(tmp_path / "quantised.onnx"),
        type("Reader", (Samples, quantiser.CalibrationDataReader), {})(draw),
        quant_format=quantiser.QuantFormat.QOperator,
        activation_type=getattr(quantiser.QuantType, activations),
        weight_type=getattr(quantiser.QuantType, weights),
        per_channel=each,
    )
    written = ModelProto.FromString((tmp_path / "quantised.onnx").read_bytes())
    assert sum(each.domain == "com.microsoft" for each in written.graph.node) >= 8
    x = draw.numbers(2, 3, 8, 8)
    wanted = by_runtime(written, {"x": x})[0]
    # A step of the result is 1/256.
    np.testing.assert_allclose(pdojo.onnx.load(written).interpret(x), wanted, atol=2 / 256)


@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("each", [False, True])
def test_dynamic_quantisation(tmp_path: Path, weights: str, each: bool) -> None:
    draw, size = Draw(6), 8
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["o"], hidden_size=size, direction="bidirectional"),
        helper.make_node("MatMul", ["o", "m"], ["y"]),
    ]
    constants = {"w": draw.numbers(2, 4 * size, 5), "r": draw.numbers(2, 4 * size, size) * 0.3}
    constants |= {"b": draw.numbers(2, 8 * size), "m": draw.numbers(size, 6)}
    given = {name: value.astype(np.float32) for name, value in constants.items()}
    (tmp_path / "net.onnx").write_bytes(model(nodes, {"x": [4, 1, 5]}, given).SerializeToString())
    kind = getattr(quantiser.QuantType, weights)
    paths = str(tmp_path / "net.onnx"), str(tmp_path / "quantised.onnx")
    quantiser.quantize_dynamic(*paths, weight_type=kind, per_channel=each)
    written = ModelProto.FromString((tmp_path / "quantised.onnx").read_bytes())
    assert "DynamicQuantizeLSTM" in {each.op_type for each in written.graph.node}
    x = draw.numbers(4, 1, 5)
    found, wanted = pdojo.onnx.load(written).interpret(x), by_runtime(written, {"x": x})[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_all_operators_are_in_the_page() -> None:
    text = (Path(__file__).parents[3] / "docs" / "onnx.md").read_text()
    section = text.split("## Operators of ONNX Runtime", 1)[1].split("\n## ", 1)[0]
    assert [name for domain, name in registered() if domain == "com.microsoft" and name not in section] == []
