"""Moves on kernels with sizes that callers give."""

import pytest

from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
from pdojo.errors import IllegalMove
from pdojo.transforms.game import Game

MAP = """\
kernel k(x) -> (y)
size M in 8..2048 multiple 8
size N in 1..64
x f32 [N, M] heap
y f32 [N, M] heap

N M y[{0},{1}] = exp(x[{0},{1}])
"""
TWO = """\
kernel k(x) -> (y)
size N in 1..64
x f32 [N] heap
y f32 [N] heap
t f32 [N] heap

N t[{0}] = exp(x[{0}])
N y[{0}] = t[{}]
"""


def game(text: str) -> Game:
    (kernel,) = parse_notation(text)
    return Game(kernel, host())


def tree(played: Game) -> str:
    return played.text.split("\n\n")[1].strip()


@pytest.mark.parametrize(
    ("move", "wanted"),
    [
        ("tile_scope@y:1{size=8}", "N (M//8) 8 y[{0},{1}*8+{2}] = exp(x[{0},{1}*8+{2}])"),
        ("tile_scope@y:1{size=4}", "N (M//4) 4 y[{0},{1}*4+{2}] = exp(x[{0},{1}*4+{2}])"),
        (
            "tile_scope@y:1{size=16}",
            "N 128 16 where (M-{1}*16-{2} >= 1) y[{0},{1}*16+{2}] = exp(x[{0},{1}*16+{2}])",
        ),
        ("tile_scope@y:0{size=3}", "22 3 where (N-{0}*3-{1} >= 1) M y[{0}*3+{1},{2}] = exp(x[{0}*3+{1},{2}])"),
    ],
)
def test_tiles_are_guarded_unless_the_size_is_a_multiple(move: str, wanted: str) -> None:
    played = game(MAP)
    before = tree(played)
    played.apply(move)
    assert tree(played) == wanted
    played.apply(f"collapse_scopes@y:{move.partition(':')[2][0]}")
    assert tree(played) == before


def test_loops_of_equal_sizes_are_joined() -> None:
    played = game(TWO.replace("{}", "{0}"))
    played.apply("join_scopes@t:0")
    assert tree(played) == "N\n| t[{0}] = exp(x[{0}])\n| y[{0}] = t[{0}]"


def test_loops_are_not_joined_if_some_size_forbids_it() -> None:
    with pytest.raises(IllegalMove):
        game(TWO.replace("{}", "N-1-{0}")).apply("join_scopes@t:0")
    # With one iteration, nothing is read before it is written.
    one = TWO.replace("{}", "N-1-{0}").replace("1..64", "1..1")
    game(one).apply("join_scopes@t:0")


def test_loops_of_other_sizes_are_not_joined() -> None:
    text = (
        TWO.replace("{}", "{0}")
        .replace("size N", "size M in 1..64\nsize N")
        .replace("N y[", "1 y[")
        .replace("y f32 [N]", "y f32 [1]")
    )
    with pytest.raises(IllegalMove):
        game(text).apply("join_scopes@t:0")
