"""Random legal moves around nests that one instruction computes: meaning, inverses, and machine code."""

from __future__ import annotations

import pytest

from pdojo.dialect.machines.registry import machine
from property.walks import assert_walk
from qa.fuzzing.jobs import code_against_interpreter
from qa.walks import Counts

PRODUCT = """
kernel product(x, z) -> (y)
x f32 [7, 6] heap
z f32 [4, 6] heap
y f32 [7, 4] heap
s f32 [7, 4] heap

7 4 s[{0},{1}] = 0
7 3 4:m(toy_dot) 2 s[{0},{2}] += x[{0},{1}*2+{3}] * z[{2},{1}*2+{3}]
7 4:m(toy_add) y[{0},{1}] = s[{0},{1}] + x[{0},{1}]
"""


@pytest.mark.parametrize("seed", range(4))
def test_walks_around_instructions(seed: int) -> None:
    counts = Counts()
    assert_walk(PRODUCT, "toy", seed, 10, counts, check=code_against_interpreter(2, counts, machine("toy")))
    assert counts["compiled", ""]


WARPS = """
kernel warps(x, z) -> (y)
x f32 [16, 4] heap
z f32 [4, 4] heap
y f32 [16, 4] heap
s f32 [2:N, 2, 4, 2] MEMORY

2:g
| 2:b 2:u 4:w s[{0},{1},{2}*2+{3}//2,{3}%2] = 0
| 2:b 2
| | 4 2 2 s[{0},{1},{3},{4}] += x[{0}*8+{1}*4+{3},{2}*2+{5}] * z[{2}*2+{5},{4}]
| 2:b 2:u 4:w y[{0}*8+{1}*4+{2}*2+{3}//2,{3}%2] = s[{0},{1},{2}*2+{3}//2,{3}%2]
| 2:b 4:w 2 y[{0}*8+{1}*4+{2},{3}+2] = x[{0}*8+{1}*4+{2},{3}]
""".replace("| | 4 2 2", "| | 4:m(toy_mma) 2 2")


@pytest.mark.parametrize("memory", ["register", "stack", "shared"])
@pytest.mark.parametrize("seed", range(2))
def test_walks_around_instructions_of_a_warp(memory: str, seed: int) -> None:
    assert_walk(WARPS.replace("MEMORY", memory), "toy-gpu", seed, 10, Counts())
