"""Cases that notice planted defects which the other tests had missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdojo.dialect.affine import const
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.stream_patterns import Walk
from pdojo.errors import IllegalMove
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from qa.inverses import lost_on_the_way_back

RESTORED = {
    "a dimension of which the last tile is not whole": (
        """kernel k(x) -> (y)
x f32 [7] heap
y f32 [7] heap
t f32 [7] heap

7 t[{0}] = x[{0}]
7 y[{0}] = t[{0}]
""",
        ["tile_dim@t:0{size=4}"],
    ),
    "the inner one of two dimensions": (
        """kernel k(x) -> (y)
x f32 [2, 4] heap
y f32 [2, 4] heap
t f32 [2, 4] heap

2 4 t[{0},{1}] = x[{0},{1}]
2 4 y[{0},{1}] = t[{0},{1}]
""",
        ["collapse_dims@t:0"],
    ),
    "where the first of two fused scopes ended": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap
u f32 [8] heap

8
| t[{0}] = x[{0}]
| u[{0}] = t[{0}]
8 y[{0}] = u[{0}]
""",
        ["join_scopes@t:0"],
    ),
    "how many slots a dimension had": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [7] heap
t f32 [8:N3] stack

8
| t[{0}] = x[{0}]
| 1 where ({0} >= 1) y[{0}-1] = t[{0}] + t[{0}-1]
""",
        ["fold_dim@t:0{slots=2}", "materialize_dims@t:0"],
    ),
    "the stack as the place of a buffer": (
        """kernel k(x) -> (y)
x f32 [] heap
y f32 [] heap
t f32 [] stack

t[] = x[]
y[] = t[]
""",
        ["set_location@t{location=heap}"],
    ),
    "the identifier of a scope that was fused": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = t[{0}]
""",
        ["join_scopes@t:0"],
    ),
    "guards of loops in a pipeline": (
        """kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8, 4] heap
t f32 [8, 4] heap

8 4 y[{0},{1}] = 0
8
| 4 where ({0}+{1} < 9) t[{0},{1}] = x[{0},{1}]
| 4 where ({0}+{1} < 9) y[{0},{1}] = t[{0},{1}]
""",
        ["pipeline@t:0{stages=2}"],
    ),
    "the guard of a scope that becomes a pipeline of loops": (
        """kernel k(x) -> (y)
x f32 [3, 8, 2] heap
y f32 [3, 8, 2] heap
t f32 [3, 8, 2] heap

3 8 2 y[{0},{1},{2}] = 0
3 8 where ({0}+{1} < 9)
| 2 t[{0},{1},{2}] = x[{0},{1},{2}]
| 2 y[{0},{1},{2}] = t[{0},{1},{2}]
""",
        ["pipeline@t:1{stages=2}"],
    ),
}

REFUSED: dict[str, tuple[str, ...]] = {
    "fusion against a dependence of a later statement": (
        """kernel k(x) -> (y, z)
x f32 [8] heap
y f32 [8] heap
z f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8
| y[{0}] = x[{0}]
| z[{0}] = t[7-{0}]
""",
        "join_scopes@t:0",
        "the second scope needs iterations of the first that would come later",
    ),
    "threads that write one cell, each in its turn": (
        """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [7] heap

4 4:p y[{1}-{0}+3] = x[{0},{1}]
""",
        "swap_scopes@y:0",
        "a dependence would be turned round",
    ),
    "threads that add to one cell, each in its turn": (
        """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [7] heap

7 y[{0}] = 0
4 4:p y[{1}-{0}+3] += x[{0},{1}]
""",
        "swap_scopes@y#1:0",
        "a dependence would be turned round",
    ),
    "two arrays in one memory, which threads use in another order": (
        """kernel k(x) -> (y, z)
x f32 [4] heap
y f32 [4] heap
z f32 [4] heap
buffer f32 [4] heap -> t, u

4:p
| t[{0}] = x[{0}]
| y[{0}] = t[{0}]
4:p
| u[({0}+1)%4] = x[{0}]
| z[{0}] = u[({0}+1)%4]
""",
        "join_scopes@t:0",
        "iterations of scope {0} of extent 4:p would share a slot",
    ),
    "a pipeline ahead of what it needs": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [9] heap
t f32 [8] heap

y[0] = 0
8
| t[{0}] = y[{0}] + x[{0}]
| y[{0}+1] = t[{0}]
""",
        "pipeline@t:0{stages=2}",
        "the first part would come before earlier iterations of the second that it depends on",
    ),
    "memory with other slots": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
p f32 [8] heap
t f32 [8:N] heap

8
| t[{0}] = exp(x[{0}])
| p[{0}] = t[{0}] + 1
8 y[{0}] = p[{0}]
""",
        "share_buffer@t{with=p}",
        "'t' and 'p' differ in slots",
    ),
    "memory of the caller that is not all written": (
        """kernel k(x, y) -> (y, z)
x f32 [8] heap
y f32 [8] heap
z f32 [8] heap
t f32 [8] heap

8 t[{0}] = exp(x[{0}])
8 z[{0}] = t[{0}]
4 y[{0}] = x[{0}]
""",
        "share_buffer@t{with=y}",
        "'t' would be overwritten before its last read",
    ),
    "memory of the caller that a later iteration takes": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap
