"""Dot products of narrow numbers: the heuristic pass gives them to the machine's instructions, and they are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential.compiled import kernel, run
from differential.test_heuristic import check, tuned
from pdojo.backends.arrays import parameters_of
from pdojo.backends.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.analysis.validate import validate
from pdojo.dialect.interpreter import interpret
from pdojo.dialect.machine import host, machine
from pdojo.dialect.nest import Nest, nest_of
from pdojo.search.tuning import tune, with_alignment

ZEN4 = "x86-64-zen4"
DOTS = {"matmul_i8": "vpdpbusd_512_broadcast", "matmul_bf16": "vdpbf16ps_512_broadcast"}
MISSING = sorted({"avx512vnni", "avx512bf16"} - set(host().features))
SHAPES = (
    "64x64x64",
    "20x30x40",
    "1x64x64",
    "3x7x100",
    "64x3x48",
    "17x65x33",
    "48x64x15",
    "7x260x260",
    "2x8x16",
    "100x129x17",
)
needs_dots = pytest.mark.skipif(bool(MISSING), reason=f"the processor has no {', '.join(MISSING)}")

BATCHED = """
kernel batched(a, b) -> (c)
a i8 [3, 9, 22] heap
b i8 [3, 22, 40] heap
c i32 [3, 9, 40] heap
u i32 [3, 9, 22] heap
v i32 [3, 22, 40] heap

3 9 22 u[{0},{1},{2}] = ucast(a[{0},{1},{2}])
3 22 40 v[{0},{1},{2}] = cast(b[{0},{1},{2}])
3 9 40
| c[{0},{1},{2}] = 0
| 22 c[{0},{1},{2}] += u[{0},{1},{3}] * v[{0},{3},{2}]
"""
TURNED = """
kernel turned(a, b) -> (c)
a i8 [37, 13] heap
b i8 [50, 37] heap
c i32 [13, 50] heap
u i32 [37, 13] heap
v i32 [50, 37] heap

37 13 u[{0},{1}] = ucast(a[{0},{1}])
50 37 v[{0},{1}] = cast(b[{0},{1}])
13 50
| c[{0},{1}] = 0
| 37 c[{0},{1}] += u[{2},{0}] * v[{1},{2}]
"""
"""Both operands lie the other way round: a is copied in groups, b only in panels."""
CHANNELS = """
kernel channels(x, w) -> (y)
x i8 [3, 18, 10] heap
w i8 [3, 10, 48] heap
y i32 [16, 48] heap
u i32 [3, 18, 10] heap
v i32 [3, 10, 48] heap

3 18 10 u[{0},{1},{2}] = ucast(x[{0},{1},{2}])
3 10 48 v[{0},{1},{2}] = cast(w[{0},{1},{2}])
16 48
| y[{0},{1}] = 0
| 3 10 y[{0},{1}] += u[{2},{0}+{2},{3}] * v[{2},{3},{1}]
"""
"""A window of three positions in channels of ten: two loops of terms, the inner of which has a rest."""
SIGNED = """
kernel signed(a, b) -> (c)
a i8 [16, 64] heap
b i8 [64, 32] heap
c i32 [16, 32] heap
u i32 [16, 64] heap
v i32 [64, 32] heap

16 64 u[{0},{1}] = cast(a[{0},{1}])
64 32 v[{0},{1}] = cast(b[{0},{1}])
16 32
| c[{0},{1}] = 0
| 64 c[{0},{1}] += u[{0},{2}] * v[{2},{1}]
"""
EXACT = """
kernel exact(a, b) -> (c)
a bf16 [16, 64] heap
b bf16 [64, 32] heap
c f32 [16, 32] heap
u f32 [16, 64] heap
v f32 [64, 32] heap

16 64 u[{0},{1}] = cast(a[{0},{1}])
64 32 v[{0},{1}] = cast(b[{0},{1}])
16 32
| c[{0},{1}] = 0
| 64 c[{0},{1}] += u[{0},{2}] * v[{2},{1}]
"""
"""Without the permission to take denormal numbers for zero."""


def used(nest: Nest) -> set[str]:
    return {scope.intrinsic for scope in nest.scopes if scope.intrinsic}


def inputs_of(nest: Nest, seed: int) -> dict[str, Any]:
    """Random inputs, bytes over their whole range."""
    inputs = random_inputs(parameters_of(nest), seed)
    generator = np.random.default_rng(seed)
    for name, values in inputs.items():
        if values.dtype == np.int8:
            values[...] = generator.integers(-128, 128, values.shape)
            inputs[name] = values
    return inputs


@needs_dots
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DOTS)
def test_products_at_odd_sizes(name: str, shape: str) -> None:
    check(name, shape)


@pytest.mark.parametrize("name", DOTS)
def test_whole_tiles_and_rests(name: str) -> None:
    """The instruction does all that fills tiles; accumulators are in registers; rests are vectors."""
    for shape, rests in (("48x64x64", False), ("37x65x75", True)):
        nest = tuned(name, shape, on=machine(ZEN4)).game.program.nest
        sums = [leaf for leaf in nest.leaves if leaf.accumulate is not None]
        assert DOTS[name] in used(nest)
        assert all(leaf.output.array.buffer.memory.value == "register" for leaf in sums)
        assert any(not any(s.intrinsic for s in leaf.chain) for leaf in sums) == rests
        if not rests:
            assert "v" not in nest.arrays, "something is cast outside of the product"


@needs_dots
@pytest.mark.parametrize("name", DOTS)
def test_straight_code(name: str) -> None:
    """All accumulators stay in registers over the sum."""
    code = compile_kernel(tuned(name, "48x64x64").after, threads=1).native.asm
    instruction = {"matmul_i8": "vpdpbusd", "matmul_bf16": "vdpbf16ps"}[name]
    lines = [line for line in code.splitlines() if instruction in line]
    assert len(lines) >= 16
    assert not any("%rsp" in line for line in lines)


@pytest.mark.parametrize("text", [BATCHED, TURNED, CHANNELS])
def test_other_products(text: str) -> None:
    """Batches, operands that lie the other way round, several loops of terms."""
    subject = with_alignment(kernel(text), 64)
    found = tune(subject, host() if not MISSING else machine(ZEN4), "heuristic")
    validate(found.game.program)
    assert DOTS["matmul_i8"] in used(found.game.program.nest)
    if MISSING:
        pytest.skip(f"the processor has no {', '.join(MISSING)}")
    executable = compile_kernel(found.after, threads=2)
    for seed in range(3):
        inputs = inputs_of(nest_of(subject), seed)
        expected = interpret(subject, {name: values.copy() for name, values in inputs.items()})
        got = run(executable, inputs)
        for name, values in got.items():
            np.testing.assert_array_equal(values, np.asarray(expected[name]))


@pytest.mark.parametrize("text", [SIGNED, EXACT])
def test_what_the_instruction_does_not_mean(text: str) -> None:
    """Signed times signed is another product, and rounding is the kernel's to permit."""
    found = tune(with_alignment(kernel(text), 64), machine(ZEN4), "heuristic")
    assert not used(found.game.program.nest)


def test_without_the_instructions() -> None:
    assert not used(tuned("matmul_i8", "48x64x64", on=machine("x86-64-avx512")).game.program.nest)
