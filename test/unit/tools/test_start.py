"""The tools start quickly: what is heavy is imported only where it is needed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOOLS = sorted(tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"])
HEAVY = ("numpy", "islpy", "llvmlite", "rich", "textual", "torch")
ENGINE = ("xdsl.ir", "pdojo.dialect.functions", "pdojo.transforms.game", "sqlite3", "shtab", *HEAVY)
"""Modules that no command line needs in order to be declared and refused."""
PROGRAM = """
import sys
from pdojo_tools import start
sys.argv[0] = {tool!r}
try:
    code = getattr(start, {name!r})()
except SystemExit as ended:
    code = ended.code
heavy = [name for name in {heavy!r} if name in sys.modules]
assert not heavy, heavy
sys.exit(code)
"""
KERNEL = "kernel f(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = exp(x[{0}])\n"


def start(tool: str, *arguments: str, heavy: tuple[str, ...] = HEAVY) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(tool=tool, name=tool.removeprefix("pdojo-"), heavy=heavy)
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, input=KERNEL, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "code"), [(("--help",), 0), (("--version",), 0), (("--no-such-option",), 2), (("--threads", "x"), 2)]
)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_command_line_loads_no_engine(tool: str, arguments: tuple[str, ...], code: int) -> None:
    done = start(tool, *arguments, heavy=ENGINE)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("pdojo-db", ("show", "--only", "x", "y")),
        ("pdojo-machine", ("calibrate", "--threads", "0")),
        ("pdojo-opt", ("--at", "t:0")),
        ("pdojo-play", ("-",)),
        ("pdojo-run", ("softmax", "--no-check", "--no-time")),
        ("pdojo-train", ("agent", "softmax", "-o", "f", "--agent", "target=none")),
        ("pdojo-tune", ("softmax", "--search", "anneal,none")),
        ("pdojo-tune", ("softmax", "--agent", "encoder=structure,widht=3")),
        ("pdojo-tune", ("softmax", "--search", "anneal", "--budget", "0")),
    ],
)
def test_a_mistake_loads_no_engine(tool: str, arguments: tuple[str, ...]) -> None:
    done = start(tool, *arguments, heavy=ENGINE)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")


def test_a_wrong_specification_loads_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('name = "small"\nnmae = "x"\n')
    for file in (path, tmp_path / "none.toml"):
        compilers = ("llvmlite", "islpy", "rich", "torch", "pdojo.library.build", "pdojo.transforms.game")
        done = start("pdojo-lib", "build", str(file), "-o", "dist", heavy=compilers)
        assert done.returncode == 2, done.stderr
        assert str(file) in done.stderr


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("pdojo-db", ("show", "nothing", "--database", "none.sqlite")),
        ("pdojo-lib", ("verify", ".")),
        ("pdojo-machine", ("show", "nothing")),
        ("pdojo-opt", ("nothing",)),
        ("pdojo-play", ("nothing",)),
        ("pdojo-run", ("nothing",)),
        ("pdojo-snitch", ("nothing",)),
        ("pdojo-train", ("agent", "nothing", "-o", "agent")),
        ("pdojo-tune", ("nothing", "--no-calibrate")),
    ],
)
def test_loading_shows_itself(tool: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    program = f"""
import sys
from pdojo_tools import phases, start
phases.SILENT = phases.AGAIN = 0.01
sys.exit(start.start({tool.removeprefix("pdojo-")!r}))
"""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("loading ...\n"), done.stderr
    assert done.returncode in (1, 2)
    assert done.stdout == ""


def test_a_build_loads_no_backend_of_devices() -> None:
    """Few libraries have programs for devices."""
    code = """
import sys
import pdojo_tools.library.making
heavy = [name for name in ("pdojo.backends.snitch", "pdojo.backends.gpu.program") if name in sys.modules]
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lists_load_no_engine() -> None:
    """A list of machines reads no machine, a list of kernels parses none."""
    for tool, options in (
        ("pdojo-opt", ("--list-machines",)),
        ("pdojo-machine", ("list",)),
        ("pdojo-machine", ("list", "--json")),
        ("pdojo-tune", ("--list-kernels",)),
        ("pdojo-tune", ("--list-kernels", "--json")),
    ):
        done = start(tool, *options, heavy=ENGINE)
        assert done.returncode == 0, done.stderr


def test_completion_loads_nothing_heavy() -> None:
    """A shell asks for it whenever it starts."""
    done = start("pdojo-opt", "--completion", "bash")
    assert done.returncode == 0, done.stderr


def test_reading_and_printing_imports_nothing_heavy() -> None:
    for target in ("mlir", "notation", "generic", "dot"):
        done = start("pdojo-opt", "-", "-t", target, heavy=("pdojo.dialect.flow.program", *HEAVY))
        assert done.returncode == 0, done.stderr


def test_registration_imports_nothing_heavy() -> None:
    done = start("pdojo-opt", "-", "-p", "canonicalize,convert-pdojo-to-loops")
    assert done.returncode == 0, done.stderr


def test_a_move_imports_nothing_heavy() -> None:
    done = start("pdojo-opt", "-", "--machine=x86-64-avx2", "--apply=tile_scope@y:0{size=4}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "own"),
    [
        ("llvm", {"common", "llvm"}),
        ("snitch-asm", {"common", "snitch"}),
        ("c", {"c", "common"}),
        ("cuda", {"c", "common", "gpu"}),
        ("hip", {"c", "common", "gpu"}),
        ("fibers", {"c", "common", "gpu"}),
    ],
)
def test_a_target_loads_no_other_backend(target: str, own: set[str]) -> None:
    mapped = (":g", ":b") if "gpu" in own else ("", "")
    nest = "4{} 8{} y[{{0}},{{1}}] = erf(x[{{0}},{{1}}])".format(*mapped)
    text = f"kernel f(x) -> (y)\nx f32 [4, 8] heap\ny f32 [4, 8] heap\n\n{nest}\n"
    code = """
import sys
from pdojo_tools import start
assert start.start("opt") == 0
print("LOADED", *{name.split(".")[2] for name in sys.modules if name.startswith("pdojo.backends.")})
"""
    command = [sys.executable, "-c", code, "-", "-t", target]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].partition("LOADED ")[2].split())
    assert loaded == own
