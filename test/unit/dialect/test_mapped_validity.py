"""Programs whose mappings and memories do not fit: validation refuses each, and the exact oracle sees each, by running.

The two know nothing of each other: validation asks dependences, the oracle keeps a copy of memory per thread and lets
streams run ahead.
"""

from __future__ import annotations

import pytest

from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import DTYPES, is_float
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.oracle import check_valid, valid_by_sets
from pdojo.errors import InvalidKernel

ARRAYS = "x f32 [8, 4] heap\ny f32 [8, 4] heap\n"
STREAMS = "x f64 [8] heap\ny f64 [9] heap\n"

WRONG = {
    "threads read registers of others": (
        ARRAYS + "t f32 [8:N, 4] register\n8:g\n| 4:b t[{0},{1}] = x[{0},{1}]\n| 4:b y[{0},{1}] = t[{0},3-{1}]",
        "'t' is in registers, but two threads access one of its cells",
    ),
    "all threads read the register of one": (
        ARRAYS + "t f32 [8:N, 4] register\n8:g\n| 4:w t[{0},{1}] = x[{0},{1}]\n| 4:u y[{0},{1}] = t[{0},2]",
        "'t' is in registers: every access must be indexed by the same threads",
    ),
    "one thread writes what all read": (
        ARRAYS + "t f32 [8:N] register\n8:g\n| 4:w where ({1} < 1) t[{0}] = x[{0},{1}]\n| 4:w y[{0},{1}] = t[{0}]",
        "'t' is in registers: only one thread of scope {1} of extent 4:w would have the value",
    ),
    "stack of one thread": (
        ARRAYS + "t f32 [8:N, 4] stack\n8:g\n| 4:b t[{0},{1}] = x[{0},{1}]\n| 4:b y[{0},{1}] = t[{0},3-{1}]",
        "'t' is in stack memory of a thread, but two threads access one of its cells",
    ),
    "shared memory from launch to launch": (
        ARRAYS + "t f32 [8, 4] shared\n8:g 4:b t[{0},{1}] = x[{0},{1}]\n8:g 4:b y[{0},{1}] = t[{0},{1}]",
        "'t' is in shared memory, which lasts for one iteration of scope {0} of extent 8:g, but is used outside it",
    ),
    "shared memory from one run of a launch to the next": (
        ARRAYS
        + "t f32 [8, 4] shared\n2 8:g\n| 4:b where ({0} < 1) t[{1},{2}] = x[{1},{2}]\n| 4:b y[{1},{2}] = t[{1},{2}]",
        "'t' is in shared memory, which lasts for one iteration of scope {1} of extent 8:g",
    ),
    "register of the host": (
        ARRAYS + "t f32 [1] register\nt[0] = 2\n8:g 4:b y[{0},{1}] = t[0]",
        "'t' is in registers, which lasts for one iteration of scope {0} of extent 8:g, but is used outside it",
    ),
    "a tree that is read unfinished": (
        ARRAYS + "t f32 [8] heap\n8:g\n| t[{0}] = 0\n| 4:w\n| | t[{0}] += x[{0},{1}]\n| | y[{0},{1}] = t[{0}]",
        "iterations of scope {1} of extent 4:w race",
    ),
    "blocks of a grid zero what others add up": (
        ARRAYS + "t f32 [1] heap\n8:g\n| t[0] = 0\n| 4:b t[0] += x[{0},{1}]\n8 4 y[{0},{1}] = t[0]",
        "iterations of scope {0} of extent 8:g race",
    ),
    "blocks of a grid read what others add up": (
        ARRAYS + "t f32 [1] heap\nt[0] = 0\n8:g\n| 4:b t[0] += x[{0},{1}]\n| 4:b y[{0},{1}] = t[0]",
        "iterations of scope {0} of extent 8:g race",
    ),
    "blocks of a grid add up and take maxima": (
        ARRAYS
        + "t f32 [1] heap\nt[0] = 0\n8:g 4:b\n| t[0] += x[{0},{1}]\n| t[0] max= x[{0},{1}]\n8 4 y[{0},{1}] = t[0]",
        "iterations of scope {0} of extent 8:g race",
    ),
    "a stream reads ahead of a write": (
        STREAMS + "t f64 [1] register\ny[0] = 1\n8:s\n| t[0] = y[{0}]\n| y[{0}+1] = x[{0}] + t[0]",
        "scope {0} of extent 8:s reads 'y' ahead, before it is written",
    ),
    "a sum in memory is streamed": (
        STREAMS + "9 y[{0}] = 0\n8:s y[0] += x[{0}]",
        "scope {0} of extent 8:s reads 'y' ahead, before it is written",
    ),
    "two streams write one cell": (
        STREAMS + "y[8] = 0\n1:s\n| 8 y[{1}] = 2\n| 8 y[{1}] = x[{1}]",
        "scope {0} of extent 1:s writes 'y' by two streams, in no known order",
    ),
}

