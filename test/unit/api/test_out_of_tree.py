"""Another package's machine, instruction and move: installed beside pdojo, used like pdojo's own; and broken ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PACKAGE = Path(__file__).parents[2] / "out_of_tree"
SQUARES = """kernel squares(x) -> (y)
x f32 [8] heap
y f32 [8] heap

8 y[{0}] = 1
2 4 y[{0}*4+{1}] += x[{0}*4+{1}] * x[{0}*4+{1}]
"""
TWICE = "kernel twice(x) -> (x)\nx f32 [8] heap\n\n8 x[{0}] = x[{0}] + x[{0}]\n"
LAST = "kernel last(x) -> (y)\nx f32 [8] heap\ny f32 [1] heap\n\n8 y[0] = x[{0}]\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed into, from a copy: building writes into its source."""
    folder = tmp_path_factory.mktemp("acme")
    shutil.copytree(PACKAGE, folder / "source")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", folder / "source"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


def run(folder: Path, *arguments: str, tool: str = "opt", text: str = SQUARES) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"pdojo_tools.{tool}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)


def test_machine_and_move_are_listed(installed: Path) -> None:
    listed = run(installed, "--list-machines").stdout
    assert "acme-1         Acme One, with an instruction that adds squares\n" in listed
    moves = run(installed, "--machine=acme-1", "--list-moves").stdout.splitlines()
    assert "reverse_scope@y#0:0" in moves
    assert "tensorize@y:1{intrinsic=sqadd}" in moves
    refused = run(installed, "--machine=acme-1", "--list-moves", "--refused", text=LAST)
    assert "reverse_scope@y:0 is refused: iterations depend on each other\n  witness: write of y[0]" in refused.stdout


def test_move_and_inverse(installed: Path) -> None:
    once = run(installed, "-t", "notation", "--apply=reverse_scope@y#0:0")
    assert "8 y[-{0}+7] = 1\n" in once.stdout
    assert run(installed, "-t", "notation", "--apply=reverse_scope@y#0:0,reverse_scope@y#0:0").stdout == SQUARES
    assert run(installed, "-t", "notation", "-p", 'pdojo-reverse-scope{at="y#0:0"}').stdout == once.stdout
    assert run(installed, "-t", "notation", "--verify", "--apply=reverse_scope@y#0:0").returncode == 0