s f32 [] heap

8
| 8 t[{1}] = exp(x[{1}])
| s[] = t[3]
| y[{0}] = s[]
""",
        "share_buffer@t{with=y}",
        "would be overwritten before its last read",
    ),
    "a value in a vector that was a copy before it was computed": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 t[{0}] = exp(x[{0}])
2 4:v y[{0}*4+{1}] = t[{0}*4+{1}]
""",
        "inline_op@y{input=0}",
        "a vector scope wraps exactly one op; only a copy can be inlined there",
    ),
    "a copy of all that is accessed, of which the scope writes a part first": (
        """kernel k(x) -> (y, z)
x f32 [2, 8] heap
y f32 [2, 8] heap
z f32 [2, 8] heap

2 4 y[{0},{1}] = 0
2
| 4 y[{0},{1}] += x[{0},{1}]
| 4 y[{0},{1}+4] = x[{0},{1}]
| 8 z[{0},{1}] = y[{0},{1}]
""",
        "stage_out@y#1:0{array=y location=heap form=box}",
        "the copy would read elements of 'y' that nothing wrote",
    ),
    "parts with other functions": (
        """kernel k(x, w) -> (y)
x f32 [8, 3] heap
w f32 [8, 3] heap
y f32 [8, 3] heap

2 3 y[{0},{1}] = -x[{0},{1}]
6 3 y[{0}+2,{1}] = exp(x[{0}+2,{1}])
""",
        "unpeel_scope@y#0:0",
        "the two scopes are not the first and the last iterations of one loop",
    ),
    "parts with other arrays": (
        """kernel k(x, w) -> (y)
x f32 [8, 3] heap
w f32 [8, 3] heap
y f32 [8, 3] heap

2 3 y[{0},{1}] = x[{0},{1}]
6 3 y[{0}+2,{1}] = w[{0}+2,{1}]
""",
        "unpeel_scope@y#0:0",
        "the two scopes are not the first and the last iterations of one loop",
    ),
    "parts with other constants": (
        """kernel k(x, w) -> (y)
x f32 [8, 3] heap
w f32 [8, 3] heap
y f32 [8, 3] heap

2 3 y[{0},{1}] = x[{0},{1}] + 4
6 3 y[{0}+2,{1}] = x[{0}+2,{1}] + 3
""",
        "unpeel_scope@y#0:0",
        "the two scopes are not the first and the last iterations of one loop",
    ),
    "parts with other extents inside": (
        """kernel k(x, w) -> (y)
x f32 [8, 3] heap
w f32 [8, 3] heap
y f32 [8, 3] heap

2 3 y[{0},{1}] = 0
2 2 y[{0},{1}] = x[{0},{1}]
6 3 y[{0}+2,{1}] = x[{0}+2,{1}]
""",
        "unpeel_scope@y#1:0",
        "the two scopes are not the first and the last iterations of one loop",
    ),
    "padding that is accessed": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [2, 4] heap

