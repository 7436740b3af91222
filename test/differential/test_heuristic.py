"""The heuristic pass: what it makes of every library kernel, at sizes that divide and that do not, is right."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pdojo import build
from pdojo.backends.calling.arrays import aligned_empty, parameters_of
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.measured import ProcessorMeasurements
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.kernels import LONG, kernel_names, workload
from pdojo.kernels.reference import numpy_reference
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from sample import sampled

SHAPES = {
    "attention": ("2x37x41x16", "1x64x64x32"),
    "attention_online": ("2x1x2x24x36x16,P=36,R=12,C=12", "1x2x1x32x32x20,R=16,C=16"),
    "avgpool": ("2x3x17x19x2", "1x2x15x15x3,S=1,P=1"),
    "avgpool_ceil": ("2x3x18x19x2", "1x2x20x35x3,P=1"),
    "batchnorm": ("3x5x20x30", "8x3x64x64", "2x3x7x5"),
    "bmm": ("3x37x29x50", "2x32x16x64"),
    "bmm_broadcast_a": ("3x37x29x50", "2x32x16x64"),
    "bmm_broadcast_b": ("3x37x29x50", "2x32x16x64"),
    "causal_softmax": ("3x37", "1x64", "2x130"),
    "conv": ("2x7x5x20x37x3", "1x20x3x40x40x5", "2x9x4x15x15x3,S=2,P=1", "1x4x3x19x23x3,DIL=2"),
    "conv_transpose": ("2x7x5x10x19x3", "1x20x3x11x9x4,OP=0", "1x4x3x9x20x3,S=1,P=0,OP=0"),
    "conv_winograd": ("2x9x7x11x6", "3x5x4x7x7,P=0,I=2,R=2"),
    "depthwise_conv": ("2x5x17x19x3", "1x3x20x36x3,S=2"),
    "grouped_conv": ("2x14x6x20x37x3,G=2", "1x12x12x15x15x3,G=3,S=2"),
    "groupnorm": ("3x10x20x30,G=5", "2x6x7x5,G=3", "1x8x16x16,G=1"),
    "instancenorm": ("3x5x20x30", "2x3x7x5"),
    "matmul": ("37x29x75", "64x48x64", "1x100x33", "100x1x50", "130x300x1", "13x5x7"),
    "matmul_bf16": ("20x30x40",),
    "matmul_i8": ("20x30x40",),
    "matmul_nt": ("37x29x75", "64x48x64", "1x100x33", "100x1x50"),
    "matmul_tn": ("37x29x75", "64x48x64", "1x100x33", "130x300x1"),
    "matmul_tt": ("37x29x75", "64x48x64", "13x5x7"),
    "dequant_matmul": ("33x20x50",),
    "maxpool": ("2x3x17x19x2,P=0", "1x2x20x20x3,S=2,P=1"),
    "maxpool_ceil": ("2x3x18x19x2", "1x2x20x35x3,P=1"),
    "relu_ffn": ("2x3x20x30", "1x5x16x16"),
    "rotary": ("2x5x3x40",),
    "rotary_interleaved": ("2x5x3x40", "1x3x2x74"),
    "sumpool": ("2x3x17x19x2", "1x2x15x15x3,S=1,P=1"),
    "swiglu": ("1x37x50x30", "2x16x32x64"),
}
"""Kernels of two sizes, R and C, are tried at others."""
ROWS = ("33x300", "1x5", "64x1000", "7x16", "300x1")
"""Of which every kernel is tried at the first two, and at the others by turns: long rows, or short and single ones."""
TOLERANCE = {"f32": 3e-4, "f64": 1e-11, "bf16": 4e-2}


@cache
def tuned(name: str, shape: str, dtype: str | None = None, on: str = "host") -> ScheduledKernel:
    """What the pass makes, for all tests that look at the same program."""
    return tuned_for(name, shape, machine(on), dtype)


def tuned_for(name: str, shape: str, on: Machine, dtype: str | None = None) -> ScheduledKernel:
    kernel = with_alignment(workload(f"{name}:{shape}", dtype).instantiate(), 64)
    found = make_moves(kernel, on, "heuristic")
    validate(found.game.program)
    return found


def aligned_copy(array: np.ndarray) -> np.ndarray:
    copied = aligned_empty(array.shape, array.dtype, 64)
    copied[...] = array
    return copied


def shapes_of(name: str) -> tuple[str, ...]:
    """What a kernel is tried at."""
    if name in SHAPES:
        return SHAPES[name]
    by_rows = [kernel for kernel in kernel_names() if kernel not in SHAPES]
    return (*ROWS[:2], *(ROWS[2:3] if by_rows.index(name) % 2 else ROWS[3:]))


def check(name: str, shape: str, dtype: str | None = None) -> None:
    wanted = workload(f"{name}:{shape}", dtype)
    nest = nest_of(wanted.instantiate())
    inputs = random_inputs(parameters_of(nest), 1)
    with warnings.catch_warnings():
        # Logarithms of what is negative.
        warnings.simplefilter("ignore", RuntimeWarning)
        (expected,) = numpy_reference(wanted)(*inputs.values())
    after = tuned(name, shape, dtype).after
    (output,) = [p for p in parameters_of(nest) if p.name not in inputs]
    arrays = [aligned_copy(array) for array in inputs.values()]
    got = from_interface(np.asarray(compile_kernel(after, threads=2)(*arrays)), output.dtype)
    tolerance = TOLERANCE[dtype or "f32"]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=4 * tolerance, err_msg=f"{name} {shape} {dtype}")


@pytest.mark.parametrize("name", [*sampled(), *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(LONG))])
def test_every_kernel_at_odd_sizes(name: str) -> None:
    for shape in shapes_of(name):
        check(name, shape)


@pytest.mark.parametrize("dtype", ["f64", "bf16"])
@pytest.mark.parametrize(
    "name",
    [
        *("softmax", "matmul", "gelu", "reducemean"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("layernorm", "conv", "batchnorm")),
    ],
)
def test_other_element_types(name: str, dtype: str) -> None:
    check(name, SHAPES.get(name, ROWS)[0], dtype)


@pytest.mark.parametrize(
    ("name", "on"),
    [
        *product(["softmax", "matmul", "conv"], ["x86-64-avx2", "aarch64-neon", "rv64gcv", "toy"]),
        *(
            pytest.param(name, on, marks=pytest.mark.slow)
            for name, on in (
                *product(["batchnorm"], ["x86-64-avx2", "aarch64-neon", "rv64gcv", "toy"]),
                ("attention", "aarch64-neon"),
            )
        ),
    ],
)
def test_other_machines(name: str, on: str) -> None:
    found = tuned(name, SHAPES.get(name, ROWS)[0], on=on)
    assert found.game.trace.steps
    assert _mapped(found.game.program.nest, Mapping.VECTOR)


def _mapped(nest: Nest, mapping: Mapping) -> bool:
    return any(scope.mapping is mapping for scope in nest.scopes)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("matmul", "100x64x75"),
        ("matmul", "4096x64x64"),
        ("matmul", "64x4096x64"),
        ("conv", "2x20x8x30x50x3"),
        ("conv", "1x64x3x32x32x7,S=2,P=3"),
        *((name, SHAPES[name][0]) for name in ("bmm", "swiglu")),
        pytest.param("attention", SHAPES["attention"][0], marks=pytest.mark.slow),
    ],
)
def test_sums_of_products_stay_in_registers(name: str, shape: str) -> None:
    """The accumulator of every contraction is a register block, at sizes that do not divide."""
    nest = tuned(name, shape).game.program.nest
    contracted = [leaf for leaf in nest.leaves if leaf.contracted]
    assert contracted
    assert all(leaf.output.array.buffer.memory is Memory.REGISTER for leaf in contracted)


def test_a_reason_for_every_move() -> None:
    found = tuned("layernorm", ROWS[0])
    assert len(found.notes) == len(found.game.trace.steps)
    assert all(note.why for note in found.notes)


def test_replaying_the_trace_gives_the_same_program() -> None:
    found = tuned("conv", "2x7x5x20x37x3")
    kernel = with_alignment(workload("conv:2x7x5x20x37x3").instantiate(), 64)
    again = make_moves(kernel, host(), None, found.game.trace)
    assert again.game.program.text == found.game.program.text


def test_few_channels_are_shared_by_all_threads() -> None:
    nest = tuned_for("batchnorm", "8x3x128x128", replace(host(), threads=2)).game.program.nest
    assert [scope.extent for scope in nest.scopes if scope.mapping is Mapping.PARALLEL] == [8, 8]


def test_windows_with_a_stride_are_read_as_whole_vectors() -> None:
    nest = tuned("conv", "1x64x3x32x64x7,S=2,P=3").game.program.nest
    products = [leaf for leaf in nest.leaves if leaf.contracted]
    assert products
    for leaf in products:
        lanes = leaf.chain[-1]
        assert lanes.mapping is Mapping.VECTOR
        strides = {lane_stride(a.index, a.array.shape, lanes.depth) for a in leaf.accesses}
        assert strides <= {Stride.CONTIGUOUS, Stride.BROADCAST}
    check("conv", "1x64x3x32x64x7,S=2,P=3")
    check("maxpool", "2x3x20x70,K=3,S=2,P=1")


def test_elements_in_turns_are_written_in_vectors() -> None:
    nest = tuned_for("rotary_interleaved", "2x50x4x128", machine("x86-64-avx2")).game.program.nest
    assert len(nest.writers["y"]) == 2
    assert all(leaf.chain[-1].mapping is Mapping.VECTOR for leaf in nest.leaves)
    check("rotary_interleaved", "2x50x4x128")


def test_sums_of_the_pass_are_more_exact_than_in_order() -> None:
    """Deviations from a mean that is large beside them."""
    x = (np.random.default_rng(0).standard_normal((64, 4096)) + 100).astype(np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    arrays = [aligned_copy(a) for a in (x, np.ones(4096, np.float32), np.zeros(4096, np.float32))]
    found = tuned("layernorm", "64x4096")
    plain, vectors = (
        np.abs(np.asarray(compile_kernel(kernel, threads=2)(*arrays)) - exact).max()
        for kernel in (found.before, found.after)
    )
    assert vectors < plain / 4


def test_elementwise_statements_behind_a_contraction_read_its_registers() -> None:
    """Bias, residual and ReLU of a convolution are computed per block: no array keeps its sums."""
    text = (Path(__file__).parent / "user_kernels" / "residual_block.pdojo").read_text(encoding="utf-8")
    (kernel,) = parse_notation(text)
    nest = make_moves(with_alignment(kernel, 64), machine("x86-64-avx2"), "heuristic").game.program.nest
    assert {buffer.memory for buffer in nest.buffers if buffer.op is not None} == {Memory.REGISTER}
    stores = nest.writers["y"]
    assert stores
    assert all(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in stores)


def test_the_statistics_of_a_single_row_are_shared_by_all_threads() -> None:
    on = replace(machine("x86-64-avx2"), threads=2)
    nest = tuned_for("softmax", "1x400000", on).game.program.nest
    assert [scope.extent for scope in nest.scopes if scope.mapping is Mapping.PARALLEL] == [2, 2, 2]


def test_values_recomputed_for_a_result_stay_with_it() -> None:
    """The second pass over a long row of log_softmax reads `x` again, not differences that the first one stored."""
    nest = tuned_for("log_softmax", "2x300000", machine("x86-64-avx2")).game.program.nest
    assert all(buffer.memory is not Memory.HEAP for buffer in nest.buffers if buffer.op is not None)


def convolution() -> Nest:
    """The pass's program of a convolution of 13 x 13 places with bias and ReLU, as `pdojo.build` makes it."""
    x, w, b = (build.input(name, "f32", shape) for name, shape in
               (("x", (1, 48, 13, 13)), ("w", (192, 48, 3, 3)), ("b", (192,))))  # fmt: skip
    made = build.kernel("conv", [x, w, b], {"y": build.relu(build.conv(x, w, b, padding=1))})
    on = replace(machine("x86-64-avx2"), threads=2)
    return make_moves(with_alignment(made, 64), on, "heuristic").game.program.nest


