"""The comparison of whole models with ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models import main, ratio

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


def test_a_model_is_compared_in_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = onnx.numpy_helper.from_array(np.ones((16, 8), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, kind, [4, extent]) for name, extent in (("x", 16), ("y", 8)))
    graph = helper.make_graph(nodes, "small", [x], [y], [weights])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "small.onnx")
    results = tmp_path / "results.json"
    words = [str(tmp_path / "small.onnx"), "--threads", "1", "--seconds", "1", "--check", "--by-kernel"]
    assert main([*words, "-o", str(results)]) == 0
    (record,) = json.loads(results.read_text())["models"]
    assert record["model"] == "small"
    assert [name for name, _ in record["steps"]] == ["matmul", "softmax"]
    assert len(record["pdojo"]) == len(record["onnxruntime"]) >= 3
    assert f"{ratio(record):.3f}" in capsys.readouterr().out
    assert json.loads(results.read_text())["settings"]["threads"] == 1
