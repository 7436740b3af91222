"""Instructions of several warps, whose units read shared memory: what is legal, and what the exact oracle thinks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid
from pdojo.dialect.view.build import nest_on
from pdojo.errors import IllegalMove, InvalidKernel
from pdojo.transforms.game import Game

PAIR = Intrinsic(
    "toy_pair",
    """kernel toy_pair(a, b, c) -> (c)
a f32 [8, 2] heap
b f32 [2, 2] heap
c f32 [8, 2] heap

8 2 2 c[{0},{1}] += a[{0},{2}] * b[{2},{1}]
""",
    {},
    threads=8,
    warps=2,
    fragments={"a": "{0}, {1}", "c": "{0}%4*2 + {0}//4, {1}"},
    shared={"b": (2, 8, 4)},
)
TOY = replace(machine("toy-gpu"), intrinsics=(PAIR,))
"""Warps of four threads; two of them have rows of two numbers, taken in turns."""
GOOD = """kernel k(x, z) -> (y)
x f32 [16, 2] heap
z f32 [2, 2] heap
y f32 [16, 2] heap
s f32 [2:N, 8, 2] register
q f32 [2:N, 2, 2^1] shared

2:g
| 2:b 4:w 2:u s[{0},{2}%2*4+{1}*2+{2}//2,{3}] = 0
| 2:b 2 q[{0},{1},{2}] = z[{1},{2}]
| 8:m(toy_pair) 2 2 s[{0},{1},{2}] += x[{0}*8+{1},{3}] * q[{0},{3},{2}]
| 2:b 4:w 2:u y[{0}*8+{2}%2*4+{1}*2+{2}//2,{3}] = s[{0},{2}%2*4+{1}*2+{2}//2,{3}]
"""


def test_a_tile_of_two_warps_is_legal() -> None:
    (kernel,) = parse_notation(GOOD)
    validate(Program(kernel, TOY))
    assert check_valid(nest_on(kernel, TOY)) is None


WRONG = {
    "the other warp": (
        "y[{0}*8+{2}%2*4+{1}*2+{2}//2,{3}] = s[{0},{2}%2*4+{1}*2+{2}//2,{3}]",
        "y[{0}*8+{2}%2*4-{1}*2+2+{2}//2,{3}] = s[{0},{2}%2*4-{1}*2+2+{2}//2,{3}]",
        "two threads access one of its cells",
    ),
    "another lane": (
        "y[{0}*8+{2}%2*4+{1}*2+{2}//2,{3}] = s[{0},{2}%2*4+{1}*2+{2}//2,{3}]",
        "y[{0}*8+{2}//2*4+{1}*2+{2}%2,{3}] = s[{0},{2}//2*4+{1}*2+{2}%2,{3}]",
        "two threads access one of its cells",
    ),
    "one warp": (
        "| 2:b 4:w 2:u y[{0}*8+{2}%2*4+{1}*2+{2}//2,{3}] = s[{0},{2}%2*4+{1}*2+{2}//2,{3}]",
        "| 2 4:w 2:u y[{0}*8+{2}%2*4+{1}*2+{2}//2,{3}] = s[{0},{2}%2*4+{1}*2+{2}//2,{3}]",
        "every access must be indexed by the same threads",
    ),
}
"""Programs that read values in threads that do not have them."""


@pytest.mark.parametrize("case", WRONG)
def test_values_in_other_threads(case: str) -> None:
    old, new, expected = WRONG[case]
    assert old in GOOD
    (kernel,) = parse_notation(GOOD.replace(old, new))
    with pytest.raises(InvalidKernel) as caught:
        Game(kernel, TOY)
    assert expected in str(caught.value)
    assert check_valid(nest_on(kernel, TOY)) is not None


def test_moves_that_would_change_the_layout_are_refused() -> None:
    (kernel,) = parse_notation(GOOD)
    game = Game(kernel, TOY)
    for move, expected in (
        ("unswizzle_dim@q:2", "must be exchanged by the number of the row: swizzle_dim@q:2{by=1 granule=1}"),
        ("set_location@q{location=heap}", "it must be in shared memory"),
    ):
        with pytest.raises(IllegalMove) as caught:
            game.apply(move)
        assert expected in str(caught.value)
    game.apply("set_location@s{location=heap}")
    game.apply("unmap@s#1:1")
    game.apply("unswizzle_dim@q:2")
    with pytest.raises(IllegalMove) as caught:
        game.apply("tensorize@s#1:1{intrinsic=toy_pair}")
    assert "must be exchanged by the number of the row" in str(caught.value)
    game.apply("swizzle_dim@q:2{by=1 granule=1}")
    game.apply("tensorize@s#1:1{intrinsic=toy_pair}")
