"""Compiling with the expert pass alone loads no search, no database and no agent, whatever the door."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from loaded_library import require_compiler

FORBIDDEN = ("pdojo.search", "pdojo.perfllm")
COUNT = f"""
import sys
loaded = sorted(name for name in sys.modules if name.startswith({FORBIDDEN}))
print("loaded", *loaded)
"""
ONNX = """
import numpy as np
from onnx import TensorProto, helper
from pdojo import onnx
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", [x], [y])
path = "model.onnx"
made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
open(path, "wb").write(made.SerializeToString())
model = onnx.load(path)
assert abs(model.run(np.ones((4, 8), np.float32)).sum() - 4) < 1e-5
"""
TORCH = """
import torch
made = torch.compile(lambda x: torch.softmax(x, 1), backend="pdojo")
assert abs(float(made(torch.ones(4, 8)).sum()) - 4) < 1e-5
"""
LIBRARY = """
from pathlib import Path
from pdojo_tools import lib
operator = '[[operators]]\\nkernel = "copy"\\nshapes = ["8x32"]\\n'
Path("spec.toml").write_text('name = "small"\\n[tuning]\\nmeasure = false\\n' + operator)
assert lib.main(["build", "spec.toml", "-o", "made"]) == 0
"""
TUNE = """
from pdojo_tools import tune
assert tune.main(["softmax:4x8", "--no-measure", "-o", "a.trace", "--emit", "a.pdojo"]) == 0
assert tune.main(["softmax:4x8", "--why"]) == 0
"""


def loaded_by(code: str, folder: Path) -> list[str]:
    """The modules of search and agent after the code has run, in a process without a database or a cache."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    environment.pop("PDOJO_DATABASE", None)
    command = [sys.executable, "-c", code + COUNT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("loaded")
    return last.split()[1:]


def test_a_search_is_noticed(tmp_path: Path) -> None:
    """The count sees what it must: an import of a search."""
    assert "pdojo.search.engine.search" in loaded_by("import pdojo.search.engine.search\n", tmp_path)


def test_tune_without_measuring(tmp_path: Path) -> None:
    assert loaded_by(TUNE, tmp_path) == []
    assert (tmp_path / "a.trace").exists()
    assert (tmp_path / "a.pdojo").exists()


@pytest.mark.skipif(find_spec("onnx") is None, reason="needs the package onnx")
def test_onnx(tmp_path: Path) -> None:
    assert loaded_by(ONNX, tmp_path) == []


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_torch(tmp_path: Path) -> None:
    assert loaded_by(TORCH, tmp_path) == []


def test_a_library_of_the_pass(tmp_path: Path) -> None:
    require_compiler()
    assert loaded_by(LIBRARY, tmp_path) == []


@pytest.mark.parametrize("name", ["pdojo.passes.scheduled_kernel", "pdojo.model.compiled", "pdojo.library.build"])
def test_what_compiles_imports_no_search(name: str, tmp_path: Path) -> None:
    """Also without PyTorch, ONNX and a C compiler."""
    assert loaded_by(f"import {name}\n", tmp_path) == []
