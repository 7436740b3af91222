"""Threads that wait for each other where not all threads of their block are, on fibers and in gpu form."""

from __future__ import annotations

import re
from functools import cache

import pytest

from differential.compiled import kernel, random_inputs
from differential.device_code import CompiledKernels, compile_kernels, is_noticed
from differential.library import close
from differential.test_gpu_ir import agree
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import InvalidKernel
from toolchain import require_fibers

TWO = """kernel k(x) -> (y)
x f32 [3, 4, 24] heap
y f32 [3, 4, 24] heap
t f32 [3:N, 4, 24] shared

3:g
| 4:b 24:b y[{0},{1},{2}] = 0
"""
THREE = """kernel k(x) -> (y)
x f32 [2, 2, 3, 10] heap
y f32 [2, 2, 3, 10] heap
t f32 [2:N, 2, 3, 10] shared

2:g
| 2:b 3:b 10:b y[{0},{1},{2},{3}] = 0
"""
BARRIERS = {
    "a loop around threads that run two statements": TWO
    + """| 24:b t[{0},0,{1}] = x[{0},0,{1}]
| 3
| | 24:b
| | | y[{0},{1},{2}] = t[{0},{1},23-{2}]
| | | t[{0},{1}+1,{2}] = y[{0},{1},{2}] * 2
""",
    "a guard": TWO
    + """| 4:b where ({1} < 3)
| | 24:b t[{0},{1},{2}] = x[{0},{1},{2}]
| | 24:b y[{0},{1},{2}] = t[{0},{1},23-{2}]
""",
    "fewer iterations than the block has threads for": TWO
    + """| 3:b
| | 24:b t[{0},{1},{2}] = x[{0},{1},{2}]
| | 24:b y[{0},{1},{2}] = t[{0},{1},23-{2}]
""",
    "a loop around the threads": TWO
    + """| 5 4:b where ({1}+{2} < 5)
| | 24:b t[{0},{2},{3}] = x[{0},{2},{3}] * {1}
| | 24:b y[{0},{2},{3}] += t[{0},{2},23-{3}]
""",
    "a loop whose iterations depend on the thread": TWO
    + """| 4:b
| | 5 where ({1}+{2} >= 3, {2} <= {1}+1)
| | | 24:b t[{0},{1},{3}] = x[{0},{1},{3}] * {2}
| | | 24:b y[{0},{1},{3}] += t[{0},{1},23-{3}]
""",
    "an unrolled loop": TWO
    + """| 4:b where ({1} >= 1)
| | 3:u where ({2} < {1}, {0}+{2} >= 1)
| | | 24:b t[{0},{1},{3}] = x[{0},{1},{3}] * {2}
| | | 24:b y[{0},{1},{3}] += t[{0},{1},23-{3}]
""",
    "a guard with a division": TWO
    + """| 4:b
| | 6 where (({1}+{2})%3 < 2)
| | | 24:b t[{0},{1},{3}] = x[{0},{1},{3}] * {2}
| | | 24:b y[{0},{1},{3}] += t[{0},{1},23-{3}]
""",
    "the second of three dimensions": THREE
    + """| 2:b 3:b where ({2} < 2)
| | 10:b t[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
| | 10:b y[{0},{1},{2},{3}] = t[{0},{1},{2},9-{3}]
""",
    "two guards": THREE
    + """| 2:b where ({0}+{1} < 2)
| | 3:b where ({1}+{2} < 3)
| | | 10:b t[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
| | | 10:b y[{0},{1},{2},{3}] = t[{0},{1},{2},9-{3}]
""",
    "the others have another nest": TWO
    + """| 4:b where ({1} < 2)
| | 24:b t[{0},{1},{2}] = x[{0},{1},{2}]
| | 24:b y[{0},{1},{2}] = t[{0},{1},23-{2}]
| 4:b where ({1} >= 2)
| | 24:b t[{0},{1},{2}] = x[{0},{1},{2}] * 2
| | 24:b y[{0},{1},{2}] = t[{0},{1},(7*{2})%24]
""",
    "barriers at two depths": TWO
    + """| 4:b where ({1} < 3)
| | 24:b t[{0},{1},{2}] = x[{0},{1},{2}]
| | 2 where ({1}+{2} < 3)
| | | 24:b y[{0},{1},{3}] += t[{0},{1},23-{3}]
| | | 24:b t[{0},{1},{3}] = y[{0},{1},(5*{3})%24] * 2
| | 24:b y[{0},{1},{2}] += t[{0},{1},23-{2}]
""",
    "a group of a warp, and one that is none": """kernel k(x) -> (y)
x f32 [2, 3, 3, 8] heap
y f32 [2, 3, 3, 8] heap
t f32 [2:N, 3, 3, 8] shared

2:g
| 3:b 3:b 8:b y[{0},{1},{2},{3}] = 0
| 3:b where ({1} < 2)
| | 3:b where ({2} >= {1})
| | | 8:b t[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
| | | 8:b y[{0},{1},{2},{3}] = t[{0},{1},{2},7-{3}]
| | 3:b 8:b t[{0},{1},{2},{3}] = y[{0},{1},2-{2},{3}]
| | 3:b
| | | 8:b y[{0},{1},{2},{3}] = t[{0},{1},{2},7-{3}]
| | | 8:b t[{0},{1},{2},{3}] = y[{0},{1},{2},(3*{3})%8]
| | | 8:b y[{0},{1},{2},{3}] += t[{0},{1},{2},7-{3}]
""",
    "groups of a warp": """kernel k(x) -> (y)
x f32 [2, 5, 8] heap
y f32 [2, 5, 8] heap
t f32 [2:N, 5, 8] shared

2:g
| 5:b 8:b y[{0},{1},{2}] = 0
| 5:b where (2*{1} < 7)
| | 8:b t[{0},{1},{2}] = x[{0},{1},{2}]
| | 8:b y[{0},{1},{2}] = t[{0},{1},7-{2}]
""",
    "groups of four that begin anywhere": """kernel k(x) -> (y, z)
x f32 [2, 4, 3, 4] heap
y f32 [2, 4, 13] heap
z f32 [2, 4, 3, 4] heap
t f32 [2:N, 4, 3, 4] shared

2:g 4:b
| 13:b y[{0},{1},{2}] = 0
| 3:b
| | 4:b t[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]
| | 4:b z[{0},{1},{2},{3}] = t[{0},{1},{2},3-{3}]
""",
    "lanes, which the rest of their warp copies": """kernel k(x) -> (y, z)
x f32 [2, 3, 8] heap
y f32 [2, 3, 8] heap
z f32 [2, 3, 32] heap
t f32 [2:N, 3, 8] shared
r f32 [2:N, 3, 8] register

2:g 3:b
| 32:w z[{0},{1},{2}] = 0
| 8:w y[{0},{1},{2}] = 0
| 8:w where ({1}+{2} < 5)
| | t[{0},{1},{2}] = x[{0},{1},{2}]
| | r[{0},{1},{2}] = t[{0},{1},{2}]
| | y[{0},{1},{2}] = r[{0},{1},{2}] + x[{0},{1},{2}]
""",
    "asynchronous copies": TWO
    + """| 4:b where ({1} < 3)
| | 24:b t[{0},{1},{2}] async= x[{0},{1},{2}]
| | 24:b y[{0},{1},{2}] = t[{0},{1},23-{2}]
""",
    "asynchronous copies in a loop": TWO
    + """| 5 4:b where ({1}+{2} < 5)
| | 24:b t[{0},{2},{3}] async= x[{0},{2},{3}]
| | 24:b y[{0},{2},{3}] += t[{0},{2},23-{3}]
""",
}
"""Groups of threads that wait for each other."""
SUMS = {
    "a guard around the threads that add up": """kernel k(x) -> (y)
x f32 [2, 4, 24] heap
y f32 [2, 4] heap

2:g
| 4:b y[{0},{1}] = 0
| 4:b where ({1} < 3) 24:b y[{0},{1}] += x[{0},{1},{2}]
""",
    "a guard on the threads around, of the threads that add up": """kernel k(x) -> (y)
x f32 [2, 4, 24] heap
y f32 [2, 4] heap

2:g
| 4:b y[{0},{1}] = 0
| 4:b 24:b where ({1} < 3) y[{0},{1}] += x[{0},{1},{2}]
""",
    "several times": """kernel k(x) -> (y)
x f32 [2, 4, 5, 24] heap
y f32 [2, 4, 2] heap

2:g
| 4:b 2:b y[{0},{1},{2}] = 0
| 4:b
| | 3 where ({1}+{2} < 5)
| | | 24:b 2 y[{0},{1},{4}] += x[{0},{1},{2},{3}] * {4}
""",
    "groups of four that begin anywhere": """kernel k(x) -> (y, z)
x f32 [2, 4, 3, 4] heap
y f32 [2, 4, 13] heap
z f32 [2, 4, 3] heap

2:g 4:b
| 13:b y[{0},{1},{2}] = 0
| 3:b
| | z[{0},{1},{2}] = 0
| | 4:b z[{0},{1},{2}] += x[{0},{1},{2},{3}]
""",
    "cells in groups that begin anywhere": """kernel k(x) -> (y, z)
x f32 [2, 4, 3, 4] heap
y f32 [2, 4, 13] heap
z f32 [2, 4] heap

2:g
| 4:b 13:b y[{0},{1},{2}] = 0
| 4:b z[{0},{1}] = 0
| 3:b where ({1} < 2)
| | 13:b y[{0},0,{2}] += 1
| | 4:b 3:b z[{0},{2}] += x[{0},{2},{1},{3}]
""",
    "warps of eight": """kernel k(x) -> (y)
x f32 [2, 3, 8] heap
y f32 [2, 3] heap

2:g
| 3:b y[{0},{1}] = 0
| 4:b where ({1} < 3) 8:w y[{0},{1}] += x[{0},{1},{2}]
""",
    "to the registers of a warp": """kernel k(x) -> (y)
x f32 [2, 3, 8] heap
y f32 [2, 3, 8] heap
r f32 [2:N, 4] register

2:g 4:b where ({1} < 3)
| r[{0},{1}] = 1
| 8:w r[{0},{1}] += x[{0},{1},{2}]
| 8:w y[{0},{1},{2}] = r[{0},{1}] * x[{0},{1},{2}]
""",
    "to the registers of a block": """kernel k(x) -> (y)
x f32 [2, 4, 24] heap
y f32 [2, 4, 24] heap
r f32 [2:N] register

2:g
| r[{0}] = 1
| 4:b where ({1} >= 1) 24:b where ({1}+{2} < 23) r[{0}] += x[{0},{1},{2}]
| 4:b 24:b y[{0},{1},{2}] = r[{0}] * x[{0},{1},{2}]
""",
    "a guard that mixes threads that add up with cells": """kernel k(x) -> (y)
x f32 [2, 40] heap
y f32 [2, 8] heap

2:g
| 8:b y[{0},{1}] = 0
| 5:b 8:b where ({1}*8+{2} < 37) y[{0},{2}] += x[{0},{1}*8+{2}]
""",
    "cells to which nothing is added": """kernel k(x) -> (y)
x f32 [2, 8] heap
y f32 [2, 3, 16] heap

2:g
| 3:b 16 y[{0},{1},{2}] = 0
| 4:b 8:b where ({1}+{2} < 3) y[{0},{1},0] += x[{0},{1}+{2}]
""",
    "cells to which nothing is ever added": """kernel k(x) -> (y)
x f32 [2, 8] heap
y f32 [2, 3, 16] heap

2:g
| 3:b 16 y[{0},{1},{2}] = 0
| 4:b 8:b where ({1}+{2} < 3, {1}+{2} >= 3) y[{0},{1},0] += x[{0},{1}+{2}]
""",
}
"""Threads that add up in shared memory."""
TEXTS = {f"wait: {name}": text for name, text in BARRIERS.items()} | {f"add: {name}": t for name, t in SUMS.items()}
CASES = {name: kernel(text.replace(" k(", f" k{k}(", 1)) for k, (name, text) in enumerate(TEXTS.items())}