2 4 t[{0},{1}] = x[{0}*4+{1}]
2 4 y[{0}*4+{1}] = t[{0},{1}]
""",
        "collapse_dims@t:0{extent=7}",
        "goes beyond the extent 7",
    ),
    "padding of fewer elements": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = t[{0}]
""",
        "pad_dim@t:0{to=7}",
        "'to' must be more than 8, the extent",
    ),
    "partial results that are not combined": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [] heap
p f32 [3] heap

y[] = 0
3 p[{0}] = 0
4 2 p[{1}] += x[{0}*2+{1}]
2 y[] += p[{0}]
""",
        "merge_reduction@p#1:0",
        "the scopes over the partial results differ",
    ),
    "a product that is an output": (
        """kernel k(x, w) -> (y, z)
x f32 [4] heap
w f32 [4] heap
y f32 [] heap
z f32 [4] heap

y[] = 0
4
| z[{0}] = x[{0}] * w[{0}]
| y[] += z[{0}]
""",
        "contract@y#1",
        "'z' is used elsewhere; the product needs a single reader",
    ),
    "copies of threads in memory of their block": (
        """kernel k(x) -> (y)
x f32 [2, 4] heap
y f32 [2, 4] heap
t f32 [2:N, 4:N] stack

2:g 4:b
| t[{0},{1}] = x[{0},{1}]
| y[{0},{1}] = t[{0},{1}]
""",
        "set_location@t{location=shared}",
        "each thread has its own copy of 't', but shared memory holds one for all threads of a block",
        "toy-gpu",
    ),
    "a block with an element for each block": (
        """kernel k(x) -> (y)
x f32 [2, 4] heap
y f32 [2, 4] heap
t f32 [2, 4:N] heap

2:g 4
| t[{0},{1}] = x[{0},{1}]
| y[{0},{1}] = t[{0},{1}]
""",
        "set_location@t{location=stack}",
        "reuse the dimension",
        "toy-gpu",
    ),
    "too much shared memory": (
        """kernel k(x) -> (y)
x f32 [2, 999] heap
y f32 [2, 999] heap
t f32 [2:N, 999] heap

2:g
| 999 t[{0},{1}] = x[{0},{1}]
| 999 y[{0},{1}] = t[{0},{1}]
""",
        "set_location@t{location=shared}",
        "shared buffers would take 3996 bytes; toy-gpu allows",
        "toy-gpu",
    ),
    "too much shared memory with a reduction tree": (
        """kernel k(x) -> (y, s)
x f32 [2, 32, 8] heap
y f32 [2, 32, 8] heap
s f32 [2] heap
t f32 [2:N, 32, 8] heap

2:g
| 32:b 8 t[{0},{1},{2}] = x[{0},{1},{2}]
| 32:b 8 y[{0},{1},{2}] = t[{0},31-{1},{2}]
| s[{0}] = 0
| 32:b s[{0}] += x[{0},{1},0]
""",
        "set_location@t{location=shared}",
        "shared buffers would take 1024 bytes, and reduction trees 128 ('s' 128); toy-gpu allows",
        "toy-gpu",
    ),
    "more registers than a multiprocessor has": (
        """kernel k(x) -> (y)
x f32 [2, 1024, 80] heap
y f32 [2, 1024, 80] heap
t f32 [2:N, 1024:N, 80] heap

2:g 1024:b
| 80:u t[{0},{1},{2}] = x[{0},{1},{2}]
| 80:u y[{0},{1},{2}] = t[{0},{1},79-{2}]
""",
        "set_location@t{location=register}",
        "1024 threads with 80 registers each would take 81920; a multiprocessor of nvidia-sm90 has 65536",
        "nvidia-sm90",
    ),
    "a hardware loop without its streams": (
        """kernel k(x) -> (y)
x f64 [8] heap
y f64 [8] heap

1:s 8:f y[{1}] = x[{1}]
""",
        "unmap@y:0",
        "is in memory; stream a scope around",
        "toy-snitch",
    ),
}


def test_a_machine_without_gathers_has_no_diagonals() -> None:
    text = """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [4] heap

