"""The gpu form of kernels, run thread by thread, computes what the interpreter computes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects, gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter

from differential.compiled import Arrays, kernel, random_inputs
from differential.device_code import run_fibers
from differential.gpu_ir import Device, DeviceError, Memory
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.ir.convert import ConvertPdojoToGpuPass
from pdojo.backends.gpu.ir.dialect import GPU_COMPLETE
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import CARRIERS, from_interface, to_interface
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.kernels.random_kernels import features_for, random_text

GPU_KERNELS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "gpu_kernels").iterdir())}
"""Small kernels by what is special about them."""
MACHINES = {4: "toy-gpu", 32: "nvidia-sm90", 64: "amd-gfx942"}
"""A machine for each size of warps."""


def lowered(program: KernelOp, warp: int) -> ModuleOp:
    """The kernel in gpu form, printed and parsed again."""
    module = ModuleOp([program.clone()])
    ConvertPdojoToGpuPass(MACHINES[warp]).apply(Context(), module)
    module.verify()
    text = StringIO()
    Printer(text).print_op(module)
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, (lambda: GPU_COMPLETE) if name == "gpu" else factory)
    again = Parser(ctx, text.getvalue()).parse_module()
    again.verify()
    assert again.is_structurally_equivalent(module)
    return again


def run(module: ModuleOp, program: KernelOp, inputs: Arrays, *, warp: int, seed: int) -> tuple[Arrays, Device]:
    """The arrays that the gpu form of a kernel writes, and the device."""
    device = Device(module, warp=warp, seed=seed)
    memories: dict[str, Memory] = {}
    written: dict[str, str] = {}
    for parameter in parameters_of(nest_of(program)):
        empty = np.full(parameter.shape, np.nan if parameter.dtype[0] != "i" else 90, CARRIERS[parameter.dtype])
        given = inputs.get(parameter.name)
        memories[parameter.name] = Memory(
            empty if given is None else np.asarray(from_interface(given, parameter.dtype)), parameter.dtype
        )
        if parameter.written:
            written[parameter.name] = parameter.dtype
    device.call(nest_of(program).name, list(memories.values()))
    return {name: to_interface(memories[name].values, dtype) for name, dtype in written.items()}, device


def agree(program: KernelOp, *, warp: int = 32, seed: int = 0) -> Device:
    """Run a kernel and compare; the device."""
    validate(Program(program, machine(MACHINES[warp])))
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    found, device = run(lowered(program, warp), program, inputs, warp=warp, seed=seed)
    close(found, interpret(program, inputs), program)
    return device


@pytest.mark.parametrize(
    ("name", "warp"),
    [(name, warp) for name, text in GPU_KERNELS.items() for warp in (32, 64) if warp == 32 or ":w" in text],
)
def test_kernels(name: str, warp: int) -> None:
    agree(kernel(GPU_KERNELS[name]), warp=warp, seed=warp)


def test_random_kernels() -> None:
    toy = machine("toy-gpu")
    refused = 0
    for seed in range(20):
        program = kernel(random_text(seed, features_for(toy)))
        try:
            agree(program, warp=4, seed=seed)
        except LoweringError:
            refused += 1
    assert refused < 3


SUM = """
kernel k(x) -> (y)
x {dtype} [2, 4, 8] heap
y {dtype} [2, 4] heap

2:g
| 4:b y[{{0}},{{1}}] = {start}
| 4:b 8:w y[{{0}},{{1}}] {accumulate}= x[{{0}},{{1}},{{2}}]
"""


@pytest.mark.parametrize(
    ("dtype", "accumulate"),
    [
        *((dtype, "+") for dtype in ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8")),
        *((dtype, "max") for dtype in ("f64", "bf16", "i64", "i8")),
        *(("i1", accumulate) for accumulate in ("and", "or")),
    ],
)
def test_words_of_shuffles(dtype: str, accumulate: str) -> None:
    start = {"max": "-inf" if dtype in ("f64", "bf16") else "-9", "and": "true", "or": "false"}.get(accumulate, "0")
    device = agree(kernel(SUM.format(dtype=dtype, accumulate=accumulate, start=start)))
    assert device.shuffles == 2 * 3 * (2 if dtype in ("f64", "i64") else 1)


def barriers(module: ModuleOp) -> list[gpu.BarrierOp]:
    """The barriers of a module."""
    return [op for op in module.walk() if isinstance(op, gpu.BarrierOp)]


@pytest.mark.parametrize("name", ["apart", "cells", "guarded_tree", "layernorm", "shared_sums", "unrolled_tree"])
def test_without_barriers_there_are_races(name: str) -> None:
    program = kernel(GPU_KERNELS[name])
    module = lowered(program, 32)
    for barrier in barriers(module):
        Rewriter.erase_op(barrier)
    with pytest.raises(DeviceError, match="Visit"):
        run(module, program, random_inputs(parameters_of(nest_of(program)), 0), warp=32, seed=0)


@pytest.mark.parametrize("name", ["async_copy", "layernorm", "matmul", "matmul_odd", "swizzled", "unrolled_tree"])
def test_every_barrier_is_needed(name: str) -> None:
    program = kernel(GPU_KERNELS[name])
    for number in range(len(barriers(lowered(program, 32)))):
        module = lowered(program, 32)
        Rewriter.erase_op(barriers(module)[number])
        with pytest.raises(DeviceError, match="Visit"):
            run(module, program, random_inputs(parameters_of(nest_of(program)), 0), warp=32, seed=0)


@pytest.mark.usefixtures("fibers")
@pytest.mark.parametrize("name", ["uneven_groups", "unrolled_tree"])
def test_as_text(name: str) -> None:
    program = kernel(GPU_KERNELS[name])
    inputs = random_inputs(parameters_of(nest_of(program)), 0)
    wanted = interpret(program, inputs)
    for found in run_fibers(program, inputs, described=machine(MACHINES[32])):
        close(found, wanted, program)
