"""Vector scopes: accesses of every shape, masks, reductions over lanes, in the bits that the interpreter gives."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.compiled import Arrays, compiled, kernel, random_inputs, run, same
from pdojo.backends.llvm.executable import compile
from pdojo.dialect.functions import ACCUMULATIONS, DTYPES, accumulates, is_float
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.semantics.rounding import INTERFACE, round_float64, to_interface

ACCESSES = {
    "contiguous": "4 8:v y[{0}*8+{1}] = x[{0}*8+{1}]",
    "uniform": "4 8:v y[{0}*8+{1}] = x[{0}]",
    "constant": "4 8:v y[{0}*8+{1}] = 2.5",
    "reversed read": "4 8:v y[{0}*8+{1}] = x[31-{0}*8-{1}]",
    "reversed write": "4 8:v y[31-{0}*8-{1}] = x[{0}*8+{1}]",
    "strided read": "4 8:v y[{0}*8+{1}] = x[{0}+{1}*4]",
    "strided write": "4 8:v y[{0}+{1}*4] = x[{0}*8+{1}]",
    "every second read": "4 8:v y[{0}*8+{1}] = x[{0}*5+{1}*2+1]",
    "every third read backwards": "4 8:v y[{0}*8+{1}] = x[31-{0}*3-{1}*3]",
    "odd number of lanes apart": "32 y[{0}] = 0\n2 7:v y[{0}*7+{1}] = x[{0}+{1}*3]",
    "repeated read": "4 8:v y[{0}*8+{1}] = x[{0}*8+{1}//2]",
    "modulus": "4 8:v y[{0}*8+{1}] = x[({0}*8+{1}*3)%8]",
    "division of a sum": "4 8:v y[{0}*8+{1}] = x[({0}*8+{1}*3)//5]",
    "two rows in turns": "2 8:v y[{0}*8+{1}] = x[({1}+1)%2*20+{0}*4+({1}+1)//2]\n16 y[{0}+16] = 0",
    "four rows in turns": "4 8:v y[{0}*8+{1}] = x[{1}%4*9+{0}+{1}//4]",
    "two rows one after the other": "4 8:v y[{0}*8+{1}] = x[{0}+{1}//4*20+{1}%4]",
    "three groups of three lanes": "32 y[{0}] = 0\n3 9:v y[{0}*9+{1}] = x[{0}+{1}//3*13+{1}%3]",
    "negative division": "4 8:v y[{0}*8+{1}] = x[({0}*8+{1}*3-40)//5+8]",
    "index value": "4 8:v y[{0}*8+{1}] = {0}*8-{1}*3",
    "index value of a division": "4 8:v y[{0}*8+{1}] = ({0}*5+{1}*3)//7",
    "uniform index value": "4 8:v y[{0}*8+{1}] = {0}*7",
    "last lane stays": "4 y[31] = 0\n32 y[{0}] = 1\n4 8:v y[{0}] = x[{0}*8+{1}]",
    "odd number of lanes": "32 y[{0}] = 0\n3 7:v y[{0}*7+{1}] = x[{0}*7+{1}] + x[{0}*7+{1}+3]",
    "one lane": "32 1:v y[{0}+{1}] = x[{0}+{1}]",
    "swap in place": "4 8:v y[{0}*8+{1}] = x[{0}*8+{1}]\n4:v y[{0}*2] = y[{0}*2+1]",
    "two in turns": ("2\n| 8:v y[{0}*16+{1}*2+1] = x[{0}*8+{1}]\n| 8:v y[{0}*16+{1}*2] = x[{0}*8+{1}+16]"),
    "four in turns": (
        "8:v y[{0}*4+2] = x[{0}]\n8:v y[{0}*4] = x[{0}+8]\n8:v y[{0}*4+3] = x[{0}+16]\n8:v y[{0}*4+1] = x[{0}+24]"
    ),
    "two of three in turns": "32 y[{0}] = 0\n8:v y[{0}*3] = x[{0}]\n8:v y[{0}*3+1] = x[{0}+8]",
    "turns of an odd number of lanes": "32 y[{0}] = 0\n7:v y[{0}*2+8] = x[{0}]\n7:v y[{0}*2+9] = x[{0}+7]",
    "turns that are read between": (
        "32 y[{0}] = 1\n2\n| 8:v y[{0}*16+{1}*2] = x[{0}*8+{1}]\n| 8:v y[{0}*16+{1}*2+1] = y[{0}*16+{1}*2] + 1"
    ),
    "turns with a write between": (
        "2\n| 8:v y[{0}*16+{1}*2] = x[{0}*8+{1}]\n| y[{0}*16+2] = 5\n| 8:v y[{0}*16+{1}*2+1] = x[{0}*8+{1}+16]"
    ),
    "turns with a loop between": (
        "32 y[{0}] = 0\n2\n| 8:v y[{0}*8+{1}*2] = x[{0}*8+{1}]\n| 3 y[31] = x[{0}+{1}]\n"
        "| 8:v y[{0}*8+{1}*2+1] = x[{0}*8+{1}+16]"
    ),
    "turns of different arrays of lanes": (
        "2\n| 8:v y[{0}*16+{1}*2] = x[{0}*8+{1}]\n| 2\n| | 4:v y[{0}*16+{1}*8+{2}*2+1] = x[{0}*8+{1}*4+{2}+16]"
    ),
    "accumulating": "32 y[{0}] = 1\n4 8:v y[{0}*8+{1}] += x[{0}*8+{1}]",
}
MASKS = {
    "tail": "5 8:v where ({0}*8+{1} < 32) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "tail never empty": "4 8:v where ({0}*8+{1} < 30) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "whole vectors off": "6 8:v where ({0}*8+{1} < 17) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "head": "4 8:v where ({0}*8+{1} >= 5) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "both ends": "4 8:v where ({0}*8+{1} >= 5, {0}*8+{1} < 27) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "none of a division": "4 8:v where (({0}*8+{1}*3)//4 >= 4) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "outer only": "4 8:v where ({0} < 2) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "reversed": "5 8:v where ({0}*8+{1} < 32) y[31-{0}*8-{1}] = x[31-{0}*8-{1}]",
    "strided": "5 8:v where ({0}+{1}*5 < 32) y[{0}+{1}*5] = x[{0}+{1}*5]",
    "every second read": "32 y[{0}] = 0\n2 8:v where ({0}*16+{1}*2 < 30) y[{0}*8+{1}] = x[{0}*16+{1}*2+1]",
    "every third read backwards": "32 y[{0}] = 0\n2 8:v where ({0}*8+{1} < 11) y[{0}*8+{1}] = x[31-{0}*24-{1}*3]",
    "holes in every second read": "32 y[{0}] = 0\n2 8:v where (({1}*3)%4 < 2) y[{0}*8+{1}] = x[{0}*16+{1}*2]",
    "shared reads": "32 y[{0}] = 0\n4 8:v where ({0}*8+{1} < 29) y[{0}*8+{1}] = x[{0}*8+({1}*3)//4]",
    "two rows in turns": "32 y[{0}] = 0\n2 8:v where ({0}*8+{1} < 13) y[{0}*8+{1}] = x[{1}%2*20+{0}*4+{1}//2]",
    "uniform beyond the end": "40 8:v where ({0}*8+{1} < 30) y[{0}*8+{1}] = x[{0}]",
    "accumulating": "5 8:v where ({0}*8+{1} < 32) y[{0}*8+{1}] += x[{0}*8+{1}]",
    "unrolled": "5:u 8:v where ({0}*8+{1} < 30) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "unrolled, both ends": "4:u 8:v where ({0}*8+{1} >= 5, {0}*8+{1} < 27) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "unrolled, reversed": "4:u 8:v where ({0}*8+{1} < 31) y[31-{0}*8-{1}] = x[31-{0}*8-{1}]",
    "unrolled, with holes": "4:u 8:v where (({0}*8+{1}*3)%5 < 3) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "in sequence": "5 where ({0} < 4) 8 where ({0}*8+{1} < 30) y[{0}*8+{1}] = x[{0}*8+{1}]",
    "steps of two": "32 where (2*{0} >= 5, 3*{0} < 40) y[{0}] = x[{0}]",
    "division in sequence": "32 where ({0}//5 >= 2) y[{0}] = x[{0}]",
}


def both(body: str, dtype: str, *, fill: bool) -> str:
    """A kernel from x to y, of 32 elements; `fill` writes y first."""
    first = "32 y[{0}] = 3\n" if fill else ""
    return f"kernel k(x) -> (y)\nx {dtype} [32] heap\ny {dtype} [32] heap\n\n{first}{body}\n"


def agree(text: str, inputs: Arrays | None = None) -> None:
    executable, found = compiled(text, inputs)
    arrays = inputs if inputs is not None else random_inputs(executable.parameters, 0)
    wanted = interpret_stepwise(kernel(text), arrays)
    for parameter in executable.parameters:
        if parameter.written:
            assert same(found[parameter.name], wanted[parameter.name], parameter.dtype)


@pytest.mark.parametrize("name", ACCESSES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_access(name: str, dtype: str) -> None:
    agree(both(ACCESSES[name], dtype, fill=False))


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_mask(name: str, dtype: str) -> None:
    agree(both(MASKS[name], dtype, fill=True))


@pytest.mark.parametrize("lanes", [8, 5])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_lanes_apart_read_nothing_behind_the_array(step: int, lanes: int) -> None:
    """The array ends where a page begins that nobody may touch; fewer than eight lanes are under a mask."""
    page, size = mmap.PAGESIZE, lanes * step
    memory = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(memory, np.float32)
    # The last element that is read is the last of the array.
    x = whole[page // 4 - size + step - 1 : page // 4]
    x[...] = np.arange(len(x))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(whole.ctypes.data + page), ctypes.c_size_t(page), 0) == 0
    guard = f" where ({{0}} < {lanes})" if lanes < 8 else ""
    text = f"kernel k(x) -> (y)\nx f32 [{len(x)}] heap\ny f32 [{lanes}] heap\n\n8:v{guard} y[{{0}}] = x[{{0}}*{step}]\n"
    assert np.array_equal(compile(kernel(text))(x), x[::step])


def test_byte_wide_truth_values() -> None:
    text = "kernel k(x, c) -> (y)\nx f32 [32] heap\nc i1 [32] heap\ny i1 [32] heap\n\n"
    agree(text + "4 8:v y[{0}*8+{1}] = arith.cmpf.olt(x[{0}*8+{1}], 0)\n4 8:v y[{0}*8+{1}] or= c[{0}*8+{1}]\n")


@pytest.mark.parametrize("lanes", [2, 4, 7, 16])
@pytest.mark.parametrize("guard", ["", " where ({0}*{L}+{1} < {N})"])
@pytest.mark.parametrize("function", ACCUMULATIONS)
def test_reduction_over_lanes(function: str, guard: str, lanes: int) -> None:
    """All lanes into one cell, in any order: values are small integers, so that sums are exact."""
    spelling = ACCUMULATIONS[function].spelling
    dtypes = [d for d in DTYPES if accumulates(function, d)]
    names = [(f"x{k}", f"y{k}", d) for k, d in enumerate(dtypes)]
    size = 4 * lanes
    head = f"kernel k({', '.join(x for x, _, _ in names)}) -> ({', '.join(y for _, y, _ in names)})"
    declared = [f"{x} {d} [{size}] heap\n{y} {d} [1] heap" for x, y, d in names]
    where = guard.replace("{L}", str(lanes)).replace("{N}", str(size - lanes // 2 - lanes))
    lines = [f"y{k}[0] = {'true' if d == 'i1' else 1}" for k, (_, _, d) in enumerate(names)]
    lines += [f"4 {lanes}:v{where} {y}[0] {spelling}= {x}[{{0}}*{lanes}+{{1}}]" for x, y, _ in names]
    random = np.random.default_rng(lanes)
    inputs: Arrays = {}
    for x, _, dtype in names:
        values = random.choice([-2.0, -1.0, 1.0, 2.0, 0.0, -0.0] if spelling != "*" else [-1.0, 1.0, 1.0], size)
        inputs[x] = _as_interface(values, dtype)
    agree("\n".join([head, *declared, "", *lines]) + "\n", inputs)


def _as_interface(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    if is_float(dtype):
        return to_interface(round_float64(values, dtype), dtype)
    return values.astype(INTERFACE[dtype])


def test_maximum_propagates_nan_over_lanes() -> None:
    text = "kernel k(x) -> (y)\nx f32 [32] heap\ny f32 [2] heap\n\n2 y[{0}] = -inf\n2 16:v y[{0}] max= x[{0}*16+{1}]\n"
    for place in range(16):
        x = np.random.default_rng(place).normal(size=32).astype(np.float32)
        x[place] = np.nan
        agree(text, {"x": x})
    agree(text, {"x": np.where(np.arange(32) % 3 == 0, np.float32(0.0), np.float32(-0.0))})


@pytest.mark.parametrize(
    "body", ["32 y[{0}] fma= x[{0}] * x[31-{0}]", "4 8:v y[{0}*8+{1}] fma= x[{0}*8+{1}] * x[31-{0}*8-{1}]"]
)
def test_contracted_rounds_once(body: str) -> None:
    executable, found = compiled(both("32 y[{0}] = 1\n" + body, "f32", fill=False))
    x = random_inputs(executable.parameters, 0)["x"]
    twice = np.float32(1) + x * x[::-1]
    once = (1 + x.astype(np.float64) * x[::-1]).astype(np.float32)
    assert (once != twice).any()
    assert np.array_equal(found["y"], once)


@pytest.mark.parametrize("count", [32, 30])
def test_contracted_reduction_over_lanes_rounds_once_per_lane(count: int) -> None:
    guard = "" if count == 32 else f" where ({{0}}*16+{{1}} < {count})"
    text = both(f"32 y[{{0}}] = 1\n2 16:v{guard} y[0] fma= x[{{0}}*16+{{1}}] * x[{{1}}]", "f32", fill=False)
    executable, found = compiled(text)
    x = random_inputs(executable.parameters, 0)["x"]
    total = np.float32(1)
    for k in range(count):
        total = np.float32(np.float64(total) + np.float64(x[k]) * np.float64(x[k % 16]))
    assert found["y"][0] == total


@pytest.mark.parametrize("name", ["x86-64-avx2", "x86-64-avx512"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_narrower_machines(name: str, dtype: str) -> None:
    target = machine(name)
    if not set(target.features) <= set(machine("host").features):
        pytest.skip(f"the processor is no {name}")
    for body in (*ACCESSES.values(), *MASKS.values()):
        program = kernel(both(body, dtype, fill=True))
        executable = compile(program, target, threads=1, optimize="search")
        inputs = random_inputs(executable.parameters, 3)
        assert same(run(executable, inputs)["y"], interpret_stepwise(program, inputs)["y"], dtype)
