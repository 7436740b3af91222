"""Code for AVX-512 on an emulated processor, against the interpreter, and against this processor if it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import (
    create_mcjit_compiler,  # pyright: ignore[reportUnknownVariableType]
    get_process_triple,
)
from numpy.typing import NDArray

from differential.bare.calls import Call, FaultError, run_calls
from differential.bare.emulator import require_emulator
from differential.bare.rom import assembled, object_code, rom
from differential.compiled import Arrays, kernel, random_inputs, run, same
from differential.library import close
from differential.test_cross import GROUPS, bundle
from differential.test_llvm_functions import agrees, special_values, text_of
from differential.test_llvm_vectors import ACCESSES, MASKS
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm import optimize
from pdojo.backends.llvm.described import described_object
from pdojo.backends.llvm.executable import load
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.backends.llvm.optimize import architecture_of, processor
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.kernels import workload
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game

AVX512 = "x86-64-avx512"
LIBRARY: dict[tuple[str, str | None], str] = {
    (AVX512, "f32"): "softmax:5x33 layernorm:3x17 matmul:13x17x33 conv:1x3x2x7x19x3 causal_softmax:2x21 argmax:5x37 "
    "colsum:5x65 maxpool:1x2x9x17x3 rotary:1x3x2x22 attention:1x19x37x16",
    (AVX512, "f64"): "softmax:3x9 matmul:5x7x17 colmean:5x33 tanh:3x11",
    (AVX512, "bf16"): "softmax:3x17 layernorm:3x35 avgpool:1x2x10x34 colsum:5x65 rmsnorm:1x33 matmul:5x7x19",
    (AVX512, "f16"): "softmax:3x17 matmul:5x7x17 relu:3x33",
    (AVX512, "i32"): "add:3x17 reducesum:5x33 transpose:17x35 matmul:5x7x17",
    (AVX512, "i8"): "copy:3x65 transpose:17x35 relu:3x33 matmul:5x7x17",
    ("x86-64-zen4", "f32"): "softmax:5x33 matmul:13x17x33 gelu:3x21",
    ("x86-64-zen4", None): "matmul_i8:13x20x32",
}
"""Library kernels at odd sizes, by machine and element type. They have no instructions that Bochs 2.7 gets wrong."""


def call(program: KernelOp, target: str = AVX512) -> Call:
    return Call(program, target, random_inputs(parameters_of(nest_of(program)), 1))


def arrays_of(outcome: Arrays | FaultError) -> Arrays:
    if isinstance(outcome, FaultError):
        raise outcome
    return outcome


def equal(found: NDArray[Any], wanted: NDArray[Any], dtype: str) -> bool:
    """The same bits; Bochs 2.7 rounds f32 halfway between two f16 up, so there a result may be the next number."""
    if same(found, wanted, dtype):
        return True
    if dtype != "f16":
        return False
    away = np.abs(found.view(np.int16).astype(int) - wanted.view(np.int16))
    return bool(np.all((away <= 1) | (np.isnan(found) & np.isnan(wanted))))


def check(calls: list[Call], folder: Path) -> None:
    """Every call gives the interpreter's bits."""
    for made, outcome in zip(calls, run_calls(calls, folder), strict=True):
        found, wanted = arrays_of(outcome), interpret_stepwise(made.kernel, made.inputs)
        for parameter in parameters_of(nest_of(made.kernel)):
            if parameter.written:
                assert equal(found[parameter.name], wanted[parameter.name], parameter.dtype), parameter.name


FAULTS = {
    "reads 1 bytes behind 'x'": "%p = getelementptr i8, ptr %x, i64 32\n%v = load volatile i8, ptr %p",
    "reads 1 bytes before 'x'": "%p = getelementptr i8, ptr %x, i64 -1\n%v = load volatile i8, ptr %p",
    "writes byte 4 of 'x'": "%p = getelementptr i8, ptr %x, i64 4\nstore i32 0, ptr %p",
    "memory behind 'y' was written": "%p = getelementptr i8, ptr %y, i64 32\nstore i8 0, ptr %p",
    "memory behind the workspace was written": "%p = getelementptr i8, ptr %w, i64 64\nstore i8 0, ptr %p",
    "writes 2 bytes before 'y'": "%p = getelementptr i8, ptr %y, i64 -2\nstore i16 0, ptr %p",
    "'y' depends on where": "%n = ptrtoint ptr %y to i64\nstore i64 %n, ptr %y",
    "#UD at byte": "call void @llvm.trap()",
    "#GP at byte": "%p = getelementptr i8, ptr %x, i64 4\n%v = load volatile <4 x float>, ptr %p, align 16",
    "#PF at byte": "%p = alloca i8, i64 6000000\nstore volatile i8 0, ptr %p",
}
"""Wrong code, by what is reported of it."""
FAULTY = """kernel k(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}]
8 y[{0}] = t[7-{0}]
"""


def test_wrong_code_is_noticed(tmp_path: Path) -> None:
    """Each fault is reported, and the call behind it goes on."""
    require_emulator()
    program = kernel(FAULTY)
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    right = Call(program, AVX512, inputs)
    calls = [right]
    for body in FAULTS.values():
        text = f"declare void @llvm.trap()\ndefine void @k(ptr %x, ptr %y, ptr %w, i32 %t) {{\n{body}\nret void\n}}\n"
        calls += [Call(program, AVX512, inputs, object_code(text)), right]
    outcomes = run_calls(calls, tmp_path)
    for outcome in outcomes[::2]:
        assert np.array_equal(arrays_of(outcome)["y"], inputs["x"][::-1])
    for expected, outcome in zip(FAULTS, outcomes[1::2], strict=True):
        assert expected in str(outcome)


