"""Packed f32 and f16 on the simulator: numbers for all lanes, lanes that are no word of memory, sums of lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from differential.compiled import Arrays, kernel, random_inputs
from differential.library import close
from differential.snitch import DIVIDES, run_snitch
from differential.test_llvm_functions import agrees, special_values
from differential.test_snitch import agree
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.snitch_sim.simulator import Result

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3e-42, 3e38]
"""Special values and denormal numbers of f32; all but the first are exact or infinite in f16, too."""


def inputs_with_specials(program: KernelOp, seed: int) -> Arrays:
    """Random inputs, some of them special values."""
    found = random_inputs(parameters_of(nest_of(program)), seed)
    generator = np.random.default_rng(seed + 100)
    for values in found.values():
        flat = values.reshape(-1)
        if flat.size > len(SPECIAL):
            places = generator.choice(flat.size, len(SPECIAL), replace=False)
            with np.errstate(over="ignore"):
                flat[places] = np.array(SPECIAL).astype(values.dtype)
    return found


def ran(text: str, seed: int = 0, *, specials: bool = True) -> tuple[str, Result]:
    """The assembly of a kernel and what the simulator says; its results have the bits of the interpreter."""
    program = kernel(text)
    inputs = inputs_with_specials(program, seed) if specials else random_inputs(parameters_of(nest_of(program)), seed)
    found, result = run_snitch(program, inputs, DIVIDES)
    agree(program, found, interpret_stepwise(program, inputs))
    return snitch_source(program, DIVIDES).text, result


REPLICATED = """\
kernel k(a, x) -> (y)
numerics numbers
a {t} [1] heap
x {t} [32] heap align 8
y {t} [32] heap align 8
s {t} [1] register

s[0] = a[0]
1:s {n}:f {v}:v y[{{1}}*{v}+{{2}}] = {formula}
"""
FORMULAS = {
    "vfadd.r": "s[0] + x[{i}]",
    "vfsub.r": "x[{i}] - s[0]",
    "vfmul.r": "s[0] * x[{i}]",
    "vfdiv.r": "x[{i}] / s[0]",
    "vfmax.r": "max(s[0], x[{i}])",
    "vfmin.r": "minnum(x[{i}], s[0])",
    "vfsgnj.r": "copysign(x[{i}], s[0])",
}


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_number_for_all_lanes_is_an_operand(name: str, dtype: str) -> None:
    """The instruction replicates it, in a hardware loop of one instruction a word."""
    lanes = 2 if dtype == "f32" else 4
    formula = FORMULAS[name].format(i=f"{{1}}*{lanes}+{{2}}")
    text = REPLICATED.format(t=dtype, v=lanes, n=32 // lanes, formula=formula)
    for seed in range(3):
        assembly, _ = ran(text, seed, specials="max" not in formula)
        assert assembly.count(f"{name}.{'s' if dtype == 'f32' else 'h'} ") == 1
        assert "vfcpka" not in assembly


def test_a_number_copied_to_all_lanes_is_one_instruction() -> None:
    text = """\
kernel fill(a) -> (y)
a f32 [1] heap
y f32 [16, 16] heap align 8
s f32 [1] register

s[0] = a[0]
1:s 16 8:f 2:v y[{1},{2}*2+{3}] = s[0]
"""
    assembly, result = ran(text)
    assert assembly.count("vfcpka.s.s ft") == 1
    assert "fmv.d" not in assembly
    assert result.cycles < 160


def test_fused_sums_replicate_a_factor() -> None:
    """In registers: no instruction beside the sums themselves, whichever factor is the number."""
    text = """\
kernel k(a, b, x) -> (y)
a f32 [1] heap
b f32 [1] heap
x f32 [16, 4] heap align 8
y f32 [4] heap align 8
s f32 [2] register
t f32 [4] register

s[0] = a[0]
s[1] = b[0]
2:u 2:v t[{0}*2+{1}] = 0
1:s 16:f 2:u 2:v t[{2}*2+{3}] fma= s[0] * x[{1},{2}*2+{3}]
1:s 16:f 2:u 2:v t[{2}*2+{3}] fma= x[{1},{2}*2+{3}] * s[1]
2:u 2:v y[{0}*2+{1}] = t[{0}*2+{1}]
"""
    for seed in range(3):
        assembly, _ = ran(text, seed)
        assert assembly.count("vfmac.r.s") == 4
        assert "vfcpka" not in assembly


def test_a_difference_from_a_number_is_packed_before() -> None:
    """The first operand cannot be replicated: it is packed, outside of hardware loops."""
    text = """\
