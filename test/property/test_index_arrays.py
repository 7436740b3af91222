"""Random legal moves on kernels with indices of callers, judged by interpreter and compiled code."""

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.llvm.executable import compile
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.sizes import probes, shape_for, with_sizes
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game

EMBEDDING = """\
kernel embedding(x, idx) -> (y)
x f32 [10, 16] heap
idx i32 [6, 3] heap in 0..9
y f32 [6, 16] heap
t f32 [6, 16] heap

6 16
| t[{0},{1}] = 0
| 3 t[{0},{1}] += x[idx[{0},{2}],{1}]
6 16 y[{0},{1}] = exp(t[{0},{1}])
"""
MASK = """\
kernel mask(q, k, pos) -> (y)
q f32 [4, 8] heap
k f32 [20, 8] heap
pos i64 [] heap in 0..16
y f32 [4, 20] heap
s f32 [4, 20] heap
m f32 [4] heap

4 20 s[{0},{1}] = -100
4 20 where ({1} <= {0}+pos[])
| s[{0},{1}] = 0
| 8 s[{0},{1}] += q[{0},{2}] * k[{1},{2}]
4
| m[{0}] = -inf
| 20 m[{0}] max= s[{0},{1}]
4 20 y[{0},{1}] = s[{0},{1}] - m[{0}]
"""
LOSS = """\
kernel loss(x, target) -> (y)
x f32 [6, 12] heap
target i64 [6] heap in 0..11
y f32 [6] heap
e f32 [6, 12] heap
s f32 [6] heap

6 12 e[{0},{1}] = exp(x[{0},{1}])
6
| s[{0}] = 0
| 12 s[{0}] += e[{0},{1}]
6 y[{0}] = e[{0},target[{0}]] / s[{0}]
"""
LENGTHS = """\
kernel lengths(x, len) -> (y)
size N in 2..20
x f32 [5, N] heap
len i64 [5] heap in 0..N
y f32 [5] heap
t f32 [5, N] heap
u f32 [5] heap

5 N t[{0},{1}] = x[{0},{1}] * x[{0},{1}]
5
| u[{0}] = 0
| N where ({1} < len[{0}]) u[{0}] += t[{0},{1}]
5 y[{0}] = u[{0}] * 2
"""
SLICES = """\
kernel slices(x, start, order) -> (y, z)
size N in 8..24
x f32 [N, 8] heap
start i64 [2] heap in 0..N-8
order i8 [8] heap in 0..7
y f32 [8, 4] heap
z f32 [8] heap
t f32 [8, 4] heap

8 4 t[{0},{1}] = x[{0}+start[0],{1}+start[1]//8]
8 4 y[{0},{1}] = t[7-{0},{1}] * 2
8
| z[{0}] = 0
| 4 z[{0}] += t[order[{0}],{1}]
"""
CACHE = """\
kernel cache(k, new, q, pos) -> (k, s)
k f32 [20, 8] heap
new f32 [3, 8] heap
q f32 [8] heap
pos i32 [] heap in 0..17
s f32 [20] heap

3 8 k[{0}+pos[],{1}] = new[{0},{1}] * 2
20 s[{0}] = -inf
20 where ({0} <= pos[]+2)
| s[{0}] = 0
| 8 s[{0}] += k[{0},{1}] * q[{1}]
"""
TAKE = """\
kernel take(x, w, idx, n) -> (y)
size N in 4..20
x f32 [N, 6] heap
w f32 [32] heap
idx i32 [32] heap in 0..N-1 wrap
n i64 [] heap in 0..32
y f32 [32] heap
t f32 [32] heap
other i64 [16] table 3, 0, 5, 5, 2, 1, 4, 0, 3, 1, 1, 2, 3, 5, 4, 0

4 8 t[{0}*8+{1}] = x[idx[{0}*8+{1}],2] * w[{0}*8+{1}]
32 y[{0}] = t[{0}]
2 16 where ({0}*16+{1} < n[]) y[{0}*16+{1}] = x[idx[{0}*16+{1}],other[{1}]] + t[{0}*16+{1}]
"""
KERNELS = {
    "cache": CACHE,
    "embedding": EMBEDDING,
    "lengths": LENGTHS,
    "loss": LOSS,
    "mask": MASK,
    "slices": SLICES,
    "take": TAKE,
}
STEPS = 5
"""Moves of a walk."""


def inputs_for(kernel: KernelOp, sizes: Mapping[str, int], turn: int, random: np.random.Generator) -> dict[str, Any]:
    """Random inputs; the indices are all least ones, all greatest ones, or random ones with repetitions."""
    nest, given = nest_of(kernel), dict[str, NDArray[Any]]()
    for array in nest.arrays.values():
        if array.intent not in (Intent.IN, Intent.INOUT):
            continue
        shape, indices = shape_for(array.buffer.extents, sizes), nest.index_arrays.get(array.name)
        if indices is None:
            given[array.name] = random.standard_normal(shape).astype(np.float32)
            continue
        low, last = indices.low, with_sizes(indices.last, sizes).constant
        values = (np.full(shape, low), np.full(shape, last), random.integers(low, last + 1, shape))[turn]
        given[array.name] = values.astype(INTERFACE[array.dtype])
    return given


def judge(before: KernelOp, after: KernelOp, seed: int) -> None:
    """Assert that both compute the same for some sizes and indices; memory that is not written is poisoned."""
    random = np.random.default_rng(seed)
    code = compile(after, host(), threads=2, optimize="search")
    for sizes in probes([*before.known_sizes().values()]):
        for turn in range(3):
            given = inputs_for(before, sizes, turn, random)
            wanted = interpret(before, given, sizes=sizes)
            found = interpret(after, given, storage="cells", seed=seed, sizes=sizes)
            made = {n: given.pop(n) if n in given else np.full(a.shape, np.nan, np.float32) for n, a in wanted.items()}
            code(**given, **made, **sizes)
            for name, expected in wanted.items():
                for each in (found[name], made[name]):
                    np.testing.assert_allclose(each, expected, rtol=3e-4, atol=3e-5, err_msg=f"{name} for {sizes}")


def walk(text: str, seed: int) -> None:
    """Make random legal moves, and judge each."""
    (start,) = parse_notation(text)
    random = Random(seed)
    game = Game(start, host())
    for _ in range(STEPS):
        moves = game.moves()
        family = random.choice(sorted({move.name for move in moves}))
        game.apply(random.choice([move for move in moves if move.name == family]))
        after = game.program.kernel
        (again,) = parse_notation(print_notation(after))
        assert print_notation(again) == print_notation(after)
        judge(start, after, seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", KERNELS)
def test_legal_moves_are_right_for_all_indices(name: str, seed: int) -> None:
    walk(KERNELS[name], seed)
