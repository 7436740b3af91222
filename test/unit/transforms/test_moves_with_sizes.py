"""Moves on kernels with sizes that callers give."""

import pytest

from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation.parser import parse_notation
from pdojo.errors import IllegalMove
from pdojo.transforms.apply import apply
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

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


@pytest.mark.parametrize(
    ("text", "moves", "wanted"),
    [
        (
            MAP,
            ["peel_scope@y:0{multiple=6}", "peel_scope@y#1:0{multiple=3}"],
            "60 where (N//6*6-{0} >= 1) M y[{0},{1}] = exp(x[{0},{1}])\n"
            "3 where (N//3-N//6*2 >= 1) M y[{0}+N//6*6,{1}] = exp(x[{0}+N//6*6,{1}])\n"
            "2 where (N%3-{0} >= 1) M y[{0}+N//3*3,{1}] = exp(x[{0}+N//3*3,{1}])",
        ),
        (
            MAP,
            ["peel_scope@y:1{multiple=16}"],
            "N\n"
            "| 2048 where ((M//8)//2*16-{1} >= 1) y[{0},{1}] = exp(x[{0},{1}])\n"
            "| 8 where ((M//8)%2 >= 1) y[{0},{1}+(M//8)//2*16] = exp(x[{0},{1}+(M//8)//2*16])",
        ),
        (
            TWO.replace("{}", "N-1-{0}"),
            ["peel_scope@y:0{multiple=5}"],
            "N t[{0}] = exp(x[{0}])\n"
            "60 where (N//5*5-{0} >= 1) y[{0}] = t[N-{0}-1]\n"
            "4 where (N%5-{0} >= 1) y[{0}+N//5*5] = t[N%5-{0}-1]",
        ),
        (
            TWO.replace("{}", "{0}").replace("1..64", "64..64000"),
            ["peel_scope@y:0{after=3}"],
            "N t[{0}] = exp(x[{0}])\n3 y[{0}] = t[{0}]\n(N-3) y[{0}+3] = t[{0}+3]",
        ),
    ],
)
def test_the_rest_of_whole_tiles_is_peeled_and_put_back(text: str, moves: list[str], wanted: str) -> None:
    program = game(text).program
    made = [apply(program, Move.parse(moves[0]))]
    for move in moves[1:]:
        made.append(apply(made[-1].program, Move.parse(move)))
    assert made[-1].program.text.split("\n\n")[1].strip() == wanted
    for before, each in zip([program, *(m.program for m in made)], made, strict=False):
        assert each.inverse is not None
        assert apply(each.program, each.inverse).program.text == before.text


@pytest.mark.parametrize("size", [2, 3, 16, 64])
def test_a_peeled_tail_of_tiles_is_put_back(size: int) -> None:
    program = game(TWO.replace("{}", "{0}")).program
    made = apply(program, Move.parse(f"tile_scope@y:0{{size={size} tail=peel}}"))
    assert (
        "N%2 >= 1" in made.program.text if size == 2 else f"{size - 1} where (N%{size}-{{0}} >= 1)" in made.program.text
    )
    assert made.inverse is not None
    assert apply(made.program, made.inverse).program.text == program.text


@pytest.mark.parametrize(
    ("tiles", "count", "rest", "fits"),
    [
        (64, 5, "N%4", True),
        (64, 5, "N%3+1", True),
        (64, 5, "N%4+1", False),
        (64, 5, "N%5", False),
        # Loops that end before their guards say so.
        (60, 5, "N%4", False),
        (64, 2, "N%4", False),
    ],
)
def test_whole_tiles_are_merged_with_less_than_a_tile(tiles: int, count: int, rest: str, fits: bool) -> None:
    text = f"""\
kernel k(x) -> (y)
size N in 1..64
x f32 [(N+9)] heap
y f32 [(N+9)] heap

(N+9) y[{{0}}] = 0
{tiles} where (N//4*4-{{0}} >= 1) y[{{0}}] += x[{{0}}]
{count} where ({rest}-{{0}} >= 1) y[{{0}}+N//4*4] += x[{{0}}+N//4*4]
"""
    assert (game(text).moves("unpeel_scope") != []) is fits


