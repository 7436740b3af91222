"""`pdojo-run` and `pdojo-tune` with ONNX models."""

from __future__ import annotations

from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from pdojo_tools.run import main as run
from pdojo_tools.tune import main as tune

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[batch, 16] x, float[16, 8] w) => (float[batch, 8] y) {
  m = MatMul(x, w)
  y = Relu(m)
}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "small.onnx"
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    return str(path)


def test_a_model_is_run_and_checked(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([model, "--shape", "batch=4", "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("model 'small': 1 calls of 1 kernels, ")
    assert lines[1].startswith("right: agrees with onnx.reference; largest error ")
    assert lines[2].startswith("time: pdojo median ")


def test_models_that_the_reference_cannot_run_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pool.onnx"
    text = """<ir_version: 8, opset_import: ["" : 17]>
    pool (float[1, 2, 4] x) => (float[1, 2, 1] y) { y = GlobalLpPool (x) }"""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert run([str(path), "--no-time"]) == 1
    assert "error: ONNX's reference evaluator fails: " in capsys.readouterr().err
    assert run([str(path), "--no-check"]) == 0


def test_the_kernels_of_a_model_are_tuned(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDOJO_DATABASE", str(tmp_path / "searches.db"))
    words = [model, "--shape", "batch=4", "--no-measure", "--pass", "naive", "-o", str(tmp_path / "best.trace")]
    assert tune(words) == 0
    assert "exact oracle: the same meaning" in capsys.readouterr().out
    assert (tmp_path / "best.trace").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shape", "length=4"], "model 'small' has no extent 'length'; its unknown extents are batch"),
        (["--shape", "4x16"], "'4x16' is no size of a model; write NAME=NUMBER, as in --shape batch=4,length=128"),
        (["--trace", "x.trace"], "--trace is for kernels; "),
        (["--machine", "snitch"], "models run on this processor, and snitch is of another kind"),
    ],
)
def test_wrong_options_are_refused(
    model: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([model, *words]) == 2
    assert message in capsys.readouterr().err


def test_wrong_results_are_reported(model: str) -> None:
    from pdojo_tools import onnx_models

    from pdojo.errors import MeasurementError
    from pdojo.onnx import load

    inputs = onnx_models.random_inputs(load(model), "batch=2", 1)
    right = load(model).interpret(**inputs)
    onnx_models.check(load(model), inputs, [right])
    with pytest.raises(MeasurementError, match="output 'y' is wrong"):
        onnx_models.check(load(model), inputs, [right + 1])