kernel k(a, x) -> (y)
a f32 [1] heap
x f32 [16] heap align 8
y f32 [16] heap align 8

8 2:v y[{0}*2+{1}] = a[0] - x[{0}*2+{1}]
"""
    assembly, _ = ran(text)
    assert "vfcpka" in assembly
    assert "vfsub.s" in assembly


JOINED = {
    "rows of another order": "8 8 2:v y[{0},{1}*2+{2}] = x[{1}*2+{2},{0}]",
    "into a stream": "1:s 8 8 2:v y[{1},{2}*2+{3}] = x[{2}*2+{3},{1}]!ordinary",
    "odd places": "8 7 2:v y[{0},{1}*2+{2}] = x[{0},{1}*2+{2}+1] * x[{0}+1,{1}*2+{2}]",
    "even numbers": "8 4 2:v y[{0},{1}*2+{2}] = x[{0},{1}*4+{2}*2] + x[{0},{1}*4+{2}*2+1]",
}


@pytest.mark.parametrize("name", JOINED)
def test_lanes_that_are_no_word_are_loaded_one_by_one(name: str) -> None:
    """The lanes are then packed, also if they are not next to each other."""
    declared = "kernel k(x) -> (y)\nx f32 [16, 16] heap align 8\ny f32 [16, 16] heap align 8\n\n"
    text = f"{declared}16 16 y[{{0}},{{1}}] = 0\n{JOINED[name]}\n"
    for seed in range(2):
        assembly, _ = ran(text, seed)
        assert "vfcpka.s.s" in assembly
        assert ("vfcpka.s.s ft0" in assembly) == (name == "into a stream")


LANES = """\
kernel k(x) -> (y)
x f32 [6, 8] heap align 8
y f32 [6] heap
p f32 [6:N, 2] register

6
| 2:v p[{0},{1}] = 0
| 4 2:v p[{0},{2}] += x[{0},{1}*2+{2}]
| y[{0}] = 3
| 2:v y[{0}] += p[{0},{1}]
"""


def test_lanes_are_added_by_one_instruction() -> None:
    """It rounds once; small integers show that each lane counts once, and special values win."""
    program = kernel(LANES)
    for seed in range(3):
        inputs = random_inputs(parameters_of(nest_of(program)), seed)
        found, _ = run_snitch(program, inputs, DIVIDES)
        close(found, interpret_stepwise(program, inputs), program)
        inputs["x"][:] = np.random.default_rng(seed).integers(-99, 99, inputs["x"].shape)
        inputs["x"][seed] = np.inf
        inputs["x"][seed + 1, seed] = np.nan
        found, _ = run_snitch(program, inputs, DIVIDES)
        agree(program, found, interpret_stepwise(program, inputs))
    assembly = snitch_source(program, DIVIDES).text
    assert assembly.count("vfsum.s") == 1
    assert "(sp)" not in assembly


def test_a_sum_of_lanes_in_a_register_is_an_operand_again() -> None:
    """The bits above the sum are such that instructions on single numbers take it for a number."""
    text = LANES.replace("p f32", "s f32 [6:N] register\np f32").replace("y[{0}] = 3", "s[{0}] = 3")
    text = text.replace("y[{0}] += p[{0},{1}]", "s[{0}] += p[{0},{1}]") + "| y[{0}] = s[{0}] * s[{0}]\n"
    program = kernel(text)
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    inputs["x"][:] = np.random.default_rng(0).integers(-99, 99, inputs["x"].shape)
    found, _ = run_snitch(program, inputs, DIVIDES)
    agree(program, found, interpret_stepwise(program, inputs))


def test_hardware_loops_add_lanes() -> None:
    """Four sums at a time take an instruction a word, and special values win."""
    text = """\
kernel k(x) -> (y)
x f32 [8, 16] heap align 8
y f32 [8] heap
s f32 [2:N, 4] register