@pytest.mark.parametrize(("least", "fits"), [(3, True), (2, False), (1, False)])
def test_parts_of_less_than_no_iterations_are_not_merged(least: int, fits: bool) -> None:
    """With N = 1, the second loop would have two iterations, and the whole one none."""
    text = f"""\
kernel k(x) -> (y)
size N in {least}..64
x f32 [(N+9)] heap
y f32 [(N+9)] heap

(N+9) y[{{0}}] = 0
60 where ((N-3)//4*4-{{0}} >= 1) y[{{0}}+4] += x[{{0}}+4]
3 where ((N-3)%4-{{0}} >= 1) y[{{0}}+(N-3)//4*4+4] += x[{{0}}+(N-3)//4*4+4]
"""
    assert (game(text).moves("unpeel_scope") != []) is fits


@pytest.mark.parametrize(("least", "fits"), [(3, True), (1, False)])
def test_a_loop_of_less_than_no_iterations_has_no_whole_tiles(least: int, fits: bool) -> None:
    """With N = 1, the tiles of a loop of N-3 would leave a rest of two iterations."""
    played = game(
        f"kernel k(x) -> (y)\nsize N in {least}..64\nx f32 [64] heap\ny f32 [64] heap\n\n64 y[{{0}}] = 0\n"
        f"61 where (N-{{0}} >= 4) y[{{0}}] = x[{{0}}]\n"
    )
    if fits:
        played.apply("peel_scope@y#1:0{multiple=4}")
        return
    with pytest.raises(IllegalMove, match="the extent 61 is constant"):
        played.apply("peel_scope@y#1:0{multiple=4}")


def test_elements_at_a_size_have_no_loop() -> None:
    text = "kernel k(x) -> (y)\nsize N in 2..9\nx f32 [N] heap\ny f32 [N] heap\nt f32 [N, 4] heap\n\n"
    text += "4 t[N-1,{0}] = x[0]\n4 where ({0} < 1) y[N-1] = t[N-1,{0}]\nN-1 y[{0}] = x[{0}]\n"
    assert game(text.replace("N-1 y", "(N-1) y")).moves("reuse_dims") != []


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


STENCIL = """\
kernel stencil(x) -> (y)
size H in 4..17
x f32 [H, (H+3)] heap
y f32 [(H-2), (H+1)] heap
t f32 [(H-2), (H+1)] heap

(H-2) (H+1)
| t[{0},{1}] = 0
| 3 3 t[{0},{1}] += x[{0}+{2},{1}+{3}]
(H-2) (H+1) y[{0},{1}] = t[{0},{1}]
"""


@pytest.mark.parametrize(
    ("move", "wanted"),
    [
        ("stage_in@t#1:0{array=x location=heap form=box}", "H (H+3) x_in[{0},{1}] = x[{0},{1}]"),
        (
            "stage_in@t#1:1{array=x location=heap form=box}",
            "3 where (H-{0}-{1} >= 1) (H+3) x_in[{0},{1},{2}] = x[{0}+{1},{2}]",
        ),
    ],
)
def test_boxes_end_where_the_array_ends(move: str, wanted: str) -> None:
    played = game(STENCIL)
    played.apply(move)
    assert wanted in tree(played)


def test_listed_boxes_can_be_made() -> None:
    played = game("""\
kernel k(x) -> (y)
size M in 1..20
x f32 [M, 12] heap
y f32 [M, 8] heap

M 8
| y[{0},{1}] = 0
| 6 2 y[{0},{1}] += x[{0},{2}*2+{3}]
""")
    boxes = [move for move in played.moves("stage_in") if dict(move.params).get("form") == "box"]
    assert boxes
    for move in boxes:
        assert apply(played.program, move).program.kernel
