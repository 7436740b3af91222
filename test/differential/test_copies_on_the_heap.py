"""Buffers on the heap of which each thread, or each block, has a copy: device code against the interpreter."""

from __future__ import annotations

import pytest

from differential.compiled import kernel, random_inputs
from differential.device_code import MACHINES, run_fibers
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game
from toolchain import require_fibers

HEADER = "kernel k(x) -> (y)\nx f32 [8, 16, 4] heap align 16\ny f32 [8, 16, 4] heap align 16\n"
KERNELS = {
    "of a block": (
        "t f32 [8:N, 16, 4] heap\n\n8:g\n| 16:b 4 t[{0},{1},{2}] = x[{0},{1},{2}]\n"
        "| 16:b 4 y[{0},{1},{2}] = t[{0},-{1}+15,{2}]\n"
    ),
    "of a thread": (
        "t f32 [8:N, 16:N, 4] heap\n\n8:g 16:b\n| 4 t[{0},{1},{2}] = x[{0},{1},{2}]\n"
        "| 4 y[{0},{1},{2}] = t[{0},{1},-{2}+3]\n"
    ),
    "of a thread, in vectors": (
        "t f32 [8:N, 16:N, 4] heap\n\n8:g 16:b\n| 4:v t[{0},{1},{2}] = x[{0},{1},{2}]\n"
        "| 4 y[{0},{1},{2}] = t[{0},{1},-{2}+3]\n"
    ),
}


@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_copies(name: str, warp: int) -> None:
    require_fibers()
    described = machine(MACHINES[warp])
    program = kernel(HEADER + KERNELS[name])
    Game(program, described)
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    wanted = interpret(program, inputs)
    for found in run_fibers(program, inputs, described=described):
        close(found, wanted, program)
