"""The tools start quickly: what is heavy is imported only where it is needed."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "islpy", "llvmlite", "rich", "textual", "torch")
PROGRAM = f"""
import sys
from pdojo_tools.opt import main
code = main(sys.argv[1:])
heavy = [name for name in {HEAVY!r} if name in sys.modules]
assert not heavy, heavy
sys.exit(code)
"""


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    kernel = "kernel f(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = exp(x[{0}])\n"
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *arguments]
    return subprocess.run(command, input=kernel, capture_output=True, text=True, check=False)


def test_reading_and_printing_imports_nothing_heavy() -> None:
    for target in ("mlir", "notation", "generic", "dot"):
        done = start("-", "-t", target)
        assert done.returncode == 0, done.stderr


def test_registration_imports_nothing_heavy() -> None:
    done = start("-", "-p", "canonicalize,convert-pdojo-to-loops")
    assert done.returncode == 0, done.stderr


def test_a_move_imports_nothing_heavy() -> None:
    done = start("-", "--machine=x86-64-avx2", "--apply=tile_scope@y:0{size=4}")
    assert done.returncode == 0, done.stderr
