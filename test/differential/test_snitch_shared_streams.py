"""Streams that several statements share on a simulated Snitch core, and the order of statements that permits them."""

from __future__ import annotations

import numpy as np
import pytest

from differential.compiled import kernel
from differential.snitch import SNITCH, run_snitch
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.flow.program import Program
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import make_moves
from qa.simulated import simulated_code_differs

BY_HAND = {
    "results of three statements": (
        "x [24] y [24, 3]",
        "1:s 24:f\n| y[{1},0] = x[{1}] * 3\n| y[{1},1] = x[{1}] + 1\n| y[{1},2] = fnma(x[{1}], 2, 1)",
    ),
    "interleaved results": (
        "x [24] y [24, 2]",
        "1:s 6:f\n| 4:u y[{1}*4+{2},1] = x[{1}*4+{2}] * 3\n| 4:u y[{1}*4+{2},0] = x[{1}*4+{2}] - 1",
    ),
    "first and second operands": (
        "x [48] y [24, 2]",
        "1:s 24:f\n| y[{1},0] = x[{1}*2] + x[{1}*2+1]\n| y[{1},1] = x[{1}*2] - x[{1}*2+1]",
    ),
}
"""Arrays, and a tree with more accesses than there are streams."""


@pytest.mark.parametrize("name", BY_HAND)
def test_elements_come_in_the_order_of_the_statements(name: str) -> None:
    arrays, tree = BY_HAND[name]
    x, shape_x, y, shape_y = arrays.replace(", ", ",").split()
    text = f"kernel k(x) -> (y)\nmachine snitch\n{x} f64 {shape_x} heap\n{y} f64 {shape_y} heap\n\n{tree}\n"
    program = kernel(text)
    inputs = random_inputs(parameters_of(nest_of(program)), 3)
    found, _ = run_snitch(program, inputs, SNITCH)
    np.testing.assert_array_equal(found["y"], interpret_stepwise(program, inputs)["y"])


KERNELS = {
    "complex product": (
        "a [64] b [64] y [64] p [32] q [32]",
        "32\n| p[{0}] = a[{0}*2] * b[{0}*2]\n| q[{0}] = a[{0}*2+1] * b[{0}*2+1]\n| y[{0}*2] = p[{0}] - q[{0}]\n"
        "| p[{0}] = a[{0}*2] * b[{0}*2+1]\n| q[{0}] = a[{0}*2+1] * b[{0}*2]\n| y[{0}*2+1] = p[{0}] + q[{0}]",
        5.5,
    ),
    "sums and differences": (
        "a [64] b [32] y [64] p [32] q [32]",
        "32\n| p[{0}] = a[{0}*2] + a[{0}*2+1]\n| q[{0}] = a[{0}*2] - a[{0}*2+1]\n| y[{0}*2] = p[{0}] * b[{0}]\n"
        "| y[{0}*2+1] = q[{0}] * b[{0}]",
        7.5,
    ),
}
"""Arrays, statements, and the most cycles of an iteration, set-up included."""


@pytest.mark.parametrize("name", KERNELS)
def test_statements_are_ordered_so_that_streams_suffice(name: str) -> None:
    arrays, tree, most = KERNELS[name]
    words = arrays.split()
    declared = "\n".join(f"{array} f64 {shape} heap" for array, shape in zip(words[::2], words[1::2], strict=True))
    plain = kernel(f"kernel k(a, b) -> (y)\n{declared}\n\n{tree}\n")
    tuned = make_moves(plain, SNITCH, "heuristic").after
    assert simulated_code_differs(Program(tuned, SNITCH), 3) is None
    inputs = random_inputs(parameters_of(nest_of(plain)), 4)
    found, simulated = run_snitch(tuned, inputs, SNITCH)
    np.testing.assert_allclose(found["y"], interpret_stepwise(plain, inputs)["y"], rtol=1e-12, atol=1e-12)
    assert simulated.cycles <= most * 32