4 y[{0}] = x[{0},{0}]
"""
    game = Game(parse_notation(text)[0], replace(machine("toy"), gather=False))
    with pytest.raises(IllegalMove, match="is not contiguous, which toy cannot do"):
        game.apply("vectorize@y:0")


def test_stores_beside_whole_vectors_do_not_bypass_caches() -> None:
    text = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [9] heap
t f32 [9] heap

t[0] = 0
2 4:v t[{0}*4+{1}+1] = x[{0}*4+{1}]
9 y[{0}] = x[0]
8 y[{0}] += t[{0}]
"""
    # An offset of the vector, an aligned one that other lanes follow backwards, no offset.
    for index, wanted in (("{0}*4+{1}+1", False), ("{0}*4-{1}+4", False), ("{0}*4+{1}", True)):
        game = Game(parse_notation(text.replace("{0}*4+{1}+1]", index + "]"))[0], machine("toy"))
        assert any("nontemporal" in str(move) for move in game.moves()) is wanted


def test_a_machine_without_gathers_keeps_rows() -> None:
    text = """kernel k(x) -> (y)
x f32 [4, 4] heap
y f32 [4, 4] heap
t f32 [4, 4] heap

4 4:v t[{0},{1}] = x[{0},{1}]
4 4:v y[{0},{1}] = t[{0},{1}]
"""
    game = Game(parse_notation(text)[0], replace(machine("toy"), gather=False))
    with pytest.raises(IllegalMove, match="is not contiguous, which toy cannot do"):
        game.apply("swap_dims@t:0")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, move, reason, *others = REFUSED[name]
    game = Game(parse_notation(text)[0], machine(others[0] if others else "toy"))
    with pytest.raises(IllegalMove) as refused:
        game.apply(move)
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", RESTORED)
def test_the_inverse_leads_back(name: str) -> None:
    text, moves = RESTORED[name]
    program = Game(parse_notation(text)[0], machine("toy")).program
    for move in moves:
        made = apply(program, Move.parse(move))
        assert lost_on_the_way_back(program, made.program, made.inverse) is None
        program = made.program


def test_a_write_with_other_iterations_does_not_spare_old_values() -> None:
    """It goes through the same elements in the end, but not in the iteration in which they are read."""
    text = """kernel k(x) -> (y, z)
x f32 [4] heap
y f32 [11] heap
z f32 [4, 3, 2] heap

11 y[{0}] = 0
4
| 2 3 y[{0}+{1}+{2}*3] = x[{0}]
| 3 2 z[{0},{1},{2}] = y[{0}+{1}+{2}*3]
"""
    game = Game(parse_notation(text)[0], machine("toy"))
    game.apply("stage_out@y#1:0{array=y location=heap form=box}")
    assert "11 y_out[{0}] = y[{0}]\n4\n" in game.program.text


TAKEN = """kernel k(x) -> (v, w, y)
numerics reassociate
x f32 [8] heap
v f32 [8] heap
w f32 [8] heap
y f32 [] heap

y[] = 0
8
| v[{0}] = x[{0}]
| w[{0}] = x[{0}]
| y[] += x[{0}]
"""


@pytest.mark.parametrize(
    ("move", "back"),
    [("tile_scope@y#1:0{size=2}", "collapse_scopes"), ("split_reduction@y#1:0{size=2}", "merge_reduction")],
)
def test_an_identifier_that_another_node_got_is_not_given_again(move: str, back: str) -> None:
    game = Game(parse_notation(TAKEN)[0], machine("toy"))
    game.apply_all(["split_scopes@v:0{after=2}", move, "split_scopes@v:0{after=1}"])
    (outer,) = (scope.id for scope in game.program.nest.scopes if scope.id.endswith(".s.o"))
    assert outer.removesuffix(".o") in game.program.nest.by_id
    game.apply(f"{back}@%{outer}")
    nodes = [*game.program.nest.scopes, *game.program.nest.leaves]
    assert len({node.id for node in nodes}) == len(nodes)


