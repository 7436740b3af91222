"""The audit of programs for CPUs: what it finds, and that the pass's programs have nothing to find."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdojo import build
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.passes.cpu.audit import audit
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves
from pdojo.transforms.game import Game
from qa.audited import audited, draws

AVX512 = replace(machine("x86-64-avx512"), threads=2)

GATHERED = """
kernel k(a, b) -> (c)
a f32 [64, 512] heap
b f32 [256, 512] heap
c f32 [64, 256] heap

64 256 c[{0},{1}] = 0
64:p 16 512 16:v c[{0},{1}*16+{3}] fma= a[{0},{2}] * b[{1}*16+{3},{2}]
"""
SCALAR = """
kernel k(x) -> (y)
x f32 [4096] heap
y f32 [4096] heap

4096 y[{0}] = exp(x[{0}])
"""
SERIAL = """
kernel k(x) -> (y)
x f32 [4096, 4096] heap
y f32 [4096, 4096] heap

4096 256 16:v y[{0},{1}*16+{2}] = exp(x[{0},{1}*16+{2}])
"""
PARTLY = """
kernel k(x) -> (y)
x f32 [4, 1024, 4096] heap
y f32 [4, 1024, 4096] heap

4
| 512:p 256 16:v y[{0},{1},{2}*16+{3}] = exp(x[{0},{1},{2}*16+{3}])
| 512 256 16:v y[{0},{1}+512,{2}*16+{3}] = exp(x[{0},{1}+512,{2}*16+{3}])
"""
APART = """
kernel k(a, b) -> (c)
a f32 [4, 4096] heap
b f32 [4096, 4096] heap
c f32 [4, 4096] heap

4 4096 c[{0},{1}] = 0
256:p 4096 4:u 16:v c[{2},{0}*16+{3}] fma= a[{2},{1}] * b[{1},{0}*16+{3}]
"""
FINE = """
kernel k(x) -> (y)
x f32 [4096, 4096] heap
y f32 [4096, 4096] heap

4096:p 256 16:v y[{0},{1}*16+{2}] = exp(x[{0},{1}*16+{2}])
"""
TURNED = """
kernel k(x) -> (y)
x f32 [4096, 4096] heap
y f32 [4096, 4096] heap

4096:p 256 16:v y[{0},{1}*16+{2}] = exp(x[{1}*16+{2},{0}])
"""


def kinds(text: str) -> list[str]:
    (kernel,) = parse_notation(text)
    return [finding.kind for finding in audit(Game(kernel, AVX512))]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (GATHERED, "gathered factor"),
        (TURNED, "gathered operand"),
        (SCALAR, "scalar statement"),
        (SERIAL, "serial nest"),
        (PARTLY, "serial nest"),
        (APART, "pages apart"),
    ],
)
def test_finds_what_is_slow(text: str, kind: str) -> None:
    assert kind in kinds(text)


def test_finds_nothing_in_a_good_program() -> None:
    assert kinds(FINE) == []


def test_one_thread_has_no_serial_nests() -> None:
    (kernel,) = parse_notation(SERIAL)
    assert audit(Game(kernel, replace(AVX512, threads=1))) == []


def test_findings_name_the_statement_and_its_part_of_the_work() -> None:
    (kernel,) = parse_notation(GATHERED)
    (finding,) = audit(Game(kernel, AVX512))
    assert finding.statement == "c:1"
    assert 0.5 < finding.share <= 1
    assert "lanes of b are apart" in str(finding)


def test_constant_weights_of_all_pieces_are_packed() -> None:
    """Pieces of 5 vectors and a rest, inside the loop over images: the copy of one piece cannot be made in front."""
    x = build.input("x", "f32", (8, 256, 14, 14))
    w = build.input("w", "f32", (256, 256, 3, 3), const=True)
    kernel = assume_alignment(build.kernel("conv", [x, w], [build.conv(x, w, padding=1)]), None)
    for name in ("x86-64-avx2", "x86-64-avx512", "x86-64-zen4"):
        tuned = make_moves(kernel, replace(machine(name), threads=2), PASS)
        assert any(leaf.contracted for leaf in tuned.game.program.nest.leaves)
        assert audit(tuned.game) == []


def test_sums_over_rows_of_products_run_along_the_rows() -> None:
    x, y = build.input("x", "f32", (2048, 768)), build.input("y", "f32", (2048, 768))
    kernel = assume_alignment(build.kernel("k", [x, y], [build.sum(x * y, axis=0)]), None)
    tuned = make_moves(kernel, AVX512, PASS)
    assert audit(tuned.game) == []
    assert all(
        leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR
        for leaf in tuned.game.program.nest.leaves
        if leaf.reads and "x" in {r.array.name for r in leaf.reads}
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_programs_of_the_pass_have_nothing_to_find(seed: int) -> None:
    """A thousand programs, in twenty parts."""
    strict = {"gathered factor", "pages apart", "serial nest", "widened constant"}
    pairs = [(drawn, each) for drawn in draws(50, seed) for each in audited(drawn)[0] if each.kind in strict]
    assert [f"{drawn.title} {drawn.machine} {drawn.threads} threads: {each}" for drawn, each in pairs] == []
