"""Hardware loops inside each other, and streams that several statements read, beside what is written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from differential.compiled import kernel
from differential.snitch import SNITCH, run_snitch
from differential.test_snitch import agree, inputs_for
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.rules.streams import streams_of
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.snitch_sim.simulator import Placement
from snitch_programs import gemm, run

GEMM = """\
kernel gemm(a, b) -> (c)
a f64 [{n}, {n}] heap
b f64 [{n}, {n}] heap
c f64 [{n}, {n}] heap
s f64 [{n}:N, {blocks}:N, 8] register

1:s {n} {blocks}{loop}
| 8:u s[{{1}},{{2}},{{3}}] = a[{{1}},0] * b[0,{{2}}*8+{{3}}]
| {inner}:f 8:u s[{{1}},{{2}},{{4}}] fma= a[{{1}},{{3}}+1] * b[{{3}}+1,{{2}}*8+{{4}}]
| 8:u c[{{1}},{{2}}*8+{{3}}] = fma(a[{{1}},{last}], b[{last},{{2}}*8+{{3}}], s[{{1}},{{2}},{{3}}])
"""
"""Products of matrices as snitch_cluster writes them."""


def product(size: int, loop: str = ":f") -> str:
    return GEMM.format(n=size, blocks=size // 8, loop=loop, inner=size - 2, last=size - 1)


NESTS = {
    "gemm": product(16),
    "gemm, sequential outside": product(16, ""),
    "the loop inside comes first": """\
kernel k(x) -> (y)
x f64 [6, 5] heap
y f64 [6] heap
s f64 [6:N] register
t f64 [1] register

t[0] = 0
1:s 6:f
| 5:f t[0] += x[{1},{2}]
| y[{1}] = t[0] * 2
""",
    "the loop inside comes last": """\
kernel k(x, y) -> (z)
x f64 [6] heap
y f64 [6] heap
z f64 [6, 7, 2] heap
t f64 [2] register

1:s 6:f
| t[0] = x[{1}]
| t[1] = y[{1}]
| 7:f 2:u z[{1},{2},{3}] = t[{3}]
""",
    "loops of one iteration": """\
kernel k(x) -> (y)
x f64 [4, 3] heap
y f64 [4, 3] heap
t f64 [3] register

1:s 1 4:f
| 3:u t[{3}] = x[{2},{3}]
| 1:f 3:u y[{2},{4}] = t[{4}]
""",
    "windows whose first and last step are apart": """\
kernel k(x) -> (y)
x f64 [6, 6] heap
y f64 [4, 4] heap
t f64 [4] register

1:s 4
| 4:u t[{2}] = x[{1},{2}]
| 2:u 4:u t[{3}] += x[{1},{3}+{2}+1]
| 3:u 4:u t[{3}] += x[{1}+1,{3}+{2}]
| 2:u 4:u t[{3}] += x[{1}+2,{3}+{2}]
| 4:u y[{1},{2}] = t[{2}] + x[{1}+2,{2}+2]
""",
    "rows shared by two statements": """\
kernel k(x, w) -> (y)
x f64 [8, 4] heap
w f64 [8, 4] heap
y f64 [8, 4] heap
t f64 [4] register

1:s 8:f
| 2:u t[{2}] = x[{1},{2}] * w[{1},{2}]
| 2:u t[{2}+2] = x[{1},{2}+2] * w[{1},{2}+2]
| 4:u y[{1},{2}] = t[3-{2}]
""",
}


@pytest.mark.parametrize("name", NESTS)
def test_nests(name: str) -> None:
    program = kernel(NESTS[name])
    inputs = inputs_for(program)
    found, _ = run_snitch(program, inputs, SNITCH)
    agree(program, found, interpret_stepwise(program, inputs))


@pytest.mark.parametrize("size", [8, 16])
def test_as_written_by_hand(size: int) -> None:
    program = kernel(product(size))
    inputs = inputs_for(program)
    found, result = run_snitch(program, inputs, SNITCH)
    agree(program, found, interpret_stepwise(program, inputs))
    placement = Placement()
    a, b = (placement.place(np.ascontiguousarray(inputs[name])) for name in "ab")
    c = placement.output((size, size), np.float64)
    handwritten = run(gemm(size, a.address, b.address, c.address), memory=placement.memory)
    assert (c.values == found["c"]).all()
    # Entry, waiting for the last write, and return.
    assert result.cycles <= handwritten.cycles + 16
    assert result.flops == handwritten.flops


def test_the_code_is_two_loops() -> None:
    """Their counts are set before both; the outer one has the instructions of the inner one among its own."""
    lines = [line.strip() for line in snitch_source(kernel(product(16)), SNITCH).text.splitlines()]
    (outer, inner) = [k for k, line in enumerate(lines) if line.startswith("frep.o")]
    assert lines[outer].endswith(", 24, 0, 0")
    assert lines[inner].endswith(", 8, 0, 0")
    assert [line.split()[0] for line in lines[outer:][:26]] == ["frep.o", *["fmul.d"] * 8, "frep.o", *["fmadd.d"] * 16]
    assert not any(line.startswith("bne") for line in lines)


def test_older_cores_do_not_nest() -> None:
    with pytest.raises(LoweringError, match="in a nest of 2 hardware loops; snitch-2024 has nests of 1"):
        snitch_source(kernel(NESTS["the loop inside comes first"]), machine("snitch-2024"))


def shared(text: str, described: Machine = SNITCH) -> list[int]:
    """How many accesses each stream of the first region serves."""
    nest = nest_of(kernel(text))
    return sorted((len(s.members) for s in streams_of(nest, nest.scopes[0], described)), reverse=True)


TWO = """\
kernel k(x, w) -> (y, z)
x f64 [64] heap
w f64 [64] heap
y f64 [16] heap
z f64 [16] heap

1:s 4
| 2 y[{{1}}*2+{{2}}] = x[{first}] * w[{{1}}*2+{{2}}]
| 2 z[{{1}}*2+{{2}}] = x[{second}] * 2
"""


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("{1}*4+{2}", "{1}*4+{2}+2", True),
        ("{1}*8+{2}", "{1}*8+{2}+4", True),
        ("{1}*4+{2}", "{1}*4+{2}", True),
        ("{1}*4+{2}", "{1}*4-{2}+3", False),
        ("{1}*4+{2}", "{1}*8+{2}", False),
        ("{1}*4+{2}*2", "{1}*4+{2}", False),
    ],
)
def test_what_one_stream_can_read(first: str, second: str, together: bool) -> None:
    """Only where there are more accesses than streams, and where a nest of loops goes through all elements."""
    text = TWO.format(first=first, second=second)
    counts = shared(text)
    assert counts == ([2, 1, 1, 1] if together else [1] * 5)
    if together:
        assert shared(text, replace(SNITCH, snitch=replace(SNITCH.snitch, stream_registers=5))) == [1] * 5
