"""Random legal moves on kernels with sizes, judged for several values of the sizes by interpreter and compiled code."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from pdojo.backends.llvm.executable import compile
from pdojo.dialect.affine import Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game

SOFTMAX = """\
kernel softmax(x) -> (y)
size N in 1..20
size M in 8..32 multiple 8
x f32 [N, M] heap
y f32 [N, M] heap
m f32 [N] heap
e f32 [N, M] heap
s f32 [N] heap

N
| m[{0}] = -inf
| M m[{0}] max= x[{0},{1}]
N M e[{0},{1}] = x[{0},{1}] - m[{0}]
N M e[{0},{1}] = exp(e[{0},{1}])
N
| s[{0}] = 0
| M s[{0}] += e[{0},{1}]
N M y[{0},{1}] = e[{0},{1}] / s[{0}]
"""
PRODUCT = """\
kernel product(x, w) -> (y)
size M in 1..20
size K in 4..24 multiple 4
x f32 [M, K] heap
w f32 [K, 17] heap
y f32 [M, 17] heap
t f32 [M, 17] heap

M 17
| t[{0},{1}] = 0
| K t[{0},{1}] += x[{0},{2}] * w[{2},{1}]
M 17 y[{0},{1}] = t[{0},{1}] * 2
"""
STENCIL = """\
kernel stencil(x) -> (y)
size H in 4..17
x f32 [H, (H+3)] heap
y f32 [(H-2), (H+1)] heap
t f32 [(H-2), (H+1)] heap

(H-2) (H+1)
| t[{0},{1}] = 0
| 3 3 t[{0},{1}] += x[{0}+{2},{1}+{3}]
(H-2) (H+1) y[{0},{1}] = max(t[{0},{1}], 0)
"""
COLUMNS = """\
kernel columns(x, w) -> (y)
size N in 1..20
size M in 8..40 multiple 8
x f32 [M, N] heap
w f32 [N, M] heap
y f32 [N, M] heap
t f32 [N, M] heap

N (M//8) 8 t[{0},{1}*8+{2}] = x[{1}*8+{2},{0}]
N (M//8) 8 y[{0},{1}*8+{2}] = t[{0},{1}*8+{2}] * w[N-1-{0},{1}*8+{2}]
"""
LAYER = """\
kernel layer(x, w) -> (y)
size M in 1..20
x f32 [M, 12] heap
w f32 [12, 8] heap const
y f32 [M, 8] heap
p f32 [8, 12] heap const
q f32 [12] heap
t f32 [M, 8] heap

8 12 p[{0},{1}] = w[{1},{0}]
12 q[{0}] = w[{0},3]
M 8
| t[{0},{1}] = 0
| 12 t[{0},{1}] += x[{0},{2}] * p[{1},{2}]
M 8
| y[{0},{1}] = t[{0},{1}]
| 12 y[{0},{1}] += q[{2}]
"""
"""Constants that are computed at binding, and one that may be."""
STEPS = 5
"""Moves of a walk."""


def values_of(sizes: dict[str, Size], random: Random) -> Iterator[dict[str, int]]:
    """The ends of all ranges, then a random value of each."""
    yield {name: size.low for name, size in sizes.items()}
    yield {name: size.high for name, size in sizes.items()}
    yield {name: random.randrange(size.low, size.high + 1, size.step) for name, size in sizes.items()}


def judge(before: KernelOp, after: KernelOp, values: dict[str, int], seed: int) -> None:
    """Assert that both compute the same for some sizes, on fresh inputs; memory that is not written is poisoned."""
    known = bound(before, values)
    arrays = {a.name: a for a in nest_of(known).arrays.values() if a.intent is not None}
    random = np.random.default_rng()
    given = {
        name: random.standard_normal(array.shape).astype(np.float32)
        for name, array in arrays.items()
        if array.intent is Intent.IN
    }
    wanted = interpret(known, given)
    found = interpret(bound(after, values), given, storage="cells", seed=seed)
    made = {n: given[n] if n in given else np.full(a.shape, np.nan, np.float32) for n, a in arrays.items()}
    compile(after, host(), threads=2, optimize="search")(**made)
    for name, expected in wanted.items():
        for each, by in ((found[name], "interpreter"), (made[name], "code")):
            np.testing.assert_allclose(each, expected, rtol=3e-4, atol=3e-5, err_msg=f"{by}: {name} for {values}")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "text",
    [SOFTMAX, PRODUCT, STENCIL, COLUMNS, LAYER],
    ids=["softmax", "product", "stencil", "columns", "layer"],
)
def test_legal_moves_are_right_for_all_sizes(text: str, seed: int) -> None:
    (start,) = parse_notation(text)
    random = Random(seed)
    game = Game(start, host())
    for _ in range(STEPS):
        moves = game.moves()
        family = random.choice(sorted({move.name for move in moves}))
        move = random.choice([move for move in moves if move.name == family])
        game.apply(move)
        after = game.program.kernel
        (again,) = parse_notation(print_notation(after))
        assert print_notation(again) == print_notation(after)
        for values in values_of(start.known_sizes(), random):
            judge(start, after, values, seed)