2:s
| 4:u s[{0},{1}] = 0
| 8:f 4:u 2:v s[{0},{2}] += x[{0}*4+{2},{1}*2+{3}]
| 4:u y[{0}*4+{1}]!ordinary = s[{0},{1}]
"""
    program = kernel(text)
    for seed in range(3):
        inputs = random_inputs(parameters_of(nest_of(program)), seed)
        inputs["x"][:] = np.random.default_rng(seed).integers(-99, 99, inputs["x"].shape)
        inputs["x"][seed] = -np.inf
        inputs["x"][seed + 1, seed] = np.nan
        found, result = run_snitch(program, inputs, DIVIDES)
        agree(program, found, interpret_stepwise(program, inputs))
        assert result.cycles < 130
    lines = snitch_source(program, DIVIDES).text.splitlines()
    (start,) = [number for number, line in enumerate(lines) if "frep.o" in line]
    assert all("vfsum.s" in line for line in lines[start + 1 : start + 5])


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_number_for_all_lanes_is_added_for_each(dtype: str) -> None:
    lanes = 2 if dtype == "f32" else 4
    declared = f"kernel k(x) -> (y)\nx {dtype} [8] heap align 8\ny {dtype} [8] heap align 8\n\n"
    program = kernel(f"{declared}8\n| y[{{0}}] = 0\n| {lanes}:v y[{{0}}] += x[{{0}}]\n")
    inputs = {"x": np.array([1, -2, 3, 0.5, 64, -7, np.inf, np.nan], "f4" if lanes == 2 else "f2")}
    found, _ = run_snitch(program, inputs, DIVIDES)
    agree(program, found, {"y": inputs["x"] * inputs["x"].dtype.type(lanes)})


RECIPES = ["exp", "exp2", "tanh", "exp_approx", "tanh_approx", "erf_approx"]


@pytest.mark.parametrize("function", RECIPES)
def test_functions_of_both_lanes(function: str) -> None:
    """The bits of the function of single numbers, and its error; NaN, infinities and denormal numbers included."""
    values = special_values("f32", 0)
    values = np.concatenate([values, np.full(len(values) % 2, np.nan, np.float32)])
    wide = np.random.default_rng(0).normal(0, 40, 64).astype(np.float32)
    inputs = {"x": np.concatenate([values, wide])}
    count = len(inputs["x"])
    declared = f"kernel k(x) -> (y)\nx f32 [{count}] heap align 8\ny f32 [{count}] heap align 8\n\n"
    packed = kernel(f"{declared}{count // 2} 2:v y[{{0}}*2+{{1}}] = {function}(x[{{0}}*2+{{1}}])\n")
    single = kernel(f"{declared}{count} y[{{0}}] = {function}(x[{{0}}])\n")
    text = snitch_source(packed, DIVIDES).text
    assert text.count("vfmac.s") > 4
    assert "fmadd" not in text
    assert not re.search(r"\b(lw|feq\.s)\b", text)
    assert text.count("fmv.x.w") <= 1
    found, wanted = run_snitch(packed, inputs)[0], run_snitch(single, inputs)[0]
    agree(packed, found, wanted)
    assert agrees(found["y"], interpret(packed, inputs)["y"], "f32", f"math.{function}")


@pytest.mark.parametrize("function", ["exp", "exp2", "tanh", "expm1", "erf"])
def test_functions_of_f64_need_few_integers(function: str) -> None:
    """Powers of two, signs and NaN: the number does not go through memory, and nothing waits for an idle unit."""
    inputs = {"x": np.concatenate([special_values("f64", 0), np.random.default_rng(1).normal(0, 300, 64)])}
    count = len(inputs["x"])
    declared = f"kernel k(x) -> (y)\nx f64 [{count}] heap\ny f64 [{count}] heap\n\n"
    program = kernel(f"{declared}{count} y[{{0}}] = {function}(x[{{0}}])\n")
    found, _ = run_snitch(program, inputs)
    assert agrees(found["y"], interpret(program, inputs)["y"], "f64", f"math.{function}")
    if function in ("exp", "exp2", "tanh"):
        text = snitch_source(program, DIVIDES).text
        assert not re.search(r"\b(lw|sw|feq\.d)\b", text)


@pytest.mark.parametrize("memory", ["heap", "register"])
def test_rows_of_reused_dimensions_are_no_words(memory: str) -> None:
    """A reused dimension that no lanes index takes one place: rows of five numbers follow each other."""
    loop = "3:u" if memory == "register" else "3"
    ran(
        "kernel k(x) -> (y)\nx f32 [3, 4, 5] heap align 8\ny f32 [3, 4, 4] heap align 8\n"
        f"t f32 [4, 3:N, 5] {memory}\n\n{loop}\n"
        "| 4:u 2:u 2:v t[{1},{0},{2}*2+{3}] = x[{0},{1},{2}*2+{3}]\n"
        "| 4:u 2:u 2:v y[{0},{1},{2}*2+{3}] = t[{1},{0},{2}*2+{3}] + t[{1},{0},{2}*2+{3}]\n"
    )