def test_instruction_runs(installed: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "squares.pdojo"
    done = run(installed, "-t", "notation", "--machine=acme-1", "--apply=tensorize@y:1{intrinsic=sqadd}")
    assert "4:m(sqadd)" in done.stdout, done.stderr
    kernel.write_text(done.stdout)
    checked = run(installed, str(kernel), "--no-time", tool="run")
    assert "right: agrees with the interpreter" in checked.stdout, checked.stderr


def test_a_backend_of_another_package(installed: Path, tmp_path: Path) -> None:
    """Its machine is run, tuned, searched for and listed by the tools that nobody told of it."""
    kernel, trace, report = tmp_path / "squares.pdojo", tmp_path / "a.trace", tmp_path / "a.html"
    kernel.write_text(SQUARES)
    ran = run(installed, str(kernel), "--machine=acme-2", tool="run")
    assert "right: agrees with the interpreter" in ran.stdout, ran.stderr
    assert "16 cycles" in ran.stdout
    search = ["--search=descent", "--agent=tries=5", "--neighbourhood=edges", f"--database={tmp_path / 'db'}"]
    wanted = [*search, "--pass=naive", "-o", str(trace), "--report", str(report)]
    tuned = run(installed, str(kernel), "--machine=acme-2", *wanted, tool="tune")
    assert tuned.returncode == 0, tuned.stderr
    assert trace.read_text().startswith("# pdojo trace")
    assert "<td>cycles</td>" in report.read_text()
    assert "acme-asm: " in report.read_text()
    assert "descent, edges, from pass" in report.read_text()
    refused = run(installed, str(kernel), "--machine=acme-2", "--pass=greedy", tool="tune")
    assert "unknown pass 'greedy'; known are naive" in refused.stderr
    unknown = run(installed, str(kernel), "--machine=acme-2", "--search=sample", "--evaluator=runtime", tool="tune")
    assert "--evaluator runtime knows nothing about programs for acme-2; take cycles" in unknown.stderr


def test_a_strategy_of_another_package(installed: Path) -> None:
    """Its options are checked by itself; the test of the backend searches by it."""
    wanted = ["softmax:4x8", "--search=descent"]
    wrong = run(installed, *wanted, "--agent=steps=3", tool="tune")
    assert "error: the strategy 'descent' takes tries=N, not 'steps=3'" in wrong.stderr
    missing = run(Path("/nonexistent"), *wanted, tool="tune")
    assert "unknown strategy 'descent'; known: sample, anneal" in missing.stderr


def test_a_backend_of_another_package_runs_on_given_arrays(installed: Path, tmp_path: Path) -> None:
    kernel, saved = tmp_path / "twice.pdojo", tmp_path / "arrays.npz"
    kernel.write_text(TWICE)
    ran = run(installed, str(kernel), "--machine=acme-2", "--no-time", f"--output={saved}", tool="run")
    assert ran.returncode == 0, ran.stderr
    arrays = np.load(saved)
    assert sorted(arrays) == ["x", "x_before"]
    np.testing.assert_array_equal(arrays["x"], 2 * arrays["x_before"])
    code = (
        f"import pdojo, numpy as np\n"
        f"x = np.ones(8, np.float32)\n"
        f"pdojo.run(pdojo.load({str(kernel)!r}), x, machine='acme-2')\n"
        f"print(x.sum())"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    called = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert called.stdout == "16.0\n", called.stderr


def test_a_backend_that_nobody_has() -> None:
    machine = (PACKAGE / "pdojo_acme" / "acme-2.toml").as_posix()
    missing = run(Path("/nonexistent"), "-", f"--machine={machine}", tool="run")
    said = "error: machine 'acme-2' names the backend 'acme'; known are cuda, hip, llvm, snitch\n"
    assert missing.stderr.endswith(said)  # after a line that the tool is loaded, if that takes long


def test_without_it() -> None:
    missing = run(Path("/nonexistent"), "--apply=reverse_scope@y#0:0")
    assert "error: unknown move 'reverse_scope'" in missing.stderr
    assert "unknown machine 'acme-1'" in run(Path("/nonexistent"), "--machine=acme-1").stderr


def distribution(folder: Path, name: str, group: str, points: str, code: str = "") -> Path:
    """A package as it lies on the disk when it is installed."""
    metadata = folder / f"{name}-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (metadata / "entry_points.txt").write_text(f"[pdojo.{group}]\n{points}\n")
    (folder / f"{name}.py").write_text(code)
    return folder


TILE = "from pdojo.transforms.structure.tiling import TileScope as Move"
TOY = "from pdojo.dialect.machines.registry import machine\nM = machine('toy')"
FUNCTION = """
from dataclasses import replace
from pdojo.dialect.machines.registry import machine

def M():
    return replace(machine("toy"), name="f", threads=3)
"""
BROKEN = {
    "no module": (
        "transformations",
        "f = nothing:Move",
        "",
        "the move 'f' of the distribution 'bad 2.0' (nothing:Move) cannot be loaded: Mod",
    ),
    "no attribute": ("transformations", "f = bad:Move", "", "'bad 2.0' (bad:Move) cannot be loaded: Attr"),
    "error in it": ("transformations", "f = bad:Move", "1 / 0", "(bad:Move) cannot be loaded: ZeroDivisionError"),
    "no class": ("transformations", "f = bad:Move", "Move = 3", "is no class that derives from Transformation"),
    "other name": ("transformations", "f = bad:Move", TILE, "calls itself 'tile_scope'; the two names must be equal"),
    "name of ours": (
        "transformations",
        "unroll = bad:Move",
        "",
        "the move 'unroll' of the distribution 'bad 2.0' (bad:Move) has the name of one",
    ),
    "machine of ours": (
        "machines",
        "toy = bad:M",
        "",
        "the machine 'toy' of the distribution 'bad 2.0' (bad:M) has the name of one",
    ),
    "no machine": ("machines", "f = bad:M", "M = 3", "(bad:M) is a int; it must be a Machine, a function"),
    "no file": (
        "machines",
        "f = bad:M",
        "M = 'none.toml'",
        "cannot be loaded: cannot read the machine file 'none.toml'",
    ),
    "machine's error": (
        "machines",
        "f = bad:M",
        "def M(): 1 / 0",
        "'bad 2.0' (bad:M) cannot be loaded: ZeroDivisionError: div",
    ),
    "machine's name": ("machines", "f = bad:M", TOY, "describes 'toy'; the two names must be equal"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken(case: str, tmp_path: Path) -> None:
    group, points, code, expected = BROKEN[case]
    distribution(tmp_path, "bad", group, points, code)
    done = run(tmp_path, "--list-machines" if group == "machines" else "--list-moves")
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    if case in ("no module", "no machine"):
        # What needs no move and no machine is not disturbed.
        assert run(tmp_path, "-t", "notation").stdout == SQUARES


def test_two_of_one_name(tmp_path: Path) -> None:
    for name in ("first", "second"):
        distribution(tmp_path, name, "transformations", "f = bad:Move")
    expected = "the move 'f' of the distribution 'second 2.0' (bad:Move) has the name of another: the move 'f' of the"
    assert expected in run(tmp_path, "--list-moves").stderr


def test_a_function_may_describe_a_machine(tmp_path: Path) -> None:
    distribution(tmp_path, "good", "machines", "f = good:M", FUNCTION)
    assert run(tmp_path, "--machine=f", "-t", "notation").returncode == 0
