"""Sums of several blocks into one number: atomic operations, run by fibers, compiled, and noticed where they lack."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from differential.compiled import Arrays, kernel, random_inputs
from differential.device_code import MACHINES, CompiledKernels, compile_kernels, run_text
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.fibers import FiberError
from pdojo.backends.gpu.hip import compile_hip
from pdojo.backends.gpu.nvrtc import compile_cuda, disassemble
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, DeviceSpelling, FiberSpelling, HipSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle import check_valid
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from toolchain import require_fibers

SUMS = (Path(__file__).parent / "gpu_kernels" / "atomic_sums.pdojo").read_text()
INTEGERS = [
    (dtype, accumulate, start)
    for dtype in ("i32", "i64")
    for accumulate, start in (("+", 3), ("max", -9), ("min", 9), ("umax", 5), ("umin", 5), ("and", -1), ("or", 0))
]


def integers_text(dtype: str, accumulate: str, start: int) -> str:
    """Three results of eight blocks each, of which some have several iterations of a thread."""
    return f"""kernel k{INTEGERS.index((dtype, accumulate, start))}(x) -> (y)
x {dtype} [24, 40] heap
y {dtype} [3] heap

3 y[{{0}}] = {start}
24:g 40:b y[{{0}}%3] {accumulate}= x[{{0}},{{1}}]
"""


@cache
def compiled_integers() -> CompiledKernels:
    """All of them in one text, because each text costs a run of a compiler."""
    return compile_kernels((kernel(integers_text(*case)) for case in INTEGERS), described=machine(MACHINES[32]))


def agree(program: KernelOp, warp: int, inputs: Arrays | None = None, compiled: CompiledKernels | None = None) -> None:
    described = machine(MACHINES[warp])
    state = Program(program, described)
    validate(state)
    assert conditions_of(state).problems == {}
    assert check_valid(nest_of(program), schedules=3) is None
    given = random_inputs(parameters_of(nest_of(program)), 4) if inputs is None else inputs
    wanted = interpret(program, given)
    code = compile_kernels([program], described=described) if compiled is None else compiled
    for found in code.run(program, given):
        close(found, wanted, program)


@pytest.mark.parametrize("warp", [32, 64])
def test_sums_in_all_orders_of_blocks(warp: int) -> None:
    require_fibers()
    agree(kernel(SUMS), warp)


@pytest.mark.parametrize(
    ("dtype", "accumulate", "start"),
    [
        pytest.param(*case, marks=() if case[0] == "i32" or case[1] in ("+", "umin") else pytest.mark.slow)
        for case in INTEGERS
    ],
)
def test_integers(dtype: str, accumulate: str, start: int) -> None:
    require_fibers()
    program = kernel(integers_text(dtype, accumulate, start))
    bits = np.iinfo(dtype.replace("i", "int"))
    random = np.random.default_rng(5)
    values = random.integers(bits.min, bits.max, (24, 40), dtype.replace("i", "int"), endpoint=True)
    agree(program, 32, {"x": values}, compiled_integers())


def test_special_numbers_in_sums() -> None:
    """Infinities of both signs, and NaN, each in a column of its own."""
    require_fibers()
    program = kernel(SUMS)
    inputs = random_inputs(parameters_of(nest_of(program)), 6)
    inputs["x"][2, 3, 5], inputs["x"][4, 1, 5] = np.inf, -np.inf
    inputs["x"][0, 0, 7], inputs["x"][5, 4, 9] = np.nan, -np.inf
    agree(program, 32, inputs)


def test_two_statements_that_add_to_one_number() -> None:
    """In different blocks: each statement alone runs in one block."""
    require_fibers()
    program = kernel(
        """kernel k(x) -> (y)
numerics reassociate flush
x f32 [4, 9] heap
y f32 [1] heap

