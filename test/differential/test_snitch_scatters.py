"""Kernels that read and write at entries of arrays of indices on a simulated Snitch core, with equal indices, too."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from differential.compiled import Arrays, kernel
from differential.library import close
from differential.snitch import DIVIDES
from pdojo.backends.snitch.executable import load
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.sizes import probes
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IndexOutOfRange, LoweringError
from pdojo.transforms.game import Game
from property import test_index_arrays, test_scatters

TEXTS = {
    "gather": """\
kernel gather(x, idx, order) -> (y, z)
size N in 4..12
x f64 [N, 6] heap
idx i32 [N, 2] heap in 0..N-1
order i8 [N] heap in 1..5 wrap
y f64 [N, 6] heap
z f64 [N] heap

N 6 y[{0},{1}] = x[idx[{0},1],{1}] + x[idx[{0},0],5-{1}]
N z[{0}] = x[{0},order[{0}]] * index(idx[{0},{0}%2]//2)
""",
    "scatter": """\
kernel scatter(x, idx) -> (y, n)
x f32 [9, 8] heap align 8
idx i64 [9] heap in 0..4
y f32 [5, 8] heap align 8
n i32 [6] heap

5 4 2:v y[{0},{1}*2+{2}] = 1
6 n[{0}] = 0
9 4 2:v y[idx[{0}],{1}*2+{2}] += x[{0},{1}*2+{2}]
9:u
| y[idx[{0}],3] = x[{0},0] * 2
| n[idx[{0}]+1] max= 3
| n[idx[{0}]] += 1
""",
    "tables": """\
kernel tables(x, idx) -> (y, z, n)
x f64 [9, 6] heap
idx i32 [4] heap in 0..6
y f64 [5, 6] heap
z f32 [7] heap
n i32 [4, 3] heap
row i64 [7] table 8, 0, 3, 3, 7, 1, 2
by i64 [3] table 5, 0, 2

5 6 y[{0},{1}] = x[row[{0}+2],5-{1}] * index(row[{0}])
2 4 where ({0}*4+{1} < 7) z[{0}*4+{1}] = index(row[{0}*4+{1}]*3)
4 3 n[{0},{1}] = index(row[idx[{0}]]-by[{1}])
""",
    "slices": """\
kernel slices(x, start, length) -> (y, u)
size N in 6..12
x f64 [N, 4] heap
start i16 [2] heap in 0..N-6
length i64 [] heap in 0..N
y f64 [6, 4] heap
u f64 [N] heap

6 4 y[{0},{1}] = x[{0}+start[1],{1}]
N u[{0}] = -1
N where ({0} < length[]) u[{0}] = x[length[]-1-{0},2]
2 where (start[{0}] >= 1) 3 where ({1} < start[{0}]) y[{1},{0}] = x[start[{0}]-{1},{1}]
""",
}


def agrees(before: KernelOp, after: KernelOp, seed: int = 0) -> None:
    code = load(after, DIVIDES)
    for sizes in probes([*before.known_sizes().values()]):
        for turn in range(3):
            given = test_index_arrays.inputs_for(before, sizes, turn, np.random.default_rng(seed))
            for array in nest_of(before).arrays.values():
                if array.name in given:
                    given[array.name] = given[array.name].astype(INTERFACE[array.dtype])
            wanted = interpret(before, given, sizes=sizes)
            close(code.run(given, sizes=sizes).outputs, wanted, before)


@pytest.mark.parametrize("name", TEXTS)
def test_each_use_of_an_index(name: str) -> None:
    program = kernel(TEXTS[name])
    agrees(program, program)


@pytest.mark.parametrize("dtype", ["i64", "i32", "i16", "i8"])
def test_indices_beyond_the_range(dtype: str) -> None:
    """All numbers of the type, of which the nearest index counts."""
    text = f"kernel k(x, idx) -> (y)\nx f32 [9] heap\nidx {dtype} [7] heap in 2..8 clamp\ny f32 [7] heap\n\n"
    program, limits = kernel(text + "7 y[{0}] = x[idx[{0}]]\n"), np.iinfo(INTERFACE[dtype])
    indices = np.array([limits.min, limits.max, -1, 1, 9, 8, 5], INTERFACE[dtype])
    if dtype == "i64":
        indices[4:6] = (1 << 32) + 5, -(1 << 32) + 5
    given: Arrays = {"x": np.arange(9, dtype=np.float32), "idx": indices}
    close(load(program, DIVIDES).run(given).outputs, interpret(program, given), program)


def test_an_index_that_the_kernel_refuses() -> None:
    program = kernel(TEXTS["scatter"])
    given: Arrays = {"x": np.zeros((9, 8), np.float32), "idx": np.full(9, 5)}
    with pytest.raises(IndexOutOfRange, match=r"'idx' has the index 5 at \[0\]"):
        load(program, DIVIDES).run(given)


def test_ranges_of_64_bits_are_refused() -> None:
    text = (
        f"kernel k(i) -> (y)\ni i64 [1] heap in 0..{1 << 31}\ny f32 [4] heap\n\n4 where ({{0}} <= i[0]) y[{{0}}] = 1\n"
    )
    with pytest.raises(LoweringError, match=r"indices of 'i' go to 2147483648, and integers of a Snitch core have 32"):
        load(kernel(text), DIVIDES)


def test_entries_of_tables_of_64_bits_are_refused() -> None:
    text = f"kernel k() -> (y)\ny f64 [2] heap\nt i64 [2] table 1, {1 << 31}\n\n2 y[{{0}}] = index(t[{{0}}])\n"
    with pytest.raises(LoweringError, match=r"entries of 't' go to 2147483648, and integers of a Snitch core have 32"):
        load(kernel(text), DIVIDES)


KERNELS = {**test_scatters.KERNELS, **test_index_arrays.KERNELS}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_legal_moves_are_right_on_a_core(name: str) -> None:
    random, before = Random(name), kernel(KERNELS[name].replace("\n", "\nnumerics reassociate numbers\n", 1))
    game = Game(before, DIVIDES)
    for _ in range(5):
        moves = game.moves()
        family = random.choice(sorted({move.name for move in moves}))
        game.apply(random.choice([move for move in moves if move.name == family]))
    agrees(before, game.program.kernel)
