"""Folded dimensions, memory shared with the caller, swizzles: all executions agree with the meaning of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.compiled import kernel, random_inputs, run, same
from pdojo.backends.calling.arrays import empty_for, parameters_of
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.semantics.oracle import check_valid
from pdojo.dialect.semantics.oracle.integer_sets import valid_by_sets
from pdojo.dialect.view.build import nest_of
from unit.backends.test_loops import execute, lowered

FOLDED = {
    "stencil of rows": """
kernel k(x) -> (y)
x f32 [19, 6] heap
y f32 [17, 6] heap
t f32 [19:N3, 6] heap

19
| 6 t[{0},{1}] = x[{0},{1}] * x[{0},{1}]
| 1 where ({0} >= 2) 6
| | y[{0}-2,{2}] = t[{0}-2,{2}] - t[{0}-1,{2}]
| | y[{0}-2,{2}] += t[{0},{2}]
""",
    "before the loop, and backwards": """
kernel k(x) -> (y)
x i32 [13] heap
y i32 [12] heap
t i32 [13:N5] stack

t[12] = x[12]
12
| t[11-{0}] = x[11-{0}]
| y[11-{0}] = t[12-{0}] - t[11-{0}]
""",
    "vectors in the other dimension": """
kernel k(x) -> (y)
x f32 [9, 16] heap
y f32 [8, 16] heap
t f32 [9:N2, 16] heap

16 t[0,{0}] = x[0,{0}]
8
| 2 8:v t[{0}+1,{1}*8+{2}] = x[{0}+1,{1}*8+{2}] + 1
| 2 8:v y[{0},{1}*8+{2}] = t[{0},{1}*8+{2}] - t[{0}+1,{1}*8+{2}]
""",
    "a copy per thread": """
kernel k(x) -> (y)
x f32 [6, 9] heap
y f32 [6, 8] heap
t f32 [54:N2] heap

6:p 9
| t[{0}*9+{1}] = x[{0},{1}] * 2
| 1 where ({1} >= 1) y[{0},{1}-1] = t[{0}*9+{1}] - t[{0}*9+{1}-1]
""",
    "registers": """
kernel k(x) -> (y)
x f32 [5, 8] heap
y f32 [5, 7] heap
t f32 [5:N, 8:N3] register

5 8:u
| t[{0},{1}] = x[{0},{1}] + 1
| 1 where ({1} >= 1) y[{0},{1}-1] = t[{0},{1}] - t[{0},{1}-1]
""",
    "tiles, which isl's lexicographic maximum fails for": """
kernel k(x) -> (y)
x f32 [9, 4] heap
y f32 [7, 4] heap
t f32 [3:N2, 8, 2] heap

