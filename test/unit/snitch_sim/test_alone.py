"""The simulator needs nothing else of pdojo, and the core does not need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.simulator import simulate
simulate(assemble("main:\\n li a0, 1\\n ret\\n"))
"""
COMPILING = """
import sys
from pdojo_tools.opt import main
sys.argv = ["pdojo-opt", "softmax:4x8", "-t", "llvm"]
assert main() == 0
"""
TORCH = """
import sys, torch
softmax = torch.compile(lambda x: torch.softmax(x, -1), backend="pdojo")
assert softmax(torch.zeros(4, 8))[0, 0] == 0.125
"""


def _imported(code: str) -> set[str]:
    """The folders of pdojo that code imports, and its files outside of folders."""
    command = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    return {".".join(name.split(".")[:2]) for name in names if name.startswith("pdojo.")}


def test_the_simulator_alone() -> None:
    assert _imported(PROGRAM) <= {"pdojo.snitch_sim", "pdojo.errors", "pdojo.files"}


@pytest.mark.parametrize("code", ["import sys, pdojo; pdojo.compile", COMPILING], ids=["import", "pdojo-opt"])
def test_the_core_does_not_need_it(code: str) -> None:
    found = _imported(code)
    assert "pdojo.dialect" in found
    assert "pdojo.snitch_sim" not in found


def test_models_do_not_need_it() -> None:
    pytest.importorskip("torch")
    found = _imported(TORCH)
    assert "pdojo.backends" in found
    assert "pdojo.snitch_sim" not in found
