"""`--verify` sees a change of meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from pdojo_tools.opt import main
from pdojo_tools.verification import OUTSIDE, verify_meaning
from xdsl.dialects.builtin import ModuleOp

from pdojo.backends.gpu import fibers
from pdojo.backends.gpu.fibers import REMEDY
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


SHARED = """kernel f(x) -> (y)
x f32 [{n}, 32] heap
y f32 [{n}, 32] heap
t f32 [{n}:N, 32] shared

{n}:g 32:b
| t[{{0}},{{1}}] = x[{{0}},{{1}}]
| y[{{0}},{{1}}] = t[{{0}},{{1}}]
"""


def verified(n: int, folder: Path) -> int:
    path = folder / "f.pdojo"
    path.write_text(SHARED.format(n=n))
    return main([str(path), "--machine", "nvidia-sm90", "--apply=async_copy@t", "--verify", "-t", "notation"])


@pytest.mark.usefixtures("fibers")
@pytest.mark.parametrize(("n", "sizes"), [(3, "its own sizes"), (2000, "the reduced sizes")])
def test_code_for_a_gpu_is_judged(n: int, sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(n, tmp_path) == 0
    (said,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("compiling")]
    assert said.startswith("verified")
    assert said.endswith(f"; its code, run by fibers at {sizes} in 6 ways, gives the same results)")


@pytest.mark.usefixtures("fibers")
def test_wrong_code_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        pass

    monkeypatch.setattr("pdojo.backends.gpu.barriers._Synchroniser._wait", never)
    assert verified(3, tmp_path) == 1
    wrong = "error: --verify: the code of kernel 'f' is wrong (asynchronous copies late, threads ascending): y[0, 0] is"
    assert wrong in capsys.readouterr().err


def test_code_that_cannot_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fibers, "compilers", dict[str, list[str]])
    assert verified(3, tmp_path) == 0
    why = f"there is no C++ compiler to run kernels on a CPU: {REMEDY}"
    assert f"; its code was not judged: {why})\n" in capsys.readouterr().err


def test_a_slow_compiler_is_announced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 0.3\n")
    slow.chmod(0o755)
    monkeypatch.setattr(fibers, "compilers", lambda: {"slow": [str(slow)]})
    monkeypatch.setattr(fibers, "_LONG", 0.05)
    told: list[int] = []
    fibers.compile_fibers(fibers.HEAD, warp=32, notice=lambda: told.append(1))
    assert told == [1]


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
