"""Random legal moves on kernels with sizes for a GPU and a Snitch core, judged by their code for several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from differential.compiled import Arrays
from differential.device_code import compile_kernels
from differential.gpu_ir import Device
from differential.sized import run_in_gpu_form, values_of
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.fibers import WAYS, compilers
from pdojo.backends.gpu.ir.convert import ConvertPdojoToGpuPass
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.snitch.executable import load
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game

ROWS = """\
kernel rows(x) -> (y)
size N in 1..9
size M in 4..12 multiple 4
x f32 [N, M] heap
y f32 [N, M] heap
s f32 [N] heap

N
| s[{0}] = 0
| M s[{0}] += x[{0},{1}]
N M y[{0},{1}] = x[N-1-{0},{1}] * s[{0}]
"""
PRODUCT = """\
kernel product(x, w) -> (y)
size N in 2..7
size K in 1..6
x f64 [N, 8] heap
w f64 [K, 8] heap
y f64 [N, K] heap
t f64 [N, K] heap

N K
| t[{0},{1}] = 0
| 8 t[{0},{1}] += x[{0},{2}] * w[{1},{2}]
N K y[{0},{1}] = t[{0},{1}] + N
"""
STEPS = 4
"""Moves of a walk."""


def walk(text: str, name: str, seed: int) -> Iterator[KernelOp]:
    """The kernel, then the programs after random moves for a machine."""
    (start,) = parse_notation(text)
    random, game = Random(seed), Game(start, machine(name))
    yield start
    for _ in range(STEPS):
        moves = game.moves()
        family = random.choice(sorted({move.name for move in moves}))
        game.apply(random.choice([move for move in moves if move.name == family]))
        yield game.program.kernel


def judge(start: KernelOp, run: Callable[[Arrays, dict[str, int]], list[Arrays]]) -> None:
    """Assert that code computes what a kernel means, at the ends of the ranges of its sizes and beside them."""
    for values in values_of(start, ()):
        known = bound(start, values)
        inputs = random_inputs(parameters_of(nest_of(known)), 0)
        for found in run(inputs, values):
            for array, wanted in interpret(known, inputs).items():
                np.testing.assert_allclose(found[array], wanted, rtol=3e-4, atol=3e-5, err_msg=f"{array} at {values}")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("text", [ROWS, PRODUCT], ids=["rows", "product"])
def test_snitch_code_of_legal_moves(text: str, seed: int) -> None:
    start, *programs = walk(text, "toy-snitch", seed)
    for program in programs:
        loaded = load(program, machine("snitch-xdiv"))
        judge(start, lambda inputs, values, loaded=loaded: [loaded.run(inputs, sizes=values).outputs])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("text", [ROWS, PRODUCT], ids=["rows", "product"])
def test_the_gpu_form_of_legal_moves(text: str, seed: int) -> None:
    start, *programs = walk(text, "toy-gpu", seed)
    for program in programs:
        module = ModuleOp([program.clone()])
        ConvertPdojoToGpuPass("toy-gpu").apply(Context(), module)
        device = Device(module, warp=4, seed=seed)
        judge(start, lambda inputs, values, p=program, d=device: [run_in_gpu_form(d, p, inputs, values)])


@pytest.mark.skipif(not compilers(), reason="no C++ compiler")
@pytest.mark.parametrize("text", [ROWS, PRODUCT], ids=["rows", "product"])
def test_device_code_of_legal_moves(text: str) -> None:
    start, *programs = walk(text, "nvidia-sm90", 0)
    compiled = compile_kernels([programs[-1]], described=machine("nvidia-sm90"))
    ways = (WAYS[0], WAYS[4])
    judge(start, lambda inputs, values: compiled.run(programs[-1], inputs, sizes=values, ways=ways))
