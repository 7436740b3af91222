"""Passes made of moves by `Player`."""

from __future__ import annotations

import pytest

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.errors import UsageError
from pdojo.search.experts.player import Player
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
def player() -> Player:
    return Player(Game(parse_notation(TEXT)[0], machine("toy")))


def made(player: Player) -> list[str]:
    return [str(step.move) for step in player.game.trace.steps]


def test_exhaust_makes_moves_until_none_is_legal(player: Player) -> None:
    assert player.exhaust(player.scopes, "join_scopes", "fused") == 2
    assert player.exhaust(player.dimensions, "reuse_dims") == 2
    assert made(player) == ["join_scopes@t:0", "join_scopes@t:1", "reuse_dims@t:0", "reuse_dims@t:1"]
    assert [note.why for note in player.notes] == ["fused", "fused", "", ""]
    assert equivalent(player.game.programs[0].nest, player.nest) is None


def test_exhaust_has_a_limit(player: Player) -> None:
    with pytest.raises(UsageError, match="'swap_dims' was made 20 times and is still legal"):
        player.exhaust(lambda: ["t:0"], "swap_dims", limit=20)
    assert len(made(player)) == 20


def test_attempt_says_whether_the_move_was_legal(player: Player) -> None:
    assert not player.attempt("split_scopes", "t:0", after=1)
    assert not player.attempt("join_scopes", "nothing:0")
    assert player.attempt("tile_scope", player.leaf("2").chain[0], "tiles", size=4)
    assert (made(player), len(player.notes)) == (["tile_scope@t:0{size=4}"], 1)


def test_transact_is_all_or_nothing(player: Player) -> None:
    before = print_notation(player.game.kernel)
    assert not player.transact(lambda: player.attempt("join_scopes", "t:0") and player.attempt("reuse_dims", "t:1"))
    assert (made(player), player.notes, print_notation(player.game.kernel)) == ([], [], before)
    assert player.transact(lambda: player.attempt("join_scopes", "t:0") and player.attempt("reuse_dims", "t:0"))
    assert made(player) == ["join_scopes@t:0", "reuse_dims@t:0"]