def test_a_dimension_of_one_group_does_not_keep_the_bias_out_of_the_blocks() -> None:
    nest = convolution()
    kept = [
        buffer.names[0] for buffer in nest.buffers if buffer.op is not None and buffer.memory is not Memory.REGISTER
    ]
    assert kept == ["u"]


def test_threads_start_once_rather_than_in_every_row() -> None:
    """13 rows are shared less evenly than the blocks of a row, but threads then start once."""
    parallel = [scope for scope in convolution().scopes if scope.mapping is Mapping.PARALLEL]
    assert parallel
    assert all(scope.depth == 0 for scope in parallel)


@pytest.mark.parametrize(("shape", "is_shared"), [("64x256", False), ("4096x256", True)])
def test_small_kernels_start_no_threads(shape: str, is_shared: bool) -> None:
    nest = tuned_for("relu", shape, replace(machine("x86-64-avx2"), threads=2)).game.program.nest
    assert any(scope.mapping is Mapping.PARALLEL for scope in nest.scopes) is is_shared


def test_threads_that_start_slowly_need_more_work() -> None:
    on = replace(machine("x86-64-avx2"), threads=2)
    for start, is_shared in ((1e-6, True), (1e-3, False)):
        measured = ProcessorMeasurements(rates={"fma_32": 32e9}, thread_start=start)
        nest = tuned_for("relu", "512x256", replace(on, measured=measured)).game.program.nest
        assert any(scope.mapping is Mapping.PARALLEL for scope in nest.scopes) is is_shared
