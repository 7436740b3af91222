"""Files that are no models, or that would read others: one clear error each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from pdojo_tools.run import main

from pdojo.errors import PdojoError, UsageError
from pdojo.onnx import load
from qa.fuzz_inputs import Found, drawn_model, fuzz
from qa.input_fuzz.models import damaged_model, models

WEIGHTS = np.arange(16, dtype=np.float32)


def model_with(location: str, offset: int | None = None, length: int | None = None, *, shaped: bool = True) -> bytes:
    """A model that adds weights of external data; its output has a declared shape if it is `shaped`."""
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    set_external_data(tensor, location, offset, length)
    tensor.ClearField("raw_data")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16]) for name in "xy"]
    if not shaped:
        info[1] = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("shaped", [True, False])
def test_external_data_in_the_folder_is_read(tmp_path: Path, shaped: bool) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(4) + WEIGHTS.tobytes())
    (tmp_path / "m.onnx").write_bytes(model_with("weights.bin", offset=4, length=64, shaped=shaped))
    assert load(tmp_path / "m.onnx").run(np.ones(16, np.float32)).tolist() == (WEIGHTS + 1).tolist()


def test_what_is_no_file_is_refused() -> None:
    for source in (None, 3, bytearray(b"onnx")):
        with pytest.raises(UsageError, match="a model is a path, the bytes of a file or a ModelProto, not"):
            load(source)  # pyright: ignore[reportArgumentType]


def _above(folder: Path) -> str:
    (folder / "secret").write_bytes(WEIGHTS.tobytes())
    return "../secret"


def _absolute(folder: Path) -> str:
    (folder / "secret").write_bytes(WEIGHTS.tobytes())
    return str(folder / "secret")


def _link(folder: Path) -> str:
    (folder / "secret").write_bytes(WEIGHTS.tobytes())
    (folder / "model" / "link").symlink_to(folder / "secret")
    return "link"


def _linked_folder(folder: Path) -> str:
    (folder / "other").mkdir()
    (folder / "other" / "secret").write_bytes(WEIGHTS.tobytes())
    (folder / "model" / "inner").symlink_to(folder / "other")
    return "inner/secret"


def _hard_link(folder: Path) -> str:
    (folder / "secret").write_bytes(WEIGHTS.tobytes())
    (folder / "model" / "hard").hardlink_to(folder / "secret")
    return "hard"


def _device(folder: Path) -> str:
    return "/dev/zero"


def _missing(folder: Path) -> str:
    return "nothing"


def _short(folder: Path) -> str:
    (folder / "model" / "short").write_bytes(b"1234")
    return "short"


OUTSIDE = (_above, _absolute, _link, _linked_folder, _hard_link, _device, _missing, _short)


@pytest.mark.parametrize("shaped", [True, False])
@pytest.mark.parametrize("place", OUTSIDE, ids=[place.__name__ for place in OUTSIDE])
def test_external_data_elsewhere_is_refused(
    place: Callable[[Path], str], shaped: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "m.onnx"
    path.write_bytes(model_with(place(tmp_path), shaped=shaped))
    with pytest.raises(UsageError):
        load(path).run(np.ones(16, np.float32))
    assert main([str(path)]) == 2
    written = capsys.readouterr().err
    assert written.startswith("error: ")
    assert "Traceback" not in written


def test_external_data_needs_a_file() -> None:
    with pytest.raises(UsageError):
        load(model_with("weights.bin"))


def test_offsets_beyond_the_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS.tobytes())
    for offset, length in ((1 << 40, None), (None, 1 << 40), (60, 64)):
        (tmp_path / "m.onnx").write_bytes(model_with("weights.bin", offset, length))
        with pytest.raises(UsageError):
            load(tmp_path / "m.onnx")


@pytest.mark.parametrize("content", [b"", b"\0", b"kernel x", b"\xff" * 100], ids=["empty", "zero", "text", "bytes"])
def test_other_files_are_refused(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert main([str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing.onnx"]) == 2
    assert capsys.readouterr().err == "error: cannot read 'nothing.onnx': No such file or directory\n"


def test_damaged_models_give_one_error_or_run() -> None:
    found = Found()
    assert list(fuzz(1, range(60), found, drawn_model)) == []
    assert found.taken["onnx"]
    assert found.refused["onnx"]


def test_texts_that_are_no_unicode_are_refused() -> None:
    node = helper.make_node("Operator", ["x"], ["y"], domain="own")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("own", 1)], ir_version=8).SerializeToString()
    with pytest.raises(UsageError, match="is not UTF-8"):
        load(data.replace(b"Operator", b"Operat\xffr"))


def test_unknown_types_of_outputs_are_refused() -> None:
    info = [helper.make_tensor_value_info(name, kind, [4]) for name, kind in (("x", TensorProto.FLOAT), ("y", 33))]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:])
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    with pytest.raises(UsageError, match="output 'y' has an unknown element type, number 33"):
        model.specialise(np.ones(4, np.float32))


def test_truncated_models_give_one_error() -> None:
    random = Random(2)
    for data in random.sample(models(), 10):
        with pytest.raises(PdojoError):
            load(data[: random.randrange(len(data) - 1)]).specialise()
    assert damaged_model(Random(3)) != damaged_model(Random(4))


def test_without_the_package_the_error_names_the_extra() -> None:
    lines = (
        "import sys",
        "sys.modules['onnx'] = None",
        "import pdojo",
        "try: pdojo.onnx",
        "except pdojo.UsageError as e: print(e)",
    )
    code = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pdojo.onnx needs the package onnx: pip install 'pdojo[onnx]'\n"
