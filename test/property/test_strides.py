"""Random legal moves on kernels with strided arrays, judged by code on arrays with random gaps, which must stay."""

from random import Random

import numpy as np
import pytest

from differential.strided import Memory
from pdojo.backends.calling.arrays import parameters_at, parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.transforms.game import Game
from property.test_sizes import COLUMNS, PRODUCT, SOFTMAX, STENCIL, values_of

BATCHED = """\
kernel batched(a, b) -> (c)
a f32 [3, 8, 12] heap strided
b f32 [3, 12, 16] heap strided ?, 40
c f32 [3, 8, 16] heap strided 200, 20
t f32 [3, 8, 16] heap

3 8 16
| t[{0},{1},{2}] = 0
| 12 t[{0},{1},{2}] += a[{0},{1},{3}] * b[{0},{3},{2}]
3 8 16 c[{0},{1},{2}] = max(t[{0},{1},{2}], 0)
"""
TURNED = """\
kernel turned(x, u) -> (y, z)
x f32 [16, 8] heap strided
u f32 [8, 16] heap strided 0
y f32 [8, 16] heap strided
z f64 [16, 8] heap strided 11 -> z, t
s f64 [16, 8] heap

16 8 t[{0},{1}] = cast(x[{0},{1}])
16 8 s[{0},{1}] = t[{0},{1}] * 2
8 16 y[{0},{1}] = x[{1},{0}] + u[{0},{1}]
16 8 z[{0},{1}] = exp(s[{0},{1}])
"""
IN_PLACE = """\
kernel in_place(x) -> (x)
size N in 2..18
x i16 [N, 3, 7] heap strided ?, 9
s i16 [N] heap

N s[{0}] = x[{0},2,6]
N 3 7 x[{0},{1},{2}] += s[{0}]
"""
MOVES = 5
"""Moves of a walk."""


def strided(text: str) -> str:
    """The kernel with strided interface arrays of several dimensions."""
    head, line, tree = text.partition("\n\n")
    (kernel,) = parse_notation(text)
    names = [p.name for p in parameters_of(nest_of(kernel)) if len(p.shape) > 1]
    rows = [row + " strided" if row.split()[0] in names else row for row in head.split("\n")]
    return "\n".join(rows) + line + tree


KERNELS = {
    "softmax": strided(SOFTMAX),
    "product": strided(PRODUCT),
    "stencil": strided(STENCIL),
    "columns": strided(COLUMNS),
    "batched": BATCHED,
    "turned": TURNED,
    "in_place": IN_PLACE,
}


def judge(before: KernelOp, after: KernelOp, values: dict[str, int], seed: int) -> None:
    """Assert that a program computes what the first one does, by interpreter and code, and keeps all other memory."""
    random = np.random.default_rng(seed)
    known = bound(before, values)
    parameters = parameters_at(parameters_of(nest_of(before)), values)
    given = {p.name: (random.integers(-90, 90, p.shape) / 8).astype(INTERFACE[p.dtype]) for p in parameters}
    memory = {p.name: Memory(p, given[p.name], random) for p in parameters}
    inputs = {p.name: memory[p.name].values for p in parameters if p.intent is not Intent.OUT}
    wanted = interpret(known, inputs)
    found = interpret(bound(after, values), inputs, storage="cells", seed=seed)
    compile(after, host(), threads=2, optimize="search")(**{name: each.array for name, each in memory.items()})
    for parameter in parameters:
        name = parameter.name
        memory[name].check()
        if parameter.written:
            for each, by in ((found[name], "interpreter"), (memory[name].array, "code")):
                message = f"{by}: {name} for {values}"
                np.testing.assert_allclose(each, wanted[name], rtol=3e-4, atol=3e-5, err_msg=message)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KERNELS)
def test_legal_moves_are_right_for_all_strides(name: str, seed: int) -> None:
    (start,) = parse_notation(KERNELS[name])
    random = Random(seed)
    game = Game(start, host())
    for number in range(MOVES):
        moves = game.moves()
        family = random.choice(sorted({move.name for move in moves}))
        game.apply(random.choice([move for move in moves if move.name == family]))
        after = game.program.kernel
        (again,) = parse_notation(print_notation(after))
        assert print_notation(again) == print_notation(after)
        for turn, values in enumerate(values_of(start.known_sizes(), random)):
            judge(start, after, values, 3 * (MOVES * seed + number) + turn)


@pytest.mark.parametrize("name", KERNELS)
def test_the_pass_is_right_for_all_strides(name: str) -> None:
    (start,) = parse_notation(KERNELS[name])
    after = make_moves(start, host(), "heuristic").after
    for turn, values in enumerate(values_of(start.known_sizes(), Random(0))):
        judge(start, after, values, turn)
