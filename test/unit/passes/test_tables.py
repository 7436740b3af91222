"""Passes on kernels with tables: right programs, vectors along contiguous dimensions, features."""

from __future__ import annotations

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.passes.passes import run_pass
from pdojo.passes.registry import kind_of_machine
from pdojo.search.features.structure import SIZE, structure
from pdojo.transforms.game import Game

GATHER = """\
kernel gather(x, b) -> (y)
x f32 [9, 16] heap
b f32 [16] heap
y f32 [6, 16] heap
t f32 [6, 16] heap
idx i64 [6] table 7, 0, 7, 3, 2, 8

6 16 t[{0},{1}] = x[idx[{0}],{1}] + b[{1}]
6 16 y[{0},{1}] = max(t[{0},{1}], 0)
"""
POOLED = """\
kernel pooled(x) -> (y, z)
x f32 [12, 4] heap
y f32 [3, 4] heap
z f32 [4, 4] heap
t f32 [3, 4, 4] heap
idx i64 [12] table 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11
w i64 [4] table 1, 2, 0, 3

3 4 4 t[{0},{1},{2}] = x[idx[{0}*4+{2}],{1}] * w[{2}]
3 4
| y[{0},{1}] = 0
| 4 y[{0},{1}] += t[{0},{1},{2}]
4 4 z[{0},{1}] = 1
3 4 z[w[{0}],w[{1}]] = y[{0},{1}] + x[idx[{0}]//2,{1}]
"""


@pytest.mark.parametrize("text", [GATHER, POOLED], ids=["gather", "pooled"])
@pytest.mark.parametrize("name", ["x86-64-avx2", "nvidia-sm90", "snitch"])
def test_passes_keep_the_meaning(text: str, name: str) -> None:
    described = machine(name)
    for expert in kind_of_machine(described).passes:
        game = Game(parse_notation(text)[0], machine=described)
        run_pass(expert, game)
        assert equivalent(parse_notation(text)[0], game.kernel) is None, expert
        assert len(structure(game.program.nest, described)) == SIZE


def test_gathered_rows_are_read_in_vectors() -> None:
    game = Game(parse_notation(GATHER)[0], machine=machine("x86-64-avx2"))
    run_pass("heuristic", game)
    assert ":v t[" in print_notation(game.kernel)
    x, b = np.random.default_rng(0).normal(size=(2, 9, 16)).astype(np.float32)
    np.testing.assert_array_equal(pdojo.run(game.kernel, x, b[0]), np.maximum(x[[7, 0, 7, 3, 2, 8]] + b[0], 0))


def test_questions_that_are_not_settled_do_not_end_a_pass() -> None:
    """Three tables in one question are too many cases for integer sets."""
    x, v = build.input("x", "i32", (16, 17, 3)), build.input("v", "i32", (400,))
    order = np.random.default_rng(1).permutation(x.size)[: v.size]
    places = [row.tolist() for row in np.unravel_index(order, x.shape)]
    game = Game(build.kernel("k", [x, v], [build.argmin(build.scatter(x, places, v), 1)]), machine("x86-64-avx2"))
    run_pass("heuristic", game)
    numbers = np.random.default_rng(2).integers(-9, 9, x.shape, np.int32), np.arange(400, dtype=np.int32)
    written = numbers[0].copy()
    written.reshape(-1)[order] = numbers[1]
    for kernel in (game.plain, game.kernel):
        assert (pdojo.run(kernel, *map(pdojo.aligned, numbers)) == written.argmin(1)).all()
