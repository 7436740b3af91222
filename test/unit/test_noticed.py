"""Cases that planted defects were found by: each is what one defect of the catalogue (tools/mutation) breaks."""

from __future__ import annotations

import pytest
from pdojo_tools.walks import fingerprint

from pdojo.dialect.machine import machine
from pdojo.dialect.notation import parse_notation
from pdojo.transforms.game import Game

RESTORED = {
    "identifiers that a tiling was given": (
        """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap

8 y[{0}] = x[{0}]
""",
        ["tile_scope@y:0{size=4 outer=a inner=b}"],
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
    "rows that a guard leaves out": (
        """kernel k(x) -> (y)
x f32 [12] heap
y f32 [12] heap

12 y[{0}] = x[{0}]
3 4 where ({0}*4+{1} < 5) y[{0}*4+{1}] += x[{0}*4+{1}]
""",
        ["collapse_scopes@y#1:0"],
    ),
}


@pytest.mark.parametrize("name", RESTORED)
def test_undoing_restores_text_and_identifiers(name: str) -> None:
    text, moves = RESTORED[name]
    game = Game(parse_notation(text)[0], machine("toy"))
    before = fingerprint(game.kernel)
    game.apply_all(moves)
    game.apply_all(reversed(game.inverses))
    assert fingerprint(game.kernel) == before