RIGHT = {
    "a tree over a block of three warps, not all of it": (
        "x f32 [3, 10] heap\ny f32 [3, 10] heap\nt f32 [3:N] register\n3:g\n| t[{0}] = 0\n"
        "| 3:b 4:w where ({1}*4+{2} < 10) t[{0}] += x[{0},{1}*4+{2}]\n| 10:b y[{0},{1}] = x[{0},{1}] - t[{0}]"
    ),
    "registers of each thread over phases": (
        ARRAYS + "t f32 [8:N, 4] register\n8:g\n| 4:b t[{0},{1}] = 0\n| 3 4:b t[{0},{2}] += x[{0},{2}]\n"
        "| 4:b y[{0},{1}] = t[{0},{1}]"
    ),
    "a block of one thread": (
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] stack\n4:g 1:w\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}]"
    ),
    "exchange through shared memory": (
        ARRAYS + "t f32 [8:N, 4] shared\n8:g\n| 4:b t[{0},{1}] = x[{0},{1}]\n| 4:b y[{0},{1}] = t[{0},3-{1}]"
    ),
    "a stream reads before it writes": STREAMS + "9 y[{0}] = 1\n8:s y[{0}] += x[{0}]",
    "one stream writes a cell again and again": STREAMS + "9 y[{0}] = 1\n8:s y[0] = x[{0}]",
}


def program(body: str) -> Program:
    return Program(parse_notation(f"kernel k(x) -> (y)\n{body}\n")[0], machine("toy-gpu"))


@pytest.mark.parametrize("name", WRONG)
def test_refused_and_seen(name: str) -> None:
    body, message = WRONG[name]
    wrong = program(body)
    with pytest.raises(InvalidKernel) as error:
        validate(wrong)
    assert message in str(error.value)
    assert all(check_valid(wrong.nest, schedules=4, seed=seed) is not None for seed in range(10))


@pytest.mark.parametrize("name", RIGHT)
def test_valid_and_equal(name: str) -> None:
    right = program(RIGHT[name])
    validate(right)
    assert all(check_valid(right.nest, schedules=4, seed=seed) is None for seed in range(5))


def is_valid(program: Program) -> bool:
    try:
        validate(program)
    except InvalidKernel:
        return False
    return True


@pytest.mark.parametrize("accumulation", ["+=", "*=", "max=", "min=", "umax=", "and=", "fma="])
@pytest.mark.parametrize("dtype", DTYPES)
def test_two_blocks_may_accumulate_iff_the_oracles_see_no_lost_update(dtype: str, accumulation: str) -> None:
    if (dtype[0] == "i" and accumulation == "fma=") or (is_float(dtype) and accumulation in ("umax=", "and=")):
        return
    head = f"kernel k(x, z) -> (y)\nx {dtype} [2] heap\nz {dtype} [2] heap\ny {dtype} [] heap\n\n"
    factor = " * z[{0}]" if accumulation == "fma=" else ""
    text = f"{head}y[] = x[0]\n2:g y[] {accumulation} x[{{0}}]{factor}\n"
    program = Program(parse_notation(text)[0], machine("amd-gfx942"))
    assert is_valid(program) == (check_valid(program.nest) is None) == (valid_by_sets(program.nest).fault is None)
