"""Non-temporal stores and other moves: what the game reaches is compiled, and right, at sizes that do not divide."""

from __future__ import annotations

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import IllegalMove
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.move import Move
from qa.compiled import machine_code_differs

LANES = host().vector_lanes("f32")
pytestmark = pytest.mark.skipif(not LANES, reason="the processor has no vectors")
WIDEST = max(LANES, default=1)
NARROWER = max((lanes for lanes in LANES if lanes < WIDEST), default=WIDEST)
TEXT = """kernel k(x) -> (y)
x f32 [{rows}, {columns}] heap align 64
y f32 [{rows}, {columns}] heap align 64
t f32 [{rows}, {columns}] heap

{rows} {columns} t[{{0}},{{1}}] = exp(x[{{0}},{{1}}])
{rows} {columns} y[{{0}},{{1}}] = t[{{0}},{{1}}] * 2
"""
HINTED = [f"tile_scope@t:1{{size={WIDEST}}}", "vectorize@t:2", "hint@t{kind=nontemporal}"]
COLLAPSED = ["unmap@t:2", "collapse_scopes@t:1"]
AFTER = {
    "padding": ([f"pad_dim@t:1{{to={2 * WIDEST + 1}}}"], "has hints for the layout"),
    "exchanged dimensions": (["swap_dims@t:0"], "has hints for the layout"),
    "other memory": (["share_buffer@t{with=y}"], "has hints for the memory"),
    "no lanes": (["unmap@t:2"], ""),
    "narrower lanes": ([*COLLAPSED, f"tile_scope@t:1{{size={NARROWER}}}", "vectorize@t:2"], ""),
    "an odd offset": ([*COLLAPSED, "peel_scope@t:1{after=3}"], ""),
    "lanes at an odd offset": (
        [*COLLAPSED, "peel_scope@t:1{after=3}", f"peel_scope@t#1:1{{after={WIDEST}}}", "vectorize@t#1:1"],
        f"vectors of {4 * WIDEST} bytes of t[{{0}},{{1}}+3] are only known to be aligned to 4 bytes; the hint",
    ),
    "lanes at an aligned offset": ([*COLLAPSED, f"peel_scope@t:1{{after={WIDEST}}}", "vectorize@t#1:1"], ""),
    "masked lanes": (
        [*COLLAPSED, "peel_scope@t:1{after=3}", f"tile_scope@t#1:1{{size={WIDEST}}}", "vectorize@t#1:2"],
        "a guard masks lanes",
    ),
    "one row for all": (["join_scopes@t:0", "reuse_dims@t:0"], "which needs whole dimensions"),
    "peeled rows": (["peel_scope@t:0{after=3}", "parallelize@t#1:1"], ""),
}


def after(program: Program, moves: list[str]) -> Program:
    for move in moves:
        program = apply(program, Move.parse(move)).program
    return program


@pytest.mark.parametrize("rows", [7, 300])
@pytest.mark.parametrize("name", AFTER)
def test_after_a_hint(name: str, rows: int) -> None:
    moves, refusal = AFTER[name]
    hinted = after(Program(parse_notation(TEXT.format(rows=rows, columns=2 * WIDEST))[0], host()), HINTED)
    if refusal:
        with pytest.raises(IllegalMove) as refused:
            after(hinted, moves)
        assert refusal in str(refused.value)
        return
    assert machine_code_differs(after(hinted, moves), 1) is None


@pytest.mark.parametrize("columns", [300, 508])
@pytest.mark.parametrize("tail", ["guard", "peel"])
def test_tails(columns: int, tail: str) -> None:
    """Vectors of 64 bytes are refused in rows that do not fill them; those that divide the rows are right."""
    (kernel,) = parse_notation(TEXT.format(rows=3, columns=columns))
    tiled = after(
        Program(kernel, machine("x86-64-avx512")), [f"tile_scope@t:1{{size=16 tail={tail}}}", "vectorize@t#0:2"]
    )
    with pytest.raises(IllegalMove, match=r"a guard masks lanes|only known to be aligned to 16 bytes"):
        after(tiled, ["hint@t#0{kind=nontemporal}"])
    if 4 in LANES:
        moves = ["tile_scope@t:1{size=4}", "vectorize@t:2", "hint@t{kind=nontemporal}"]
        assert machine_code_differs(after(Program(kernel, host()), moves), 1) is None


def test_all_moves_that_follow_a_hint() -> None:
    """Each legal move after the hint leads to a program that is compiled, and right."""
    hinted = after(Program(parse_notation(TEXT.format(rows=7, columns=2 * WIDEST))[0], host()), HINTED)
    moves = legal_moves(hinted)
    assert len(moves) > 20
    for move in moves:
        assert machine_code_differs(apply(hinted, move).program, 1) is None, move
