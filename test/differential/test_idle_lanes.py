"""Lanes that a guard masks: what they may write, what must be kept, and what they compute with."""

from __future__ import annotations

import re

import numpy as np
import pytest

from differential.compiled import compiled, kernel, random_inputs, same
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret_stepwise

HEAD = "kernel k(x) -> (y)\nx f32 [{n}] heap\ny f32 [{n}] heap\n"
READ = "2:u 8:v y[{0}*8+{1}] = t[{0}*8+{1}]\n"
WRITTEN = "2:u 8:v t[{0}*8+{1}] = x[{0}*8+{1}]\n"

KEPT = {
    "another statement wrote the idle lanes": WRITTEN
    + "2:u 8:v where ({0}*8+{1} < 11) t[{0}*8+{1}] = x[{0}*8+{1}] * 2\n"
    + READ,
    "another statement sums up the idle lanes": WRITTEN
    + "2:u 8:v where ({0}*8+{1} < 11) t[{0}*8+{1}] += x[{0}*8+{1}]\n"
    + "2:u 8:v where ({0}*8+{1} >= 3) t[{0}*8+{1}] += x[{0}*8+{1}]\n"
    + READ,
    "each statement writes the other one's idle lanes": "2:u 8:v where ({0}*8+{1} < 11) t[{0}*8+{1}] = 1\n"
    + "2:u 8:v where ({0}*8+{1} >= 11) t[{0}*8+{1}] = x[{0}*8+{1}]\n"
    + READ,
    "one mask is larger": "2:u 8:v where ({0}*8+{1} < 13) t[{0}*8+{1}] = x[{0}*8+{1}]\n"
    + "2:u 8:v where ({0}*8+{1} < 11) t[{0}*8+{1}] = x[{0}*8+{1}] * 2\n"
    + "16 y[{0}] = 0\n"
    + "2:u 8:v where ({0}*8+{1} < 13) y[{0}*8+{1}] = t[{0}*8+{1}]\n",
    "the mask depends on a loop": WRITTEN
    + "3 2:u 8:v where ({0}+{1}*8+{2} < 13) t[{1}*8+{2}] += x[{1}*8+{2}]\n"
    + READ,
    "lanes go backwards": WRITTEN + "2:u 8:v where ({0}*8+{1} < 11) t[-{0}*8-{1}+15] = x[{0}*8+{1}] * 2\n" + READ,
}
"""Statements on `t[16]` in the function's frame."""


def agree(text: str, output: str) -> None:
    """The compiled kernel and the interpreter have the same bits."""
    executable, found = compiled(text, optimize="full")
    inputs = random_inputs(executable.parameters, 0)
    assert same(found[output], interpret_stepwise(kernel(text), inputs)[output], "f32")


@pytest.mark.parametrize("case", KEPT)
@pytest.mark.parametrize("memory", ["stack", "register"])
def test_what_idle_lanes_must_keep(case: str, memory: str) -> None:
    agree(HEAD.format(n=16) + f"t f32 [16] {memory}\n\n{KEPT[case]}", "y")


def test_idle_lanes_behind_a_row_are_in_the_next_one() -> None:
    rows = "4 2:u 8:v where ({1}*8+{2} < 14) t[-{0}+3,{1}*8+{2}] = x[{0}*14+{1}*8+{2}]\n"
    agree(HEAD.format(n=56) + f"t f32 [4, 14] stack\n\n{rows}4 14 y[{{0}}*14+{{1}}] = t[{{0}},{{1}}]\n", "y")


BLOCK = """
kernel k(a, b) -> (c)
a f32 [6, 9] heap
b f32 [9, 11] heap
c f32 [6, 11] heap
p f32 [9, 2, 8] stack
t f32 [6:N, 2, 8] register

9 2:u 8:v where ({1}*8+{2} < 11) p[{0},{1},{2}] = b[{0},{1}*8+{2}]
6
| 2:u 8:v where ({1}*8+{2} < 11) t[{0},{1},{2}] = 0
| 9 2:u 8:v where ({2}*8+{3} < 11) t[{0},{2},{3}] fma= a[{0},{1}] * p[{1},{2},{3}]
| 2:u 8:v where ({1}*8+{2} < 11) c[{0},{1}*8+{2}] = t[{0},{1},{2}]
"""


def test_blocks_with_idle_lanes_have_no_masked_arithmetic() -> None:
    agree(BLOCK, "c")
    code = compile(kernel(BLOCK), optimize="full").optimized_ir
    # The whole vector and the masked one of each sum are the same instructions, without a blend.
    assert "llvm.fma.v8f32" in code or "fmuladd" in code
    assert not re.search(r"select <8 x i1>", code)


def test_idle_lanes_do_not_compute_with_what_was_in_memory() -> None:
    """On some processors an operation on subnormal numbers takes 150 cycles, and a stack may be full of them."""
    executable, found = compiled(BLOCK, optimize="full")
    inputs = random_inputs(executable.parameters, 0)
    assert np.allclose(found["c"], inputs["a"] @ inputs["b"], 1e-5, 1e-5)
    assert "llvm.memset" in executable.optimized_ir or "zeroinitializer" in executable.optimized_ir
