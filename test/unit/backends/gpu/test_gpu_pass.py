"""What the expert pass for graphics processors makes of kernels at their own sizes: launches, memory, machine code."""

from __future__ import annotations

from math import prod

import pytest

from pdojo.backends.gpu.hip import compile_hip
from pdojo.backends.gpu.nvrtc import compile_cuda
from pdojo.backends.gpu.resources import SM_90, MissingTool, Occupancy, occupancy
from pdojo.backends.gpu.spelling import CudaSpelling, HipSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Intent, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of, nest_on
from pdojo.dialect.view.nest import Buffer
from pdojo.kernels import workload
from pdojo.passes.gpu.cost_model import UPDATE, estimate_gpu
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from toolchain import hip_toolchain

MEMORY_BOUND = (
    *("add", "reducemean", "softmax", "layernorm_2", "batchnorm_2"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "mul", "rmsnorm", "layernorm_1")),
)
CONTRACTIONS = (
    *("matmul:1024x1024x1024", "bmm", "conv_2", "attention"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("conv_1", "swiglu")),
)


def played(text: str, name: str = "nvidia-sm90") -> KernelOp:
    game = Game(with_alignment(workload(text).instantiate(), 64), machine(name))
    run_pass("heuristic", game)
    return game.program.kernel


def compiled(kernel: KernelOp) -> list[tuple[Occupancy, int, bool]]:
    """Occupancy, registers, and whether registers are spilled, of each launch on sm_90."""
    made = device_text(kernel, spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
    try:
        image = compile_cuda(made.text)
    except MissingTool as error:
        pytest.skip(str(error))
    found: list[tuple[Occupancy, int, bool]] = []
    for entry in made.kernels[0].launches:
        resources = image.kernels[entry.name]
        fits = occupancy(resources, entry.launch.threads, SM_90, entry.shared_bytes)
        found.append((fits, resources.registers, resources.spills))
    return found


@pytest.mark.parametrize("text", MEMORY_BOUND)
def test_memory_bound_kernels_spill_nothing_and_move_each_byte_once(text: str) -> None:
    kernel = played(text)
    for fits, registers, spills in compiled(kernel):
        assert not spills
        assert registers <= 128
        assert fits.blocks >= 1
    nest = nest_of(kernel)
    cost = estimate_gpu(nest, machine("nvidia-sm90"))
    assert cost is not None
    # The statistics of a batch norm need the whole input before it is normalised.
    reads = 2 if text.startswith("batchnorm") else 1
    least = sum((reads if b.intent is Intent.IN else 1) * size(b) for b in nest.buffers if b.op is None)
    gpu = machine("nvidia-sm90").gpu
    assert sum(c.memory for c in cost.launches) <= 1.2 * least / gpu.memory_bandwidth + gpu.clock * 2e-6


def test_atomic_operations_on_one_number_wait_for_each_other() -> None:
    """The model: a thousand blocks that add to one number take a thousand updates; to numbers of their own, none."""
    text = (
        "kernel k(x) -> (y)\nnumerics reassociate flush\nx f32 [1024, 32] heap\ny f32 [1024] heap\n\n"
        "1024:g y[{0}] = 0\n1024:g 32 y[INDEX] += x[{0},{1}]\n"
    )
    found: list[float] = []
    for index in ("{0}", "{0}//1024"):
        (kernel,) = parse_notation(text.replace("INDEX", index))
        cost = estimate_gpu(nest_on(kernel, machine("nvidia-sm90")), machine("nvidia-sm90"))
        assert cost is not None
        found.append(cost.launches[1].cycles)
    assert found[1] - found[0] > UPDATE * 1024 / 2


def test_few_columns_are_summed_in_parts() -> None:
    nest = nest_of(played("gemv_t"))
    cost = estimate_gpu(nest, machine("nvidia-sm90"))
    assert cost is not None
    first, _ = cost.launches
    assert first.blocks >= 64


def size(buffer: Buffer) -> int:
    return prod(buffer.shape) * byte_width(buffer.dtype)


@pytest.mark.parametrize("text", CONTRACTIONS)
def test_contractions_have_tiles_and_spill_nothing(text: str) -> None:
    kernel = played(text)
    assert any(b.memory is Memory.SHARED for b in nest_of(kernel).buffers)
    assert not any(spills for _, _, spills in compiled(kernel))


def test_a_large_tile_fits_twice() -> None:
    """128 x 128 results of a block, 16 terms in a step: two blocks on a multiprocessor."""
    found = compiled(played("matmul:4096x4096x4096"))
    assert [(registers <= 128, fits.blocks) for fits, registers, _ in found] == [(True, 2)]


@pytest.mark.parametrize(
    ("text", "lanes"),
    [
        ("matmul_bf16:1024x1024x1024", [8, 8]),
        ("matmul_bf16:128x72x68", [4, 8]),  # rows of 136 bytes and of 144; the last vectors are whole
        ("matmul_bf16:128x67x66", [2]),  # rows of 134 bytes: what has no vectors goes through registers
    ],
)
def test_tiles_of_narrow_numbers_are_copied_asynchronously(text: str, lanes: list[int]) -> None:
    kernel = played(text)
    copies = [leaf for leaf in nest_of(kernel).leaves if leaf.asynchronous]
    assert sorted(leaf.chain[-1].extent for leaf in copies) == lanes
    assert not any(spills for _, _, spills in compiled(kernel))


@pytest.mark.parametrize("text", ["softmax", "layernorm_1", "matmul_tn", "conv_2"])
def test_hip_code_spills_nothing(text: str) -> None:
    tools = hip_toolchain()
    kernel = played(text, "amd-gfx942")
    image = compile_hip(device_text(kernel, spelling=HipSpelling(), machine=machine("amd-gfx942")).text, tools=tools)
    assert image.kernels
    assert not any(resources.spills for resources in image.kernels.values())


@pytest.mark.parametrize("text", ["softmax:64x512", "matmul:64x64x64", "batchnorm:2x4x6x8", "cumsum:16x32"])
def test_greedy_maps_every_nest_to_a_grid(text: str) -> None:
    game = Game(workload(text).instantiate(), machine("nvidia-sm90"))
    run_pass("greedy", game)
    text_of_it = device_text(game.program.kernel, spelling=CudaSpelling(), machine=machine("nvidia-sm90")).text
    assert "blockIdx" in text_of_it
