"""Passes made of moves by combinators."""

from __future__ import annotations

import pytest

from pdojo.dialect.machine import machine
from pdojo.dialect.nest import Scope
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.oracle import equivalent
from pdojo.errors import IllegalMove, UsageError
from pdojo.transforms.base import Dimension
from pdojo.transforms.combinators import attempt, everywhere, move, repeat, seq, where
from pdojo.transforms.game import Game

TEXT = """
kernel k(x) -> (y)
x f32 [8, 12] heap
y f32 [8, 12] heap
t f32 [8, 12] heap

8 12 t[{0},{1}] = exp(x[{0},{1}])
8 12 y[{0},{1}] = t[{0},{1}] + x[{0},{1}]
"""


@pytest.fixture
def game() -> Game:
    return Game(parse_notation(TEXT)[0], machine("toy"))


def made(game: Game) -> list[str]:
    return [str(step.move) for step in game.trace.steps]


def test_the_naive_pass_in_two_lines(game: Game) -> None:
    seq(repeat(everywhere("join_scopes")), everywhere("reuse_dims"))(game)
    assert made(game) == ["join_scopes@t:0", "join_scopes@t:1", "reuse_dims@t:0", "reuse_dims@t:1"]
    assert equivalent(game.programs[0].nest, game.program.nest) is None


def test_seq_stops_where_a_move_cannot_be_made(game: Game) -> None:
    with pytest.raises(IllegalMove, match="join_scopes@y:0 is refused"):
        seq(move("join_scopes@t:0"), move("split_scopes@t:0{after=1}"), move("join_scopes@y:0"))(game)
    assert made(game) == ["join_scopes@t:0", "split_scopes@t:0{after=1}"]


def test_attempt_is_all_or_nothing(game: Game) -> None:
    before = print_notation(game.kernel)
    both = seq(move("join_scopes@t:0"), move("reuse_dims@t:1"))
    attempt(both)(game)
    assert (made(game), print_notation(game.kernel)) == ([], before)
    attempt(both, otherwise=move("join_scopes@t:0"))(game)
    assert made(game) == ["join_scopes@t:0"]


def test_everywhere_selects_places_and_parameters(game: Game) -> None:
    def inner(scope: Scope) -> bool:
        return scope.depth == 1

    seq(everywhere("tile_scope", inner, size=4), everywhere("vectorize"))(game)
    assert made(game) == ["tile_scope@t:1{size=4}", "tile_scope@y:1{size=4}", "vectorize@t:2", "vectorize@y:2"]


def test_everywhere_ends_for_moves_that_undo_themselves(game: Game) -> None:
    everywhere("swap_dims", lambda site: isinstance(site, Dimension))(game)
    everywhere("swap_scopes")(game)
    assert "swap_scopes@y:0" in made(game)


def test_repeat_has_a_limit(game: Game) -> None:
    with pytest.raises(UsageError, match="repeated 20 times"):
        repeat(move("swap_dims@t:0"), limit=20)(game)
    assert len(made(game)) == 20


def test_where(game: Game) -> None:
    def is_fused(game: Game) -> bool:
        return len(game.program.nest.children) == 1

    fuse = where(is_fused, move("reuse_dims@t:0"), otherwise=move("join_scopes@t:0"))
    seq(fuse, fuse)(game)
    assert made(game) == ["join_scopes@t:0", "reuse_dims@t:0"]