def test_the_firmware_is_its_text() -> None:
    if architecture_of(get_process_triple()) != "x86_64":
        pytest.skip("the assembler of LLVM's Python package is that of its own architecture, and not x86-64")
    assert rom().startswith(assembled())


@pytest.mark.parametrize(("target", "dtype"), LIBRARY)
def test_tuned_library(target: str, dtype: str | None, tmp_path: Path) -> None:
    """Results as the interpreter computes them, with the bits of this processor if it can run the code."""
    require_emulator()
    games = [Game(workload(text, dtype).instantiate(), machine(target)) for text in LIBRARY[target, dtype].split()]
    for game in games:
        run_pass("heuristic", game)
    calls = [call(game.kernel, target) for game in games]
    for game, made, outcome in zip(games, calls, run_calls(calls, tmp_path), strict=True):
        found = arrays_of(outcome)
        close(found, interpret(game.programs[0].kernel, made.inputs), game.kernel)
        native = on_this_processor(made)
        for parameter in parameters_of(nest_of(made.kernel)):
            if native is not None and parameter.written:
                assert equal(found[parameter.name], native[parameter.name], parameter.dtype)


def on_this_processor(made: Call) -> Arrays | None:
    """The arrays that the same object code writes here; None if this processor cannot run it."""
    try:
        processor(machine(made.target))
    except LoweringError:
        return None
    nest = nest_of(made.kernel)
    plan, parameters = plan_memory(nest), parameters_of(nest)
    code = described_object([made.kernel], machine(made.target))
    sizes = plan.shared_bytes, plan.thread_bytes
    with pytest.MonkeyPatch.context() as patch:
        # This code calls functions through stubs, for which the other engine has no memory.
        patch.setattr(optimize, "engine", create_mcjit_compiler)  # pyright: ignore[reportUnknownArgumentType]
        loaded = load(made.kernel, ObjectCode(nest.symbol, code.code, *sizes, code.is_parallel, False, parameters), 1)
    return run(loaded, made.inputs)


DIRECTIONS = {
    "first": "where ({{0}} < {n}) y{n}[{{0}}] = cast(x{n}[{{0}}])",
    "last": "where ({{0}} >= {rest}) y{n}[{{0}}-{rest}] = cast(x{n}[{{0}}-{rest}])",
    "first_reversed": "where ({{0}} < {n}) y{n}[{n}-1-{{0}}] = cast(x{n}[{n}-1-{{0}}])",
    "last_reversed": "where ({{0}} >= {rest}) y{n}[{lanes}-1-{{0}}] = cast(x{n}[{lanes}-1-{{0}}])",
}
"""Guards of which lanes are active, and the order of the elements."""
NARROWING = ["f32 bf16", "f32 f16", "f64 f32", "i64 i32", "i64 i16", "i64 i8", "i32 i16", "i32 i8", "i16 i8"]
WIDENING = [" ".join(pair.split()[::-1]) for pair in NARROWING]


@pytest.mark.parametrize("conversion", [*NARROWING, *WIDENING, "f32 f32", "i8 i8"])
def test_masked_conversions(conversion: str, tmp_path: Path) -> None:
    """Vectors with 1 to all lanes active, in arrays of as many elements."""
    require_emulator()
    given, made = conversion.split()
    lanes = min(32, 64 // max(byte_width(given), byte_width(made)))
    numbers = range(1, lanes + 1)
    inputs, outputs = ", ".join(f"x{n}" for n in numbers), ", ".join(f"y{n}" for n in numbers)
    arrays = "\n".join(f"x{n} {given} [{n}] heap\ny{n} {made} [{n}] heap" for n in numbers)
    calls: list[Call] = []
    for direction, body in DIRECTIONS.items():
        lines = "\n".join(f"{lanes}:v {body.format(n=n, rest=lanes - n, lanes=lanes)}" for n in numbers)
        calls.append(call(kernel(f"kernel {direction}({inputs}) -> ({outputs})\n{arrays}\n\n{lines}\n")))
    check(calls, tmp_path)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "i32"])
def test_vectors(dtype: str, tmp_path: Path) -> None:
    require_emulator()
    calls: list[Call] = []
    for bodies, fill in ((ACCESSES, False), (MASKS, True)):
        chosen = bodies if is_float(dtype) else {k: body.replace("2.5", "2") for k, body in bodies.items()}
        calls.append(call(kernel(bundle(chosen, dtype, fill=fill))))
    check(calls, tmp_path)


LIBM = ("arith.remf", "arith.maxnumf", "arith.minnumf")
"""Functions that call the C library."""


@pytest.mark.parametrize(
    "group", [pytest.param(k, marks=[pytest.mark.slow] if k != 1 else []) for k in range(len(GROUPS))]
)
def test_functions(group: int, tmp_path: Path) -> None:
    """Every function on every element type, scalar and in vectors, on special values."""
    require_emulator()
    functions = [name for name in GROUPS[group] if name not in LIBM]
    calls: list[Call] = []
    for function in functions:
        text, inputs = text_of(function)
        values = {name: special_values(dtype, "abc".index(name[0]) * (group % 3)) for name, dtype in inputs.items()}
        calls.append(Call(kernel(text), AVX512, values))
    for function, made, outcome in zip(functions, calls, run_calls(calls, tmp_path), strict=True):
        found, wanted = arrays_of(outcome), interpret(made.kernel, made.inputs)
        for p in parameters_of(nest_of(made.kernel)):
            if p.written:
                left, right = found[p.name], wanted[p.name]
                assert agrees(left, right, p.dtype, function) or equal(left, right, p.dtype), (function, p.name)
