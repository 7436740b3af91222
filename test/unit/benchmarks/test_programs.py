"""Whole programs beside others; a model of ONNX beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.contests import Contest, peer_of
from benchmarks.programs import main
from benchmarks.records import read_results

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
    words = ["onnx", str(tmp_path / "small.onnx"), "--threads", "1", "--seconds", "1", "--check", "--by-kernel"]
    assert main([*words, "-o", str(results)]) == 0
    settings, (record,) = read_results(results)
    assert record.label == str(tmp_path / "small.onnx")
    assert [name for name, _ in record.data["steps"]] == ["matmul", "softmax"]
    contest = Contest.of(record, peer_of(record))
    assert contest is not None
    assert len(contest.ratios) >= 3
    shown = capsys.readouterr().out
    assert f"{contest.ratio:.3f}" in shown
    assert "2 calls of 2 kernels" in shown
    assert settings["threads"] == 1


def test_a_file_that_is_no_model_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    assert main(["onnx", str(tmp_path / "nowhere.onnx"), "-o", str(results)]) == 1
    assert "our program has no result" in capsys.readouterr().err
    _, (record,) = read_results(results)
    assert "nowhere.onnx" in record.failures[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name what to measure: functions, models, sizes, onnx"),
        (["functions", "--check"], "--check and --by-kernel are for models of ONNX"),
        (["onnx", "-o", "results.txt"], "name the file 'results.json'"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
