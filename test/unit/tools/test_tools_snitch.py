"""`pdojo-snitch` as its user sees it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pdojo_tools.snitch import main

AXPY = """
axpy:
  li t0, 15
  scfgwi t0, 64
  scfgwi t0, 65
  scfgwi t0, 66
  li t1, 8
  scfgwi t1, 192
  scfgwi t1, 193
  scfgwi t1, 194
  scfgwi a0, 768
  scfgwi a1, 769
  scfgwi a2, 898
  csrrsi zero, 1984, 1
  frep.o t0, 1, 0, 0
  fadd.d ft2, ft0, ft1
  csrrci zero, 1984, 1
  ret
"""
ARGUMENTS = ["--arg", "f64[4,4]=2", "--arg", "f64[16]", "--arg", "f64[16]=out"]


@pytest.fixture
def axpy(tmp_path: Path) -> str:
    path = tmp_path / "axpy.s"
    path.write_text(AXPY)
    return str(path)


def test_summary_lines_and_trace(axpy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([axpy, *ARGUMENTS, "--lines", "--cycles", "--show"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^cycles +\d+   the core returned after \d+$", out, re.MULTILINE)
    assert re.search(r"^FPU utilisation +0\.\d{3}   16 FPU instructions$", out, re.MULTILINE)
    assert re.search(r"^ +16 +16    fadd\.d ft2, ft0, ft1$", out, re.MULTILINE)
    assert re.search(r"^ +12  0r 1r +frep\.o t0, 1, 0, 0 +csrrsi zero, 1984, 1$", out, re.MULTILINE)
    assert "argument 2 at 0x10000" in out


def test_page(axpy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "trace.html"
    assert main([axpy, *ARGUMENTS, "--html", str(page)]) == 0
    text = page.read_text()
    assert "fadd.d ft2, ft0, ft1" in text
    assert "http" not in text  # nothing is loaded from elsewhere
    assert f"wrote {page}" in capsys.readouterr().err


def test_other_machines(axpy: str) -> None:
    assert main([axpy, *ARGUMENTS, "--machine", "snitch-2024"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--arg", "f65[3]"], 2, "error: 'f65[3]' is no argument: an integer, or an array such as"),
        (["--machine", "x86-64-avx2"], 2, "error: machine 'x86-64-avx2' has no streams and hardware loops"),
        (["--entry", "nowhere"], 1, "there is no label 'nowhere'; functions: axpy"),
        ([], 1, "SSR0: the stream reaches from 0x0 to"),
        ([*ARGUMENTS[:5], "f64[17]=out"], 1, "1 of 17 elements of argument 2 were not written"),
        (["--arg", "f64[100000]"], 2, "does not fit"),
        ([*ARGUMENTS, "--limit", "5"], 1, "no end after 5 cycles"),
    ],
)
def test_mistakes(axpy: str, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([axpy, *arguments]) == code
    assert message in capsys.readouterr().err


def test_files_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/x.s"]) == 2
    assert "cannot read '/nowhere/x.s'" in capsys.readouterr().err


def test_rewriting(axpy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([axpy, "--rewrite", "-"]) == 0
    assert ".insn i 0x0b, 0, x1, x5, 0 # frep.o t0, 1, 0, 0" in capsys.readouterr().out


def test_other_simulators(axpy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulator = tmp_path / "rtl.py"
    simulator.write_text("import sys\nprint('cycles: 77')\nprint('differences: 0')\n")
    program = tmp_path / "axpy.elf"
    assert main([axpy, *ARGUMENTS, "--elf", str(program), "--snitch-sim", f"{sys.executable} {simulator}"]) == 0
    assert program.read_bytes().startswith(b"\x7fELF")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("cycles: 77\n", f"wrote {program}\n")