y[0] = 1
4:g
| 9:b where ({0} < 1) y[0] += x[{0},{1}]
| 9 where ({0} >= 3) y[0] += x[{0},{1}]
"""
    )
    made = device_text(program, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    assert made.text.count("pd_atomic_add(&y[0]") == 2
    agree(program, 32)


def test_a_block_for_each_number_needs_no_atomic_operation() -> None:
    program = kernel("kernel k(x, y) -> (y)\nx f32 [4, 9] heap\ny f32 [4] heap\n\n4:g 9:b y[{0}] += x[{0},{1}]\n")
    assert "atomic" not in device_text(program, spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text


def text_of_all(spelling: DeviceSpelling, warp: int) -> str:
    """The device code of all operations: sums of f32 and f64, and those of integers."""
    given = [SUMS, SUMS.replace("f32", "f64"), *(integers_text(*case) for case in INTEGERS)]
    programs = [
        kernel(re.sub(r"kernel \w+", f"kernel sums{number}", text, count=1)) for number, text in enumerate(given)
    ]
    return device_text(*programs, spelling=spelling, machine=machine(MACHINES[warp])).text


def test_compiled_by_nvrtc() -> None:
    """Results are not used, so that the instruction is RED, which waits for nothing."""
    try:
        code = disassemble(compile_cuda(text_of_all(CudaSpelling(), 32)).cubin)
    except MissingTool as missing:
        pytest.skip(str(missing))
    parts = re.findall(r"^\.text\.sums(\d+)_\d+:$(.*?)(?=^\.text\.|\Z)", code, re.MULTILINE | re.DOTALL)
    adding = {number for number, part in parts if re.search(r"\bREDG?\.", part)}
    assert adding == {str(number) for number in range(2 + len(INTEGERS))}
    assert not re.search(r"\bATOMG?\.", code)


def test_compiled_by_clang() -> None:
    try:
        compile_hip(text_of_all(HipSpelling(), 64))
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("number", range(2))
def test_a_plain_sum_instead_is_noticed(number: int) -> None:
    require_fibers()
    program = kernel(SUMS)
    inputs = random_inputs(parameters_of(nest_of(program)), 3)
    made = device_text(program, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    calls = re.findall(r"^ +pd_atomic_add\(&(.*), (.*)\);$", made.text, re.MULTILINE)
    place, value = calls[0 if number == 0 else -1]
    broken = made.text.replace(f"pd_atomic_add(&{place}, {value})", f"{place} += {value}")
    assert broken != made.text
    with pytest.raises(FiberError, match="that takes an atomic operation"):
        run_text(broken, program, inputs, warp=32, scratch=made.kernels[0].workspace.size_bytes)


def test_a_number_that_some_blocks_write_and_some_add_to_is_noticed() -> None:
    require_fibers()
    program = kernel(SUMS)
    inputs = random_inputs(parameters_of(nest_of(program)), 3)
    made = device_text(program, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    call = re.findall(r"^ +pd_atomic_add\(&(.*), (.*)\);$", made.text, re.MULTILINE)[0]
    first = f"if (i0 == 0) {call[0]} += {call[1]}; else pd_atomic_add(&{call[0]}, {call[1]})"
    broken = made.text.replace(f"pd_atomic_add(&{call[0]}, {call[1]})", first)
    with pytest.raises(FiberError, match=r"wrote otherwise|change by atomic operations"):
        run_text(broken, program, inputs, warp=32, scratch=made.kernels[0].workspace.size_bytes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SUMS.replace("f32", "f16"), r"blocks accumulate into y\[.*no atomic operation add\.f16"),
        (
            "kernel k(x, y) -> (y)\nx f32 [8] heap\ny f32 [1] heap\n\n8:g y[0] fma= x[{0}] * x[{0}]\n",
            r"no atomic operation that multiplies and adds",
        ),
        (
            "kernel k(x, y) -> (y)\nx f32 [8] heap\ny f32 [1] heap\n\n8:g y[0] max= x[{0}]\n",
            r"no atomic operation max\.f32",
        ),
    ],
)
def test_what_device_code_lacks(text: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        device_text(kernel(text), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