9
| 4 t[{0}//4,{1}//2*4+{0}%4,{1}%2] = x[{0},{1}] * x[{0},{1}]
| 1 where ({0} >= 2) 4
| | y[{0}-2,{2}] = t[({0}+2)//4-1,{2}//2*4+({0}+2)%4,{2}%2] - t[({0}+3)//4-1,{2}//2*4+({0}+3)%4,{2}%2]
| | y[{0}-2,{2}] += t[{0}//4,{2}//2*4+{0}%4,{2}%2]
""",
    "an index with divisions": """
kernel k(x) -> (y)
x i32 [40] heap
y i32 [40] heap
t i32 [20:N3] stack

40
| 1 where ({0}%2 < 1) t[{0}//2] = x[{0}]
| y[{0}] = t[{0}//2] * x[{0}]
""",
}

SHARED = {
    "softmax's exponentials in the output": """
kernel k(x) -> (y)
x i32 [5, 13] heap
y i32 [5, 13] heap -> y, e
s i32 [5] heap

5 13 e[{0},{1}] = x[{0},{1}] * x[{0},{1}]
5
| s[{0}] = 1
| 13 s[{0}] += e[{0},{1}]
5 13 y[{0},{1}] = e[{0},{1}] - s[{0}]
""",
    "before the result, in vectors and threads": """
kernel k(x) -> (y)
x f32 [6, 16] heap
y f32 [6, 16] heap -> y, e, f

6:p
| 2 8:v e[{0},{1}*8+{2}] = x[{0},{1}*8+{2}] + 1
| 2 8:v f[{0},{1}*8+{2}] = e[{0},{1}*8+{2}] * 2
| 2 8:v y[{0},{1}*8+{2}] = f[{0},{1}*8+{2}] - x[{0},{1}*8+{2}]
""",
    "after the last read of what the caller gave": """
kernel k(c, x) -> (c)
c i32 [9] heap -> c, t
x i32 [9] heap
s i32 [] heap

s[] = 0
9 s[] += c[{0}]
9 t[{0}] = x[{0}] * x[8-{0}]
9 c[{0}] = t[{0}] - s[]
""",
    "scalars": """
kernel k(x) -> (y)
x f64 [7] heap
y f64 [] heap -> y, t

t[] = 0
7 t[] += x[{0}]
y[] = t[] * 3
""",
    "a stencil behind its reads": """
kernel k(x) -> (y)
x f32 [9] heap
y f32 [9] heap -> y, t

9 t[{0}] = x[{0}]
8 y[{0}] = t[{0}] - t[{0}+1]
y[8] = t[8] * 2
""",
}

SWIZZLED = {
    "a transpose": """
kernel k(x) -> (y)
x f32 [11, 16] heap
y f32 [16, 11] heap
t f32 [11, 16^0] heap

11 16 t[{0},{1}] = x[{0},{1}]
16 11 y[{0},{1}] = t[{1},{0}]
""",
    "granules of three": """
kernel k(x) -> (y)
x i32 [5, 12] heap
y i32 [5, 12] heap
t i32 [5, 12^0*3] stack

5 12 t[{0},{1}] = x[{0},11-{1}]
5 12 y[{0},{1}] = t[{0},{1}] * 2
""",
    "vectors in granules, threads": """
kernel k(x) -> (y)
x f32 [6, 32] heap
y f32 [6, 32] heap
t f32 [6, 32^0*8] heap

6:p 4 8:v t[{0},{1}*8+{2}] = x[{0},{1}*8+{2}] + 1
6:p 4 8:v where ({1}*8+{2} < 29) y[{0},{1}*8+{2}] = t[{0},{1}*8+{2}] * 2
6 3 y[{0},{1}+29] = t[5-{0},{1}+29]
""",
    "an outer dimension by an inner one, unrolled": """
kernel k(x) -> (y)
x f32 [8, 3] heap
y f32 [8, 3] heap
t f32 [8^1, 3] stack

8:u 3:u t[{0},{1}] = x[{0},{1}]
8 3:u y[{0},{1}] = t[7-{0},{1}]
""",
    "beside lanes in slots, and two at once": """
kernel k(x) -> (y)
x f32 [3, 4, 8, 16] heap
y f32 [3, 4, 8, 16] heap
t f32 [3:N, 4, 8^1, 16^1*4] heap

3
| 4 8 16 t[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
| 4 8 4 4:v y[{0},{1},{2},{3}*4+{4}] = t[{0},{1},{2},{3}*4+{4}] - x[{0},3-{1},{2},{3}*4+{4}]
""",
    "a broadcast, an accumulation": """
kernel k(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 8] heap
t f32 [4, 4^0] heap

4 4 t[{0},{1}] = 0
4 4 2 t[{0},{1}] += x[{0},{1}*2+{2}]
4 4 2:v y[{0},{1}*2+{2}] = t[{0},{1}]
""",
}

FORMS = FOLDED | SHARED | SWIZZLED
BROKEN = {
    "a stencil that reads what is overwritten": SHARED["a stencil behind its reads"]
    .replace("8 y[{0}] = t[{0}] - t[{0}+1]", "8 y[{0}+1] = t[{0}] - t[{0}+1]")
    .replace("y[8] = t[8] * 2", "y[0] = t[8] * 2"),
    "a result that is overwritten": SHARED["softmax's exponentials in the output"] + "5 13 e[{0},{1}] = 1\n",
    "the caller's values overwritten": SHARED["after the last read of what the caller gave"].replace(
        "9 c[{0}] = t[{0}] - s[]", "9 c[{0}] += t[{0}]"
    ),
    "a slot too few": FOLDED["stencil of rows"].replace("19:N3", "19:N2"),
    "backwards by two": FOLDED["before the loop, and backwards"].replace("t[12-{0}]", "t[12]"),
}


def cells_of(text: str) -> tuple[KernelOp, Program]:
    program = kernel(text)
    return program, Program(program, machine("toy"))


@pytest.mark.parametrize("name", FORMS)
def test_every_execution_agrees(name: str) -> None:
    program, state = cells_of(FORMS[name])
    validate(state)
    assert check_valid(program) is None
    assert valid_by_sets(program).fault is None
    executable = compile(program, threads=3)
    dtypes = {a.name: a.dtype for a in nest_of(program).arrays.values()}
    for seed in range(3):
        inputs = random_inputs(executable.parameters, seed)
        wanted = interpret_stepwise(program, inputs)
        others: dict[str, dict[str, NDArray[Any]]] = {
            "batched": interpret(program, inputs),
            "cells": interpret(program, inputs, storage="cells", seed=seed),
            "cells, stepwise": interpret_stepwise(program, inputs, storage="cells", seed=seed),
            "compiled": run(executable, inputs),
        }
        for how, found in others.items():
            for array, values in wanted.items():
                assert same(found[array], values, dtypes[array]), (how, array)


@pytest.mark.parametrize("name", FORMS)
def test_loops(name: str) -> None:
    """The loop form too, run by xDSL's interpreter."""
    text = FORMS[name]
    program = kernel(text)
    parameters = parameters_of(nest_of(program))
    inputs = random_inputs(parameters, 1)
    arrays = [inputs[p.name] if p.name in inputs else empty_for(p) for p in parameters]
    results = execute(lowered(text, sequential=False), "k", *arrays)
    wanted = interpret_stepwise(program, inputs)
    for parameter, found in zip(parameters, results, strict=True):
        if parameter.written:
            assert same(found, wanted[parameter.name], parameter.dtype)


@pytest.mark.parametrize("name", BROKEN)
def test_cells_show_what_is_wrong(name: str) -> None:
    """What validation refuses, memory shows."""
    program, state = cells_of(BROKEN[name])
    with pytest.raises(Exception, match=r"would be (overwritten before its last read|read before it is written)"):
        validate(state)
    assert check_valid(program) is not None
    assert valid_by_sets(program).fault is not None
    executable = compile(program)
    inputs = random_inputs(executable.parameters, 1)
    wanted = interpret(program, inputs)
    for found in (interpret(program, inputs, storage="cells"), run(executable, inputs)):
        assert not all(np.array_equal(found[name], wanted[name]) for name in wanted)