@cache
def compiled() -> CompiledKernels:
    """All cases in one text."""
    return compile_kernels(CASES.values(), described=machine("nvidia-sm90"))


@pytest.mark.parametrize("name", CASES)
def test_on_fibers(name: str) -> None:
    require_fibers()
    program = CASES[name]
    inputs = random_inputs(parameters_of(nest_of(program)), len(name))
    for found in compiled().run(program, inputs):
        close(found, interpret(program, inputs), program)


@pytest.mark.parametrize("name", CASES)
def test_in_gpu_form(name: str) -> None:
    device = agree(CASES[name], seed=len(name))
    assert device.barriers or device.shuffles


@pytest.mark.parametrize("name", ["wait: two guards", "wait: an unrolled loop", "add: several times"])
def test_barriers_are_needed_and_reached(name: str) -> None:
    """A barrier that is missing, or inside of a guard, is noticed."""
    require_fibers()
    program = CASES[name]
    inputs = random_inputs(parameters_of(nest_of(program)), 3)
    wanted = interpret(program, inputs)
    made = device_text(program, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    (barrier, guard), *_ = re.findall(r"^( *__syncthreads\(\);\n)( *if \(.*\) {\n)", made.text, re.MULTILINE)
    for broken in (
        made.text.replace(barrier + guard, guard, 1),
        made.text.replace(barrier + guard, guard + barrier, 1),
    ):
        assert is_noticed(broken, program, program, inputs, wanted, warp=32, scratch=0)


def test_registers_of_threads_inside_of_each_other_are_refused() -> None:
    """Counting the threads ends, though no number of them is the same for both scopes."""
    program = kernel(
        """kernel k(x) -> (y)
x f32 [2, 2, 2, 8] heap
y f32 [2, 2, 2, 8] heap
r f32 [2:N, 2] register

2:g 2:b
| r[{0},{1}] = 1
| 2:b 8:w y[{0},{1},{2},{3}] = r[{0},{1}] * x[{0},{1},{2},{3}]
"""
    )
    with pytest.raises(InvalidKernel, match="every access must be indexed by the same threads"):
        validate(Program(program, machine("nvidia-sm90")))
