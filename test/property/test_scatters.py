"""Random legal moves on kernels that write at entries which iterations choose, judged by interpreter and code.

What is legal for unknown indices must be legal for each kernel with tables in their place, whose sets are exact.
"""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from pdojo.dialect.flow.shortcut import shortcut_names, without
from pdojo.dialect.indices import with_indices
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.transforms.apply import candidates, checked
from pdojo.transforms.game import Game
from property.test_index_arrays import inputs_for, walk

INDEX_ADD = """\
kernel index_add(base, x, idx) -> (y)
base f32 [10, 16] heap
x f32 [7, 16] heap
idx i32 [7] heap in 0..9
y f32 [10, 16] heap

10 16 y[{0},{1}] = base[{0},{1}]
7 16 y[idx[{0}],{1}] += x[{0},{1}] * 2
"""
SCATTER = """\
kernel scatter(x, idx) -> (y)
x f32 [6, 8] heap
idx i64 [6] heap in 0..4
y f32 [5, 8] heap
t f32 [5, 8] heap

5 8 t[{0},{1}] = 0
6 8 t[idx[{0}],{1}] = x[{0},{1}]
5 8 y[{0},{1}] = exp(t[{0},{1}])
"""
EXTREMES = """\
kernel extremes(x, idx) -> (y, z)
x f32 [4, 12] heap
idx i16 [4, 12] heap in 0..5 wrap
y f32 [4, 6] heap
z f32 [6] heap

4 6 y[{0},{1}] = -10
6 z[{0}] = 10
4 12
| y[{0},idx[{0},{1}]] max= x[{0},{1}]
| z[idx[{0},{1}]] min= x[{0},{1}]
"""
GRADIENT = """\
kernel gradient(d, idx, other) -> (g)
size N in 4..20
d f32 [N, 8] heap
idx i64 [N, 3] heap in 0..N-1
other i32 [N] heap in 0..7
g f32 [N, 8] heap
s f32 [N, 8] heap

N 8 s[{0},{1}] = d[{0},{1}] * 3
N 8 g[{0},{1}] = 0
N 3 8 g[idx[{0},{1}],{2}] += s[{0},{2}]
N g[{0},other[{0}]] += d[{0},0]
"""
HISTOGRAM = """\
kernel histogram(x, bin, n) -> (h, r)
x f32 [24] heap
bin i8 [24] heap in 0..7 clamp
n i32 [] heap in 1..24
h f32 [8] heap
r f32 [8] heap
s f32 [8] heap

8
| h[{0}] = 0
| s[{0}] = 0.5
24 where ({0} < n[])
| h[bin[{0}]] += 1
| s[bin[{0}]] += x[{0}]
8 r[{0}] = s[{0}] - h[{0}]
"""
DISPATCH = """\
kernel dispatch(x, w, slot) -> (y)
x f32 [6, 8] heap
w f32 [9, 8] heap
slot i32 [6] heap in 0..8
y f32 [6, 8] heap
t f32 [9, 8] heap
u f32 [9, 8] heap

9 8 t[{0},{1}] = 0
6 8 t[slot[{0}],{1}] = x[{0},{1}]
9 8 u[{0},{1}] = t[{0},{1}] * w[{0},{1}]
6 8 y[{0},{1}] = u[slot[{0}],{1}] + x[{0},{1}]
"""
PAGES = """\
kernel pages(k, new, q, slot, order) -> (k, s)
k f32 [5, 4, 8] heap
new f32 [6, 8] heap
q f32 [8] heap
slot i32 [6] heap in 0..19
order i64 [20] heap in 0..19
s f32 [20] heap

6 8 k[slot[{0}]//4,slot[{0}]%4,{1}] = new[{0},{1}] * 2
20
| s[{0}] = 0
| 8 s[{0}] += k[order[{0}]//4,order[{0}]%4,{1}] * q[{1}]
"""
INPLACE = """\
kernel inplace(y, f, idx) -> (y)
y f32 [7, 8] heap
f f32 [6, 8] heap
idx i32 [6] heap in 0..6
t f32 [6, 8] heap

6 8 t[{0},{1}] = y[idx[{0}],{1}] * f[{0},{1}]
6 8 y[idx[{0}],{1}] = y[idx[{0}],{1}] * 0.5
6 8 y[idx[{0}],{1}] += t[{0},{1}]
"""
OVERLAP = """\
kernel overlap(x, at) -> (y, z)
x f32 [5, 6] heap
at i32 [5] heap in 0..14
y f32 [20] heap
z f32 [32] heap

20 y[{0}] = 0
32 z[{0}] = 1
5 6 y[at[{0}]+{1}] = x[{0},{1}]
5 2 3 z[at[{0}]*2+{1}] += x[{0},{1}*3+{2}]
"""
KERNELS = {
    "dispatch": DISPATCH,
    "extremes": EXTREMES,
    "gradient": GRADIENT,
    "histogram": HISTOGRAM,
    "index_add": INDEX_ADD,
    "inplace": INPLACE,
    "overlap": OVERLAP,
    "pages": PAGES,
    "scatter": SCATTER,
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", KERNELS)
def test_legal_moves_are_right_for_all_indices(name: str, seed: int) -> None:
    walk(KERNELS[name], seed)


STEPS, EACH = 4, 25
"""Moves of a walk, and legal moves of each program that are asked about with tables."""


def with_tables(kernel: KernelOp, seed: int) -> Iterator[Game]:
    """Games of the kernel with equal indices at both ends of the ranges, and with random ones."""
    for turn in range(3):
        yield Game(with_indices(kernel, inputs_for(kernel, {}, turn, np.random.default_rng(seed))), host())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"gradient", "histogram"}))
def test_what_is_legal_for_unknown_indices_is_legal_for_all_tables(name: str, seed: int) -> None:
    """The other two kernels have sizes and a length, which bound what a move may cut."""
    random, (start,) = Random(seed), parse_notation(KERNELS[name])
    game, spelled = Game(start, host()), [f"{array}[" for array in start.index_arrays()]
    for _ in range(STEPS):
        moves = [verdict.move for verdict in candidates(game.program) if verdict.is_legal]
        # A load ahead is of an entry that a call gives.
        moves = [m for m in moves if not any(entry in str(m) for entry in spelled) and "kind=ahead" not in str(m)]
        for known in with_tables(game.program.kernel, seed):
            with without(*shortcut_names()):
                for move in random.sample(moves, min(EACH, len(moves))):
                    checked(known.program, move)
        family = random.choice(sorted({move.name for move in moves}))
        game.apply(random.choice([move for move in moves if move.name == family]))
