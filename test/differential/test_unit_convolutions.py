"""Convolutions on tensor units (implicit GEMM), channels first and last, by the pass: by fibers, and compiled."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from differential.device_code import run_fibers
from pdojo import build
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import nvrtc
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.build import nest_of
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.gpu.heuristic import heuristic
from pdojo.transforms.game import Game
from toolchain import require_fibers

CASES = {
    "first, bf16": ((2, 16, 12, 11), 32, 3, 0, "bf16", False),
    "first, tf32": ((2, 8, 10, 12), 32, 3, 0, "f32", False),
    "last, bf16": ((1, 32, 10, 10), 64, 3, 0, "bf16", True),
    "last, tf32": ((1, 32, 10, 11), 64, 3, 0, "f32", True),
    "last, pointwise, bf16": ((1, 64, 9, 8), 64, 1, 0, "bf16", True),
}
"""Images N x C x H x W, filters, taps, padding, element type, and whether channels are last."""
UNITS = {"bf16": "mma_16x8x16_bf16", "f16": "mma_16x8x16_f16", "f32": "mma_16x8x8_tf32"}
TOLERANCE = {"bf16": 4e-3, "f16": 5e-4, "f32": 2e-3}
"""Errors relative to the largest result."""


@cache
def plain(case: str) -> KernelOp:
    (n, c, h, w), filters, taps, padding, dtype, last = CASES[case]
    x = build.input("x", dtype, (n, h, w, c) if last else (n, c, h, w))
    k = build.input("k", dtype, (taps, taps, c, filters) if last else (filters, c, taps, taps))
    if last:
        found = build.conv(build.transpose(x, (0, 3, 1, 2)), build.transpose(k, (3, 2, 0, 1)), padding=padding)
        found = build.transpose(found, (0, 2, 3, 1))
    else:
        found = build.conv(x, k, padding=padding)
    kernel = build.kernel("conv", [x, k], {"y": found}, numerics=["reassociate", "contract", "tf32"])
    return with_alignment(kernel, 16)


@cache
def mapped(case: str) -> KernelOp:
    game = Game(plain(case), machine("nvidia-sm90"))
    PassBuilder.play(game, heuristic)
    validate(game.program)
    return game.kernel


@pytest.mark.parametrize("case", CASES)
def test_results(case: str) -> None:
    require_fibers()
    dtype = CASES[case][4]
    inputs = random_inputs(parameters_of(nest_of(plain(case))), 1)
    wanted = from_interface(interpret(plain(case), inputs)["y"], dtype)
    for found in run_fibers(mapped(case), inputs, described=machine("nvidia-sm90")):
        error = np.abs(from_interface(found["y"], dtype) - wanted).max()
        assert error < TOLERANCE[dtype] * np.abs(wanted).max()


@pytest.mark.parametrize("case", CASES)
def test_the_instruction_computes_them(case: str) -> None:
    nest = nest_of(mapped(case))
    assert [s.intrinsic for s in nest.scopes if s.mapping is Mapping.TENSOR] == [UNITS[CASES[case][4]]]


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("last")])
def test_channels_last_are_copied_in_vectors(case: str) -> None:
    """Channels of images and of filters are contiguous, so copies to shared memory have 16 bytes, asynchronously."""
    nest = nest_of(mapped(case))
    copies = [leaf for leaf in nest.leaves if leaf.output.array.buffer.memory is Memory.SHARED and leaf.reads]
    assert len(copies) == 2
    assert all(leaf.asynchronous and leaf.chain[-1].mapping is Mapping.VECTOR for leaf in copies)


@pytest.mark.parametrize("case", CASES)
def test_resources(case: str) -> None:
    made = device_text(mapped(case), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
    try:
        image = nvrtc.compile_cuda(made.text)
    except MissingTool as missing:
        pytest.skip(str(missing))
    assert not any(resources.spills or resources.stack for resources in image.kernels.values())
