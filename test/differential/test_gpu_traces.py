"""The library's traces for a GPU: they replay, their device code is right, and its values stay in registers."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

import numpy as np
import pytest

import pdojo.kernels
from differential.compiled import Arrays, random_inputs
from differential.device_code import run_fibers
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.fibers import Order
from pdojo.backends.gpu.nvrtc import compile_cuda
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.block_threads import THREADS
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.nest import Scope
from pdojo.kernels import workload
from pdojo.kernels.reference import numpy_reference
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from toolchain import require_fibers

FOLDER = Path(pdojo.kernels.__file__).parent / "traces"
SIZES = {
    "add": ("add:3072x4096", "add:6x1024"),
    "colmean": ("colmean:4096x4096", "colmean:256x256"),
    "conv": ("conv:8x64x64x56x56x3", "conv:2x64x16x10x14x3"),
    "layernorm": ("layernorm:16384x1024", "layernorm:3x1024"),
    "matmul": ("matmul:1024x1024x1024", "matmul:128x48x256"),
    "matmul-split": ("matmul:128x8192x128", "matmul:64x512x128"),
    "reducesum": ("reducesum:4096x4096", "reducesum:5x4096"),
    "softmax": ("softmax:24576x512", "softmax:8x256"),
}
"""For each trace the sizes that it is for, and smaller ones that it fits as well."""
FULL = ("colmean", "layernorm", "matmul-split")
"""Traces whose full size fibers run in seconds: columns, rows, a product in parts; `--slow` has the rest."""
ONE_WAY: tuple[tuple[bool, Order], ...] = ((True, 7),)


def start(text: str) -> KernelOp:
    return with_alignment(workload(text).instantiate(), 16)


def replayed(name: str, text: str) -> Game:
    """The game after all moves of a trace, by location and, the same, by identifier."""
    trace = Trace.load(FOLDER / f"{name}-nvidia-sm90.trace")
    assert trace.kernel == workload(text).kernel
    by_location, by_identifier = (Game(start(text), machine(trace.machine)) for _ in range(2))
    by_location.apply_all(trace.moves)
    assert by_identifier.replay(trace.steps) == []
    assert by_location.program.text == by_identifier.program.text
    return by_identifier


def test_every_trace_is_tested() -> None:
    assert {path.name.removesuffix("-nvidia-sm90.trace") for path in FOLDER.glob("*-nvidia-sm90.trace")} == {*SIZES}


@pytest.mark.parametrize("name", SIZES)
def test_at_small_sizes_in_all_orders(name: str) -> None:
    require_fibers()
    text = SIZES[name][1]
    game = replayed(name, text)
    inputs = random_inputs(parameters_of(game.program.nest), 1)
    wanted = interpret(start(text), inputs)
    for found in run_fibers(game.kernel, inputs, described=machine("nvidia-sm90")):
        close(found, wanted, game.kernel)


@pytest.mark.parametrize(
    "name", [name if name in FULL else pytest.param(name, marks=pytest.mark.slow) for name in SIZES]
)
def test_at_full_size(name: str) -> None:
    """Every launch has several threads; the text has the library's meaning."""
    require_fibers()
    text = SIZES[name][0]
    game = replayed(name, text)
    validate(game.program)
    for node in game.program.nest.children:
        assert isinstance(node, Scope)
        assert node.mapping is Mapping.GRID
        assert max(prod(s.extent for s in leaf.chain if s.mapping in THREADS) for leaf in node.leaves) >= 32
    parameters = parameters_of(game.program.nest)
    random = np.random.default_rng(2)
    inputs: Arrays = {p.name: random.standard_normal(p.shape, np.float32) for p in parameters if not p.written}
    wanted = numpy_reference(workload(text))(*inputs.values())
    (found,) = run_fibers(game.kernel, inputs, described=machine("nvidia-sm90"), ways=ONE_WAY)
    close(found, dict(zip(found, (w.astype(np.float32) for w in wanted), strict=True)), game.kernel)


@pytest.mark.parametrize("name", SIZES)
def test_resources(name: str) -> None:
    """Nothing is spilled; a block has the shared memory that the comment lists."""
    kernel = replayed(name, SIZES[name][0]).kernel
    made = device_text(kernel, spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
    try:
        image = compile_cuda(made.text)
    except MissingTool as missing:
        pytest.skip(str(missing))
    for entry in made.kernels[0].launches:
        listed = re.search(r"^// bytes of shared memory: (.*)$", entry.text, re.MULTILINE)
        counted = sum(map(int, re.findall(r"\w+ (\d+)", listed[1]))) if listed else 0
        assert image.kernels[entry.name].shared + entry.shared_bytes == counted
    for resources in image.kernels.values():
        assert not resources.spills
        assert resources.stack == 0
