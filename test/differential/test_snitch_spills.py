"""Programs of more values than registers: slots of the stack frame, shared and far from the stack pointer."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from differential.compiled import kernel
from differential.snitch import DIVIDES, run_snitch
from differential.test_snitch import agree, inputs_for
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of

REGISTERS = """kernel k(x) -> (y)
x {dtype} [{count}] heap
y {dtype} [{count}] heap
t {dtype} [{count}] register

{count}:u t[{{0}}] = x[{{0}}] + x[{last}-{{0}}]
{count}:u y[{last}-{{0}}] = t[{{0}}] * x[{{0}}]
"""
OUTLIERS = """kernel k() -> (y)
y {dtype} [44] heap

22:u y[{{0}}] = exp_approx({value})
22:u y[{{0}}+22] = exp_approx(index({{0}}))
"""


def frame_of(program: KernelOp) -> int:
    """Bytes of the stack frame."""
    text = snitch_source(program, DIVIDES).text
    found = re.search(r"addi sp, sp, -(\d+)", text) or re.search(r"li t0, -(\d+)\n\s+add sp, sp, t0", text)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(("dtype", "count"), [("f64", 40), ("f64", 290), ("f32", 40), ("i32", 40), ("i32", 290)])
def test_arrays_in_registers_may_have_more_elements_than_slots_in_reach(dtype: str, count: int) -> None:
    program = kernel(REGISTERS.format(dtype=dtype, count=count, last=count - 1))
    x = np.random.default_rng(count).integers(-9, 9, count).astype({"f64": "f8", "f32": "f4", "i32": "i4"}[dtype])
    found, _ = run_snitch(program, {"x": x})
    np.testing.assert_array_equal(found["y"], ((x + x[::-1]) * x)[::-1])
    assert (frame_of(program) > 2048) is (count > 256)


@pytest.mark.parametrize(("dtype", "value"), [("f16", "inf"), ("f32", "-3")])
def test_values_that_are_never_live_together_share_slots(dtype: str, value: str) -> None:
    program = kernel(OUTLIERS.format(dtype=dtype, value=value))
    assert frame_of(program) < 512
    found, _ = run_snitch(program, {})
    agree(program, found, interpret(nest_of(program), {}), exact=False)


@pytest.mark.parametrize("seed", range(6))
def test_random_orders_of_many_values(seed: int) -> None:
    """Values are written, changed and read in a random order, so that live ranges of all lengths overlap."""
    random = Random(seed)
    count = 70
    lines = [f"t[{k}] = x[{random.randrange(count)}] + {k}" for k in random.sample(range(count), count)]
    for _ in range(150):
        one, other, to = (random.randrange(count) for _ in range(3))
        lines.append(f"t[{to}] = t[{one}] {random.choice('+-')} t[{other}]")
    lines += [f"y[{k}] = t[{k}]" for k in random.sample(range(count), count)]
    text = REGISTERS.format(dtype="i32", count=count, last=0).partition("\n\n")[0]
    program = kernel("\n".join([text, "", *lines, ""]))
    inputs = inputs_for(program, seed)
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret(nest_of(program), inputs))
