"""Every script of `examples` runs, and says what it should; the table of examples has all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = {
    "numpy_operator.py": ((), None, "the largest difference from NumPy is below 1e-4"),
    "torch_model.py": ((), "torch", "the largest difference from PyTorch is below 1e-5"),
    "small_model.py": (("digits.onnx",), "onnx", ""),
    "jax/to_linalg.py": ((), "jax", "linalg"),
    "xdsl_pass.py": ((), None, "scf.for"),
    "embedding/run.py": ((), None, "the largest difference is below 1e-6"),
    "own_machine.py": ((), None, "moves for my-board"),
    "agents/random_agent.py": (("softmax:8x32", "--episodes", "1", "--horizon", "3"), "gymnasium", "best: "),
    "agents/bandit.py": (("softmax:8x32", "--episodes", "1", "--horizon", "3"), "gymnasium", "best: "),
}
"""Arguments, the package that is needed beside pdojo's own, and a part of the output."""
MODULES = {"own_move/rotating_moves.py", "library/numpy_user.py", "models/models.py"}
"""Programs that need something installed first; other tests run them."""
KERNEL = "kernel k(x) -> (y)\nx f32 [6] heap\ny f32 [6] heap\n\n6 y[{0}] = exp(x[{0}])\n"
SUM = "kernel k(x) -> (y)\nx f32 [6] heap\ny f32 [1] heap\n\ny[0] = 0\n6 y[0] = y[0] + x[{0}]\n"


def test_all_scripts_are_run() -> None:
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py")}
    assert there == {*SCRIPTS, *MODULES}


def test_the_table_links_all_examples() -> None:
    text = (EXAMPLES / "README.md").read_text()
    there = {path.relative_to(EXAMPLES).parts[0] for path in EXAMPLES.rglob("*") if path.is_file()}
    unlinked = {name for name in there - {"README.md", "softmax.pdojo", "__pycache__"} if f"({name}" not in text}
    assert not unlinked


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, tmp_path: Path) -> None:
    arguments, package, said = SCRIPTS[script]
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package with the move was installed into, from a copy: building writes into its source."""
    folder = tmp_path_factory.mktemp("own_move")
    shutil.copytree(EXAMPLES / "own_move", folder / "source")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", folder / "source"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


def opt(site: Path, *arguments: str, text: str = KERNEL) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pdojo_tools.opt", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)


def test_the_move_and_its_inverse(installed: Path) -> None:
    assert "rotate_scope@y:0{by=3}\n" in opt(installed, "--list-moves").stdout
    once = opt(installed, "-t", "notation", "--verify", "--apply=rotate_scope@y:0{by=2}")
    assert once.returncode == 0, once.stderr
    assert once.stdout != KERNEL
    assert opt(installed, "-t", "notation", "--apply=rotate_scope@y:0{by=2},rotate_scope@y:0{by=4}").stdout == KERNEL
    undone = opt(installed, "-t", "notation", "--apply=rotate_scope@y:0{by=2}", "--undo=-1")
    assert undone.stdout == KERNEL


def test_the_move_is_refused(installed: Path) -> None:
    beyond = opt(installed, "--apply=rotate_scope@y:0{by=6}")
    assert (beyond.returncode, "'by' is from 1 to 5, not 6" in beyond.stderr) == (1, True)
    ordered = opt(installed, "--apply=rotate_scope@y#1:0{by=2}", text=SUM)
    assert "iterations depend on each other" in ordered.stderr
