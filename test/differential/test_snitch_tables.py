"""Tables, streams and guards together on a simulated Snitch core: random legal moves on kernels that have all three."""

from __future__ import annotations

from random import Random

import pytest

from differential.snitch import DIVIDES
from pdojo.dialect.flow.program import Program
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.transforms.game import Game
from qa.simulated import simulated_code_differs
from qa.walks import Counts, draw

PREFERRED = ("stream", "frep", "unroll", "carry_value", "peel_scope", "tile_scope", "stage_in", "set_location", "hint")
GATHER = "{n} {m} where ({guard}) y[{{0}},{{1}}] += x[at[{{0}}],{{1}}] * w[to[{{1}}]]"
SCATTER = "{n} {m} where ({guard}) y[order[{{0}}],{{1}}] = x[{{0}},to[{{1}}]] - z[at[{{0}}],{{1}}]"
SUMS = "{n}\n| {m} where ({guard}) s[{{0}}] += x[at[{{0}}],{{1}}] * w[to[{{1}}]]\n| y[order[{{0}}],0] = s[{{0}}] + w[0]"
RECURRENCE = """{n}
| {rest} where ({guard})
| | t[] = y[{{0}},{{1}}] * w[to[{{1}}]]
| | y[{{0}},{{1}}+1] = t[] + x[at[{{0}}],{{1}}]"""
GUARDS = ("{1} <= {0}+1", "{1} >= {0}-2, {1} <= {0}*2", "{0}+{1} >= 3", "{1} < 5")


def drawn(seed: int) -> KernelOp:
    """A kernel of one of four forms, at drawn sizes and with drawn tables."""
    random = Random(seed)
    dtype, n, m = random.choice(("f64", "f32", "i32")), random.choice((4, 5, 6)), random.choice((6, 7, 8))
    tables = {
        "at": [random.randrange(n) for _ in range(n)],
        "to": [random.randrange(m) for _ in range(m)],
        "order": random.sample(range(n), n),
    }
    form = (GATHER, SCATTER, SUMS, RECURRENCE)[seed % 4]
    text = form.format(n=n, m=m, rest=m - 1, guard=random.choice(GUARDS))
    lines = [
        "kernel drawn(x, z, w) -> (y)",
        *(f"{name} {dtype} [{n}, {m}] heap" for name in "xzy"),
        f"w {dtype} [{m}] heap",
        f"s {dtype} [{n}] stack",
        f"t {dtype} [] stack",
        *(f"{name} i64 [{len(t)}] table {', '.join(map(str, t))}" for name, t in tables.items()),
        "",
        f"{n} {m} y[{{0}},{{1}}] = z[{{0}},{{1}}]",
        f"{n} s[{{0}}] = 0",
        text,
        "",
    ]
    (kernel,) = parse_notation("\n".join(lines))
    return kernel


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 60))])
def test_random_moves(seed: int) -> None:
    """After every third move the simulated results are those of the interpreter."""
    game, random, counts = Game(drawn(seed), DIVIDES), Random(seed), Counts()
    for number in range(9):
        move = draw(game.program, random, counts, PREFERRED)
        if move is None:
            break
        game.apply(move)
        if number % 3 == 2:
            assert simulated_code_differs(Program(game.kernel, DIVIDES), seed) is None, game.trace.dump()
