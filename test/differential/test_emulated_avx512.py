"""Code for AVX-512 on an emulated processor, between absent pages, against the interpreter and against this processor."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.bare.calls import Call, EmulatorTooOldError, FaultError, run_calls
from differential.bare.emulator import require_emulator
from differential.bare.rom import assembled, object_code, rom
from differential.compiled import Arrays, kernel, random_inputs, run, same
from differential.library import close
from differential.test_cross import bundle, function_program
from differential.test_llvm_functions import FUNCTIONS, agrees, special_values
from differential.test_llvm_vectors import ACCESSES, MASKS
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.described import described_object
from pdojo.backends.llvm.executable import load
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.backends.llvm.optimize import processor
from pdojo.dialect.functions import is_float
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret, interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.kernels import workload
from pdojo.search.kinds.passes import play_pass
from pdojo.transforms.game import Game

AVX512 = "x86-64-avx512"
LIBRARY = {
    (AVX512, "f32"): "softmax:5x33 layernorm:3x17 matmul:13x17x33 conv:1x3x2x7x19x3 cumsum:3x19 argmax:5x37 "
    "colsum:5x65 maxpool:1x2x9x17x3 rotary:1x3x2x22",
    (AVX512, "f64"): "softmax:3x9 matmul:5x7x17 colmean:5x33 tanh:3x11",
    (AVX512, "bf16"): "softmax:3x17 layernorm:3x33 avgpool:1x2x10x34 colsum:5x65 rmsnorm:1x33 matmul:5x7x17",
    (AVX512, "f16"): "softmax:3x17 matmul:5x7x17 relu:3x33",
    (AVX512, "i32"): "add:3x17 reducesum:5x33 transpose:17x35 matmul:5x7x17",
    (AVX512, "i8"): "copy:3x65 transpose:17x35 relu:3x33 matmul:5x7x17",
    ("x86-64-zen4", "f32"): "softmax:5x33 matmul:13x17x33 gelu:3x21",
    ("x86-64-zen4", None): "matmul_i8:9x17x12",
}
"""Library kernels at odd sizes, by machine and element type. bf16 on Zen 4 takes instructions that Bochs 2.7 lacks."""


@cache
def tuned(target: str, dtype: str | None) -> list[Game]:
    """Library kernels after the expert pass."""
    games = [
        Game(workload(text, dtype).instantiate(), machine(target)) for text in LIBRARY[target, dtype].split()
    ]
    for game in games:
        play_pass("heuristic", game)
    return games


def call(program: KernelOp, target: str = AVX512, **placed: Any) -> Call:
    return Call(program, target, random_inputs(parameters_of(nest_of(program)), 1), **placed)


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


@pytest.mark.parametrize(("target", "dtype"), LIBRARY)
def test_tuned_library(target: str, dtype: str | None, tmp_path: Path) -> None:
    require_emulator()
    games = tuned(target, dtype)
    calls = [call(game.kernel, target) for game in games]
    for game, made, outcome in zip(games, calls, run_calls(calls, tmp_path), strict=True):
        close(arrays_of(outcome), interpret(game.programs[0].kernel, made.inputs), game.kernel)


@pytest.mark.parametrize(("target", "dtype"), LIBRARY)
def test_the_emulator_computes_as_this_processor_does(target: str, dtype: str | None, tmp_path: Path) -> None:
    require_emulator()
    try:
        processor(machine(target))
    except LoweringError as error:
        pytest.skip(str(error))
    calls = [call(game.kernel, target) for game in tuned(target, dtype)]
    for made, outcome in zip(calls, run_calls(calls, tmp_path), strict=True):
        nest = nest_of(made.kernel)
        plan, parameters = plan_memory(nest), parameters_of(nest)
        code = described_object(made.kernel, machine(target))
        sizes = plan.shared_bytes, plan.thread_bytes
        own = load(made.kernel, ObjectCode(nest.symbol, code.code, *sizes, code.is_parallel, False, parameters), 1)
        found, wanted = arrays_of(outcome), run(own, made.inputs)
        assert all(equal(found[name], wanted[name], p.dtype) for p in parameters if (name := p.name) in wanted)


LANES = 16
DIRECTIONS = {
    "first lanes": "where ({{0}} < {n}) y{n}[{{0}}] = cast(x{n}[{{0}}])",
    "last lanes": "where ({{0}} >= {rest}) y{n}[{{0}}-{rest}] = cast(x{n}[{{0}}-{rest}])",
    "first lanes, reversed": "where ({{0}} < {n}) y{n}[{n}-1-{{0}}] = cast(x{n}[{n}-1-{{0}}])",
    "last lanes, reversed": "where ({{0}} >= {rest}) y{n}[15-{{0}}] = cast(x{n}[15-{{0}}])",
}
NARROWING = ["f32 bf16", "f32 f16", "f64 f32", "i64 i32", "i64 i16", "i64 i8", "i32 i16", "i32 i8", "i16 i8"]
WIDENING = [" ".join(pair.split()[::-1]) for pair in NARROWING]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("conversion", [*NARROWING, *WIDENING, "f32 f32", "i8 i8"])
def test_masked_conversions(conversion: str, direction: str, tmp_path: Path) -> None:
    """Arrays of 1 to 16 elements, of which each is a vector's active lanes, beside absent pages."""
    require_emulator()
    given, made = conversion.split()
    numbers = range(1, LANES + 1)
    inputs, outputs = ", ".join(f"x{n}" for n in numbers), ", ".join(f"y{n}" for n in numbers)
    arrays = "\n".join(f"x{n} {given} [{n}] heap\ny{n} {made} [{n}] heap" for n in numbers)
    lines = "\n".join(f"{LANES}:v {DIRECTIONS[direction].format(n=n, rest=LANES - n)}" for n in numbers)
    program = kernel(f"kernel k({inputs}) -> ({outputs})\n{arrays}\n\n{lines}\n")
    check([call(program, against="end"), call(program, against="start")], tmp_path)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "i32"])
def test_vectors(dtype: str, tmp_path: Path) -> None:
    require_emulator()
    calls: list[Call] = []
    for bodies, fill in ((ACCESSES, False), (MASKS, True)):
        chosen = bodies if is_float(dtype) else {k: body.replace("2.5", "2") for k, body in bodies.items()}
        calls.append(call(kernel(bundle(chosen, dtype, fill=fill))))
    check(calls, tmp_path)
