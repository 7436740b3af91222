"""`--verify` sees a change of meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from pdojo_tools.opt import main
from pdojo_tools.verification import OUTSIDE, verify_meaning
from xdsl.dialects.builtin import ModuleOp

from pdojo.dialect.notation import parse_notation
from pdojo.errors import InvalidKernel, UsageError
from pdojo.frontends.text import Chunk

KERNEL = """
kernel f(x) -> (y)
x f32 [{n}] heap
y f32 [{n}] heap

{n} y[{{0}}] = x[{{0}}] {sign} 2
"""


CHUNK = Chunk(KERNEL, "f.pdojo")


def module(n: int, sign: str) -> ModuleOp:
    return ModuleOp(list(parse_notation(KERNEL.format(n=n, sign=sign))))


@pytest.mark.parametrize("n", [8, 300_000])
def test_change_is_seen_small_and_large(n: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidKernel, match="the meaning changed"):
        verify_meaning(module(n, "*"), module(n, "+"), {}, CHUNK)
    verify_meaning(module(n, "*"), module(n, "*"), {}, CHUNK)
    said = capsys.readouterr().err
    if n == 8:
        done = "exact oracle under adversarial schedules, and random inputs"
        assert said == f"verified: kernel 'f' keeps its meaning in exact arithmetic, {OUTSIDE} ({done})\n"
    else:
        assert said.startswith("not verified exactly: kernel 'f' gives the same results (random inputs; exact ")


def test_what_would_take_hours_is_refused() -> None:
    n = 1 << 34
    with pytest.raises(UsageError, match=r"its 17,179,869,184 statement instances would take hours"):
        verify_meaning(module(n, "*"), module(n, "*"), {}, CHUNK)


def test_missing_kernel() -> None:
    with pytest.raises(UsageError, match=r"left no pdojo\.kernel"):
        verify_meaning(module(8, "*"), ModuleOp([]), {}, CHUNK)


def test_moves_at_default_sizes_are_decided_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matmul", "--verify", "--apply=tile_scope@c:0{size=16}", "-t", "notation"]) == 0
    said = capsys.readouterr().err
    done = "exact oracle at reduced sizes (M 48, "
    wanted = f"verified at reduced sizes: kernel 'matmul' keeps its meaning in exact arithmetic, {OUTSIDE} ({done}"
    assert wanted in said


def test_a_kernel_without_meaning_is_not_said_to_have_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "f.pdojo"
    unwritten = "t f32 [4] heap\n\n3 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]\n"
    kernel.write_text(f"kernel f(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n{unwritten}")
    assert main([str(kernel), "--verify"]) == 1
    said = capsys.readouterr().err
    assert "kernel 'f': t[{0}] at iteration (3) gets an element of 't' that nothing has written" in said
    assert "changed" not in said
