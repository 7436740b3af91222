"""Attention in one launch: the pass's programs for `attention_online`, run by fibers and compiled."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from differential.compiled import Arrays
from differential.device_code import first_line, run_fibers, unnoticed
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import nvrtc
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Scope
from pdojo.kernels import workload
from pdojo.kernels.reference import numpy_reference
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.gpu.heuristic import heuristic
from pdojo.transforms.game import Game
from toolchain import require_fibers

CASES = {
    "causal, shared keys": ("attention_online:1x2x2x192x192x64", "bf16", "mma_16x8x16_bf16"),
    "all keys": ("attention_online:2x1x1x64x192x32,P=192", "bf16", "mma_16x8x16_bf16"),
    "more keys than queries": ("attention_online:1x1x2x64x160x48,P=96,R=32,C=32", "f16", "mma_16x8x16_f16"),
    "one warp, wide heads": ("attention_online:1x1x1x32x96x128,R=16,C=32", "bf16", "mma_16x8x16_bf16"),
    "tf32": ("attention_online:1x1x2x128x192x40,P=64", "f32", "mma_16x8x8_tf32"),
    "3xtf32": ("attention_online:1x2x1x96x96x16,R=32,C=24", "f32", "mma_16x8x8_3xtf32"),
}
"""Kernels at their sizes, element types, and the instruction that computes both products."""
TOLERANCE = {"bf16": 2e-2, "f16": 3e-3, "f32": 5e-5}
TF32 = 1e-2


@cache
def plain(case: str) -> KernelOp:
    text, dtype, unit = CASES[case]
    kernel = workload(text, dtype).instantiate()
    if unit == "mma_16x8x8_tf32":
        (kernel,) = parse_notation(print_notation(kernel).replace("numerics ", "numerics tf32 ", 1))
    return with_alignment(kernel, 16)


@cache
def mapped(case: str) -> KernelOp:
    game = Game(plain(case), machine("nvidia-sm90"))
    PassBuilder.play(game, heuristic)
    validate(game.program)
    return game.kernel


def inputs_of(case: str, seed: int) -> Arrays:
    return random_inputs(parameters_of(nest_of(plain(case))), seed)


def wanted(case: str, inputs: Arrays) -> Arrays:
    text, dtype, _ = CASES[case]
    (found,) = numpy_reference(workload(text, dtype))(*inputs.values())
    return {"o": found}


@pytest.mark.parametrize("case", CASES)
def test_one_launch(case: str) -> None:
    """All temporaries are in registers and shared memory, and instructions of a warp compute both products."""
    nest = nest_of(mapped(case))
    (root,) = nest.children
    assert isinstance(root, Scope)
    assert root.mapping is Mapping.GRID
    assert [s.intrinsic for s in nest.scopes if s.mapping is Mapping.TENSOR] == [CASES[case][2]] * 2
    used = {access.array for leaf in nest.leaves for access in leaf.accesses}
    assert all(array.intent is not None or array.buffer.memory is not Memory.HEAP for array in used)


@pytest.mark.parametrize("case", CASES)
def test_results(case: str) -> None:
    require_fibers()
    _, dtype, unit = CASES[case]
    inputs = inputs_of(case, 1)
    expected = wanted(case, inputs)["o"]
    error = TF32 if unit == "mma_16x8x8_tf32" else TOLERANCE[dtype]
    for found in run_fibers(mapped(case), inputs, described=machine("nvidia-sm90")):
        assert np.abs(from_interface(found["o"], dtype) - expected).max() < error


def test_tiles_behind_the_diagonal_are_not_visited() -> None:
    """Keys and values that no query of the first block attends to may be NaN there."""
    require_fibers()
    case = "causal, shared keys"
    inputs = inputs_of(case, 2)
    for name in "kv":
        inputs[name][:, :, 64:] = 0x7FC0
    (found,) = run_fibers(mapped(case), inputs, described=machine("nvidia-sm90"), ways=[(True, 3)])
    result = from_interface(found["o"], "bf16")
    assert np.isfinite(result[:, :, :64]).all()
    assert np.isnan(result[:, :, 64:]).all()


@pytest.mark.parametrize("case", ["more keys than queries", "3xtf32"])
def test_every_defect_is_noticed(case: str) -> None:
    """A barrier or a wait that is missing, a sum over fewer threads of a row, an old maximum that is not kept."""
    require_fibers()
    program, final = plain(case), mapped(case)
    inputs = inputs_of(case, 3)
    made = device_text(final, spelling=FiberSpelling(), machine=machine("nvidia-sm90"))
    lines = made.text.split("\n")
    kernels = range(first_line(made.text), len(lines))
    broken = re.compile(r"\s*(__sync|pd_sync|pd_copy_wait|\w+ = .*pd_shfl_xor|a\[.*\] = expf)")
    defects = {f"{k} without {lines[k]}": {k: ""} for k in kernels if broken.match(lines[k])}
    assert sum("pd_shfl_xor" in name for name in defects) == 4
    expected = interpret(program, inputs)
    assert unnoticed(made.text, defects, program, final, inputs, expected, warp=32, scratch=0) == []


@pytest.mark.parametrize("case", CASES)
def test_resources(case: str) -> None:
    """Scores, weights, statistics and results stay in registers."""
    made = device_text(mapped(case), spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
    try:
        image = nvrtc.compile_cuda(made.text)
    except MissingTool as missing:
        pytest.skip(str(missing))
    (resources,) = image.kernels.values()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
