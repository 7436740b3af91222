"""Random walks that prefer shifts, pipelines and peeling, over kernels that have room for them, at odd sizes.

And the other way round: forced where its dependence or storage question refuses it, such a move changes the meaning.
"""

from __future__ import annotations

from collections import Counter

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.transforms.game import Game
from pdojo.transforms.registry import transformation
from property.walks import assert_walk
from qa.forcing import HARMLESS, Judge
from qa.walks import Counts

SHAPED = ("join_scopes", "split_scopes", "pipeline", "unpipeline", "peel_scope", "unpeel_scope")

KERNELS = {
    "stencil": """kernel stencil(x) -> (y)
x f32 [9, 5] heap
y f32 [7, 5] heap
t f32 [9, 5] heap
u f32 [9] heap

9
| 5 t[{0},{1}] = exp(x[{0},{1}])
| u[{0}] = 0
| 5 u[{0}] += t[{0},{1}]
7 5
| y[{0},{1}] = t[{0},{1}] + t[{0}+1,{1}]
| y[{0},{1}] += t[{0}+2,{1}]
| y[{0},{1}] += u[{0}+1]
""",
    "pad": """kernel pad(x) -> (y)
x f32 [5, 7] heap
y f32 [5, 7] heap
t f32 [7, 9] heap

7 9
| t[{0},{1}] = 0
| 1 where ({0} >= 1, {0} < 6, {1} >= 1, {1} < 8) t[{0},{1}] = x[{0}-1,{1}-1]
5 7
| y[{0},{1}] = 0
| 3 3 y[{0},{1}] += t[{0}+{2},{1}+{3}]
""",
    "staged": """kernel staged(x, a) -> (y)
x f32 [5, 12, 4] heap
a f32 [5, 4] heap
y f32 [5, 12] heap
t f32 [12, 4] heap
s f32 [12] heap

5 12
| 4 t[{1},{2}] = x[{0},{1},{2}]
| s[{1}] = 0
| 4 s[{1}] += t[{1},{2}] * a[{0},{2}]
| y[{0},{1}] = exp(s[{1}])
""",
    "diag": """kernel diag(x) -> (y)
x f32 [7, 5] heap
y f32 [7, 5] heap
t f32 [7, 5] heap

7
| 5 y[{0},{1}] = 0
| 5 where ({0}+{1} < 8, {0}*2+{1} >= 3) t[{0},{1}] = x[{0},{1}]
| 5 where ({0}+{1} < 8, {0}*2+{1} >= 3) y[{0},{1}] += t[{0},{1}]
7 5 y[{0},({1}+{0})%5] += x[{0},{1}]
""",
}


@pytest.mark.parametrize("name", KERNELS)
def test_walks(name: str) -> None:
    counts = Counts()
    for seed in range(2):
        assert_walk(KERNELS[name], "toy", seed, 7, counts, prefer=(*SHAPED, "tile_scope"))
    assert counts.moves > 8


SHAPES = ("the two scopes have different guards", "differ in extent or mapping")
"""Refusals because the rewrite would make another program than what is meant, if maybe one with the same meaning."""


def forced(program: Program, harmless: Counter[str]) -> None:
    """Make every move that is refused for a dependence; counts those that keep the meaning all the same."""
    judge = Judge(program, 1, arithmetics=1, schedules=3)
    for name in SHAPED:
        for site, move in transformation(name).candidates(program):
            reason = move.check(program, site)
            if reason is None or any(text in reason.text for text in SHAPES):
                continue
            if judge.force(move, site).kind == HARMLESS:
                harmless[f"{name}: {reason.text}"] += 1


@pytest.mark.parametrize("name", KERNELS)
def test_refusals_are_justified(name: str) -> None:
    game = Game(parse_notation(KERNELS[name])[0], machine("toy"))
    harmless: Counter[str] = Counter()
    forced(game.program, harmless)
    for move in [m for m in game.moves() if m.name in (*SHAPED, "reuse_dims", "fold_dim")][:6]:
        there = Game(game.kernel, game.machine)
        there.apply(move)
        forced(there.program, harmless)
    assert not harmless