NOT_LISTED = {
    "unpipeline": """kernel k(x) -> (y)
x f32 [8] heap
y f32 [9] heap -> y, t

9
| 1 where ({0} < 8) t[{0}] = x[{0}]
| 1 where ({0} >= 1) y[{0}] = x[{0}-1]
y[0] = 0
""",
    "join_scopes": """kernel k(x) -> (y)
x f32 [5] heap
y f32 [5] heap -> y, t

5 t[{0}] = x[{0}]
4 y[-{0}+4] = x[{0}]
y[0] = 0
""",
    "pad_dim": """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [2, 2] heap

4:v t[{0}//2,{0}%2] = x[{0}]
4:v y[{0}] = t[{0}//2,{0}%2]
""",
}
"""What is written last to shared memory would be another one after the move; vectors would cross padded rows."""


@pytest.mark.parametrize("name", NOT_LISTED)
def test_a_move_that_breaks_a_rule_is_not_listed(name: str) -> None:
    """Where it is applied, another check would refuse it."""
    game = Game(parse_notation(NOT_LISTED[name])[0], machine("toy"))
    assert name not in {move.name for move in game.moves()}


def test_one_less_a_number_is_no_reciprocal() -> None:
    text = """kernel k(x, s) -> (y, z)
numerics reciprocal
x f32 [8] heap
s f32 [8] heap
y f32 [8] heap
z f32 [8] heap

8 z[{0}] = 1 - s[{0}]
8 y[{0}] = x[{0}] / s[{0}]
"""
    game = Game(parse_notation(text)[0], machine("toy"))
    with pytest.raises(IllegalMove, match="is no division of 1"):
        game.apply('reciprocal@y{array=z index="{0}"}')


def test_the_inverse_of_unstaging_keeps_the_copy_s_name() -> None:
    (kernel,) = parse_notation("""kernel k(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 4] heap
t f32 [4, 4] stack

4 4 t[{0},{1}] = x[{0},{1}*2]
4 4 y[{0},{1}] = exp(t[{0},{1}])
""")
    done = apply(Game(kernel, machine("toy")).program, Move.parse("unstage@t"))
    assert str(done.inverse).endswith("{array=x location=stack into=t}")


def test_conflicts_in_a_scope_of_one_iteration_count() -> None:
    (kernel,) = parse_notation("""kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [4] heap

1
| 4 t[{1}] = x[{1}]
| 4 y[{1}] = t[3-{1}]
""")
    with pytest.raises(IllegalMove, match="iterations of the first that would come later"):
        apply(Game(kernel, machine("toy")).program, Move.parse("join_scopes@t:1"))


def test_sums_of_products_and_padded_dimensions_are_listed() -> None:
    (kernel,) = parse_notation("""kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
t f32 [8] heap

4 t[{0}] = x[{0}] * x[{0}]
4
| y[{0}] = 0
| y[{0}] += t[{0}] * x[{0}]
""")
    listed = {str(move) for move in legal_moves(Game(kernel, machine("toy")).program)}
    assert "unpad_dim@t:0{to=4}" in listed
    assert any(move.startswith("contract@y") for move in listed)


def test_a_walk_goes_on_from_walk_to_walk() -> None:
    walk = Walk(const(0), ())
    for count in (2, 3, 4):
        following = walk.then(Walk(const(8 * (count - 1)), ()))
        assert following is not None
        assert following == Walk(const(0), ((count, 8),))
        walk = following
    assert walk.then(Walk(const(40), ())) is None


@pytest.mark.parametrize("divisor", [2, 3, 4])
@pytest.mark.parametrize("outer", ["", "2 "])
def test_other_terms_beside_equal_quotients_count(outer: str, divisor: int) -> None:
    place, lane = (1, 2) if outer else (0, 1)
    (kernel,) = parse_notation(f"""kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8, 4] heap
t f32 [64] heap

64 t[{{0}}] = 0
{outer}8
| 4 t[{{{place}}}//{divisor}*8+{{{lane}}}] = x[{{{place}}},{{{lane}}}]
| 4 y[{{{place}}},{{{lane}}}] = t[{{{place}}}//{divisor}*8+{{{lane}}}+1]
""")
    with pytest.raises(IllegalMove, match="iterations of the first that would come later"):
        apply(Game(kernel, machine("toy")).program, Move.parse(f"join_scopes@t#1:{lane}"))
