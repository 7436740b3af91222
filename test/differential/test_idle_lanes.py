"""Lanes that a guard masks: what they may write, what must be kept, and what they compute with."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from differential.compiled import compiled, kernel, random_inputs, same
from pdojo.backends.calling.arrays import parameters_at, parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of

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


OPEN_HEAD = """
kernel k(x) -> (y)
size N in 1..14
size M in 1..14
x f32 [16] heap
y f32 [16] heap
t f32 [16] register

"""
OPEN_READ = "2:u 8:v where (N-{0}*8-{1} >= 1) y[{0}*8+{1}] = t[{0}*8+{1}]\n"
OPEN_KEPT = {
    "the reader has no mask": "2:u 8:v where (N-{0}*8-{1} >= 1) t[{0}*8+{1}] = x[{0}*8+{1}]\n" + READ,
    "the reader has the mask of another size": "2:u 8:v where (M-{0}*8-{1} >= 1) t[{0}*8+{1}] = 3\n" + OPEN_READ,
    "the reader has the mask from another place": "2:u 8:v where (N-{0}*8-{1} >= 3) t[{0}*8+{1}] = 3\n" + OPEN_READ,
    "the store goes backwards": "2:u 8:v where (N-{0}*8-{1} >= 1) t[-{0}*8-{1}+15] = 3\n" + OPEN_READ,
    "one mask of two": "2:u 8:v where (N-{0}*8-{1} >= 1, M-{0}*8-{1} >= 1) t[{0}*8+{1}] = 3\n" + OPEN_READ,
    "the mask depends on a loop": "3 2:u 8:v where (N-{0}-{1}*8-{2} >= 1) t[{1}*8+{2}] += x[{1}*8+{2}]\n" + OPEN_READ,
    "one reader of two has no mask": "2:u 8:v where (N-{0}*8-{1} >= 1) t[{0}*8+{1}] = 3\n" + READ + OPEN_READ,
    "nothing but the store has the mask": "8:v where (N-{0} >= 1) t[{0}*2] = 3\n" + OPEN_READ,
}
"""Statements on `t[16]`, which is 1 before them; sizes decide which lanes are idle."""


def test_idle_lanes_behind_a_row_are_in_the_next_one_at_any_size() -> None:
    head = "kernel k(x) -> (y)\nsize N in 1..14\nx f32 [4, N] heap\ny f32 [4, N] heap\nt f32 [4, 14] stack\n\n"
    rows = "4 2:u 8:v where (N-{1}*8-{2} >= 1) t[-{0}+3,{1}*8+{2}] = x[{0},{1}*8+{2}]\n"
    agree_at_all_sizes(f"{head}{rows}4 14 where (N-{{1}} >= 1) y[{{0}},{{1}}] = t[{{0}},{{1}}]\n", "y")


def agree_at_all_sizes(text: str, output: str) -> None:
    """The compiled kernel and the interpreter have the same bits, at all values of sizes."""
    program, parsed = compile(kernel(text), optimize="full"), kernel(text)
    nest = parameters_of(nest_of(parsed))
    for n, m in product((1, 2, 7, 8, 9, 11, 13, 14), repeat=2):
        sizes = {"N": n, "M": m} if "size M" in text else {"N": n}
        inputs = random_inputs((*parameters_at(nest, sizes),), n + m)
        wanted = interpret_stepwise(parsed, inputs, sizes=sizes)[output]
        found = np.full_like(wanted, np.nan)
        program(**inputs, **{output: found}, **sizes)
        assert same(found, wanted, "f32"), sizes


@pytest.mark.parametrize("case", OPEN_KEPT)
def test_what_idle_lanes_must_keep_at_any_size(case: str) -> None:
    agree_at_all_sizes(OPEN_HEAD + "2:u 8:v t[{0}*8+{1}] = 1\n16 y[{0}] = 0\n" + OPEN_KEPT[case], "y")


OPEN_BLOCK = """
kernel k(a, b) -> (c)
size N in 1..14
a f32 [6, 9] heap
b f32 [9, N] heap
c f32 [6, N] heap
p f32 [9, 2, 8] stack
t f32 [6:N, 2, 8] register

9 2:u 8:v where (N-{1}*8-{2} >= 1) p[{0},{1},{2}] = b[{0},{1}*8+{2}]
6
| 2:u 8:v where (N-{1}*8-{2} >= 1) t[{0},{1},{2}] = 0
| 9 2:u 8:v where (N-{2}*8-{3} >= 1) t[{0},{2},{3}] fma= a[{0},{1}] * p[{1},{2},{3}]
| 2:u 8:v where (N-{1}*8-{2} >= 1) c[{0},{1}*8+{2}] = t[{0},{1},{2}]
"""


def test_blocks_of_any_size_have_no_masked_arithmetic() -> None:
    agree_at_all_sizes(OPEN_BLOCK, "c")
    code = compile(kernel(OPEN_BLOCK), optimize="full").optimized_ir
    assert not re.search(r"select <8 x i1>[^\n]*<8 x float>", code)
