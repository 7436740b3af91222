"""Inverses: legal and leading back, or none."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.transforms.apply import apply
from pdojo.transforms.explain import explain
from pdojo.transforms.move import Move

GUARDED = """\
kernel guarded(x) -> (y)
x f32 [7, 8] heap
y f32 [7, 8] heap

4 2 where ({0}*2+{1} < 7) 8 where ({0}*2+{1}-{2} >= -3) y[{0}*2+{1},{2}] = x[{0}*2+{1},-{2}+7] * 2
"""
PARALLEL = """\
kernel parallel(x) -> (y)
x f64 [8] heap
y f64 [8] heap

8:p y[{0}] = x[{0}]
"""
DIVIDED = """\
kernel divided(x) -> (y)
x f32 [2] heap
y f32 [3] heap

3 y[{0}] = x[{0}//2]
"""


def program(text: str, on: str = "toy") -> Program:
    (kernel,) = parse_notation(text)
    return Program(kernel, machine(on))


@pytest.mark.parametrize("move", [*(f"peel_scope@y:0{{after={k}}}" for k in (1, 2, 3)), "peel_scope@y:1{after=1}"])
def test_guarded_scopes_that_were_peeled_come_back(move: str) -> None:
    """A guard that one iteration does not show is that of an index."""
    before = program(GUARDED)
    made = apply(before, Move.parse(move))
    assert made.inverse is not None
    assert apply(made.program, made.inverse).program.text == before.text


@pytest.mark.parametrize("size", [3])
def test_guarded_scopes_that_were_tiled_with_a_peeled_tail_come_back(size: int) -> None:
    before = program(GUARDED)
    made = apply(before, Move.parse(f"tile_scope@y:0{{size={size} tail=peel}}"))
    assert made.inverse is not None
    assert apply(made.program, made.inverse).program.text == before.text


def test_no_move_gives_a_mapping_that_the_machine_lacks() -> None:
    before, move = program(PARALLEL, "snitch"), Move.parse("unmap@y:0")
    assert apply(before, move).inverse is None
    assert explain(before, move).inverse == ""
    there = apply(program(PARALLEL), move)
    assert str(there.inverse) == f"parallelize@{there.resolved.at}"


def test_a_division_may_leave_no_inverse() -> None:
    """Two iterations that read `x[0]`, and one that reads `x[1]`, do not show it."""
    made = apply(program(DIVIDED), Move.parse("peel_scope@y:0{after=2}"))
    assert all(leaf.reads[0].index[0].is_constant for leaf in made.program.nest.leaves)
    assert made.inverse is None


@pytest.mark.parametrize("term", [0, 1])
@pytest.mark.parametrize("second", ["w[{0}] + t[{0}]", "w[{0}] - t[{0}]", "t[{0}] + w[{0}]", "t[{0}] - w[{0}]"])
@pytest.mark.parametrize("first", ["x[{0}] + y[{0}]", "x[{0}] - y[{0}]"])
def test_reassociated_sums_come_back(first: str, second: str, term: int) -> None:
    arrays = "\n".join(f"{name} f64 [8] heap" for name in "xywz")
    before = program(
        f"kernel k(x, y, w) -> (z)\n{arrays}\nt f64 [8] stack\n\n8\n| t[{{0}}] = {first}\n| z[{{0}}] = {second}\n"
    )
    made = apply(before, Move.parse(f"reassociate@z{{term={term}}}"))
    inputs = random_inputs(parameters_of(before.nest), 3)
    wanted, found = interpret(before.nest, inputs)["z"], interpret(made.program.nest, inputs)["z"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert made.inverse is not None
    assert apply(made.program, made.inverse).program.text == before.text
