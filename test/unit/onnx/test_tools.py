"""`pdojo-run` and `pdojo-tune` with ONNX models."""

from __future__ import annotations

from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from pdojo_tools.run import main as run
from pdojo_tools.tune import main as tune

from pdojo.errors import UsageError

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


def written(folder: Path, text: str) -> str:
    """The path of a model in ONNX's text."""
    path = folder / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString())
    return str(path)


def test_shapes_of_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PaddlePaddle writes -1 for an extent that is unknown."""
    path = written(tmp_path, "m (float[-1, 3, -1, w] x, float[w] z) => (float[a, b, c, d] y) { y = Add (x, z) }")
    assert run([path, "--no-time", "--shape", "x=2x3x5x7"]) == 0
    assert "right: agrees with onnx.reference" in capsys.readouterr().out
    assert run([path, "--no-time", "--shape", "w=4"]) == 0
    assert run([path, "--no-time"]) == 0
    capsys.readouterr()
    assert run([path, "--no-time", "--shape", "x=2x3x5x7,z=8"]) == 2
    assert "--shape makes extent 'w' both 7 and 8" in capsys.readouterr().err


def test_inputs_without_a_declared_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "m (float[] x) => (float[] y) { y = Relu (x) }")
    assert run([path, "--no-time"]) == 2
    assert "input 'x' has no declared shape; give it one, as in --shape x=1x3x224x224" in capsys.readouterr().err
    assert run([path, "--no-time", "--shape", "x=999999999x999999999"]) == 2
    assert "there is no memory for input 'x' of shape 999999999x999999999" in capsys.readouterr().err
    assert run([path, "--no-time", "--shape", "x=2x3"]) == 0
    assert "1 calls of 1 kernels" in capsys.readouterr().out


def test_models_without_kernels_are_not_called_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (
        "m (float[2, 3] x) => (float[3, 2] y) { s = Constant <value = int64[2] {3, 2}> () y = Reshape (x, s) }",
        "m (bool[3] c) => (float[n] y) { t = Constant <value = float[3] {0, 1, 2}> () y = Compress (t, c) }",
    ):
        path = written(tmp_path, text)
        assert run([path]) == 0
        printed = capsys.readouterr().out
        assert "0 calls of 0 kernels" in printed
        assert "no kernels, and nothing to check or time" in printed
        assert "right" not in printed
        assert "pdojo median" not in printed
        assert ("step: node 'y' (Compress); no kernel takes its operand 'c'" in printed) == ("Compress" in text)
        assert tune([path]) == 2
        assert "no kernels" in capsys.readouterr().err


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


def test_kernels_for_ranges(model: str, tmp_path: Path) -> None:
    from pdojo_tools.onnx_models import kernels_of

    ((title, kernel),) = kernels_of(model, "batch=2..28/4")
    assert title == "small:0:matmul_relu"
    assert [*kernel.known_sizes()["BATCH"].values] == [4, 8, 12, 16, 20, 24, 28]
    ((_, same),), ((_, one),) = kernels_of(model, "x=2..9x16"), kernels_of(model, "batch=5..5")
    assert ([*same.known_sizes()], [*one.known_sizes()]) == (["BATCH"], [])
    path = written(tmp_path, "m (float[-1, k] x, float[-1, k] z) => (float[a, b] y) { y = Concat <axis = 0> (x, z) }")
    ((_, joined),) = kernels_of(path, "x=1..8x3..4,z=1..8x3..4")
    assert [*joined.known_sizes()] == ["N0", "K", "N2"], "unnamed extents have sizes of their own"
    path = written(tmp_path, "m (float[n, 4] x, int64[r] s) => (float[a, b] y) { r = Reshape (x, s) y = Relu (r) }")
    with pytest.raises(UsageError, match=r"node 'r' \(Reshape\) needs the value of input 's', whose extents are"):
        kernels_of(path, "n=2..8,r=1..2")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("n=1..8", "whether N <= 4 depends on the size N, from 1 to 8; choose narrower ranges, or numbers"),
        ("n=9..2", "the range 9..2 has no values"),
        ("n=0..0", "the range 0..0 has no values"),
        ("n=0..8", "the range 0..8 begins at 0; the sizes of a model are at least 1"),
        ("n=1..8/3", "'1..8/3' ends at 8, which is no multiple of 3"),
        ("n=1..8,x=1..9x2", "--shape makes extent 'n' both 1..8 and 1..9"),
        ("x=1..8x1..2", "input 'x' is nx2: axis 1 has 2 elements, not 1..2"),
        ("n=..8", "'n=..8' is no size of a model; write NAME=NUMBER"),
    ],
)
def test_wrong_ranges_are_refused(shape: str, message: str, tmp_path: Path) -> None:
    from pdojo_tools.onnx_models import kernels_of

    text = "m (float[n, 2] x) => (float[a, 2] y) { %s y = Slice (x, s, e, s) }"
    constants = "s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {4}> ()"
    with pytest.raises(UsageError) as error:
        kernels_of(written(tmp_path, text % constants), shape)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--shape", "length=4"],
            "model 'small' has no extent or input 'length'; its unknown extents are batch, its inputs are x, w",
        ),
        (
            ["--shape", "4x16"],
            "'4x16' is no size of a model; write NAME=NUMBER or INPUT=AxBxC, as in --shape batch=4,x=1x3x48x192",
        ),
        (["--shape", "x=16"], "input 'x' has 2 dimensions, batchx16, and not 16"),
        (["--shape", "x=4x17"], "input 'x' is batchx16: axis 1 has 16 elements, not 17"),
        (["--shape", "batch=2,x=4x16"], "--shape makes extent 'batch' both 2 and 4"),
        (["--shape", "batch=2,batch=2"], "--shape gives 'batch' twice"),
        (["--shape", "batch=2..4"], "--shape gives input 'x' the range 2..4; a model runs at numbers"),
        (["--shape", "batch=2x2"], "model 'small' has no extent or input 'batch'; "),
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
