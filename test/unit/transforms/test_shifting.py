"""Fusing with a shift and pipelining, at odd sizes: what is legal is the same as what keeps the meaning."""

from __future__ import annotations

from contextlib import suppress

import pytest

from pdojo.dialect.flow.collision import EQUAL
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.oracle.compare import equivalent
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.storage import accesses_of, physical_index, physical_shape
from pdojo.errors import Undecided
from pdojo.transforms.apply import apply
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.game import Game
from pdojo.transforms.structure import shifting
from pdojo.transforms.structure.fusion import JoinScopes
from pdojo.transforms.structure.pipelining import Pipeline, Unpipeline
from pdojo.transforms.structure.shifting import conflict_delayed, conflict_while_delayed

STENCIL = """kernel k(x) -> (y)
x f32 [{wide}] heap
y f32 [{narrow}] heap
t f32 [{wide}] heap

{wide} t[{{0}}] = exp(x[{{0}}])
{narrow} y[{{0}}] = t[{{0}}] + t[{{0}}+{halo}]
"""

STAGED = """kernel k(x) -> (y)
x f32 [{n}, 3] heap
y f32 [{n}] heap
t f32 [{n}:N{slots}, 3] heap

{n}
| 3 t[{{0}},{{1}}] = x[{{0}},{{1}}]
| y[{{0}}] = 0
| 3 y[{{0}}] += t[{{0}},{{1}}]
"""


def program(text: str) -> Program:
    return Game(parse_notation(text)[0], machine("toy")).program


@pytest.mark.parametrize("halo", [1, 2, 4])
@pytest.mark.parametrize("narrow", [1, 3, 7])
def test_a_shift_is_legal_iff_it_keeps_the_meaning(halo: int, narrow: int) -> None:
    before = program(STENCIL.format(wide=narrow + halo, narrow=narrow, halo=halo))
    site = before.nest.scopes[0]
    for shift in range(1, site.extent):
        move = JoinScopes(shift)
        legal = move.check(before, site) is None
        assert legal is (shift >= halo)
        assert legal is (equivalent(before.nest, rewritten(before, move, site).nest) is None)


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_pipeline_needs_a_slot_per_stage(slots: int, stages: int) -> None:
    before = program(STAGED.format(n=7, slots=slots))
    site = before.nest.scopes[0]
    move = Pipeline(stages)
    legal = move.check(before, site) is None
    assert legal is (stages <= slots)
    assert legal is (equivalent(before.nest, rewritten(before, move, site).nest) is None)


@pytest.mark.parametrize("stages", [2, 3])
def test_pipelines_within_pipelines_come_back(stages: int) -> None:
    """Wrapped parts, parts with guards of their own and several children."""
    state = program(STAGED.format(n=5, slots=4))
    first = apply(state, Pipeline(stages, 2).as_move(f"%{state.nest.scopes[0].id}"))
    inner = next(s for s in first.program.nest.scopes if s.extent == 1 and len(s.children) > 1)
    again = apply(first.program, Pipeline(2, 1).as_move(f"%{inner.parent.id}")) if inner.parent else first
    assert again.inverse is not None
    assert first.inverse is not None
    back = apply(apply(again.program, again.inverse).program, first.inverse).program
    assert print_notation(back.kernel) == print_notation(state.kernel)


def test_slots_of_lanes_are_not_negative() -> None:
    """A reused dimension keeps the lanes of an index, also where something is subtracted from them."""
    text = """kernel k(x) -> (y)
x f32 [16] heap
y f32 [16] heap
t f32 [16:N] stack

5 where ({0} >= 1)
| 4:v t[{0}*4+{1}-4] = x[{0}*4+{1}-4]
| 4:v y[{0}*4+{1}-4] = exp(t[{0}*4+{1}-4])
"""
    nest = nest_of(parse_notation(text)[0])
    buffer = nest.arrays["t"].buffer
    assert physical_shape(nest, buffer) == (4,)
    for leaf, access in accesses_of(nest, buffer):
        assert [e.bounds(leaf.extents) for e in physical_index(access, leaf.chain)] == [(0, 3)]


@pytest.mark.parametrize("first", ["{0}", "{0}+20", "2*{0}", "3*{0}+1", "{0}//4", "{0}%4"])
@pytest.mark.parametrize("second", ["{0}", "{0}+9", "{0}+20", "2*{0}+5", "{0}//3", "{0}//2+{0}%2*8"])
def test_many_delays_are_asked_about_at_once(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> None:
    """Two questions settle many delays, if no greater one has a conflict, or no less one."""
    before = program(
        f"kernel k(x) -> (y)\nx f32 [12] heap\ny f32 [12] heap\nt f32 [64] heap\n\n"
        f"64 t[{{0}}] = 0\n12\n| t[{first}] = x[{{0}}]\n| y[{{0}}] = t[{second}]\n"
    )
    one, other = ([leaf] for leaf in before.nest.leaves[1:])
    monkeypatch.setattr(shifting, "FEW_DELAYS", 0)
    settled = 0
    for least in range(-11, 12, 2):
        for count in range(1, 12 - least):
            delays = range(least, least + count)
            found = [conflict_delayed(before, one, other, (EQUAL,), delay) is not None for delay in delays]
            monkeypatch.setattr(shifting, "MOST_DELAYS", count)
            assert (conflict_while_delayed(before, one, other, (), delays) is not None) is any(found)
            monkeypatch.setattr(shifting, "MOST_DELAYS", 0)
            with suppress(Undecided):
                assert conflict_while_delayed(before, one, other, (), delays) is None
                assert not any(found)
                settled += 1
    assert settled


def test_long_pipelines_are_judged_at_once() -> None:
    before = program(STAGED.format(n=100000, slots=100000).replace(":N100000", ""))
    after = apply(before, Pipeline(90000).as_move(f"%{before.nest.scopes[0].id}")).program
    assert Unpipeline(90000).check(after, after.nest.scopes[0]) is None
    assert Unpipeline(89999).check(after, after.nest.scopes[0]) is not None
