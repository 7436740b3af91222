"""What the heuristic pass leaves open: every answer to every question gives a right program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.kernels import workload
from pdojo.kernels.reference import numpy_reference
from pdojo.passes.common.loops import is_copy
from pdojo.passes.cpu import contraction, dots
from pdojo.passes.scheduled_kernel import make_moves

SMALL_CACHES = replace(host(), cache_bytes=(1 << 10, 4 << 10), threads=2)
"""This processor with caches that small arrays exceed, so that tests of moments meet its questions."""
QUESTIONS = {
    "relu:64x512": {"address streams", "stores", "prefetch"},
    "softmax:64x512": {"prefetch", "prefetch in"},
    "reducemean:64x517": {"rows at a time", "prefetch"},
    "reducemax:64x512": {"rows at a time", "prefetch"},
    "matmul:60x300x333": {"block of c", "rows of blocks"},
    "swiglu:1x60x100x270": {"block of p", "block of q"},
    "conv:1x20x3x30x41x5": {"block of y"},
}


@pytest.fixture(autouse=True)
def small_contractions_are_worth_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (contraction, dots):
        monkeypatch.setattr(module, "WORTH_CHOOSING", 1)


def variants(kernel: KernelOp) -> Iterator[tuple[dict[str, str], KernelOp]]:
    """The program of the pass's preferences, and the programs with one other answer."""
    first = make_moves(kernel, SMALL_CACHES, "heuristic")
    yield {}, first.after
    for choice in first.choices:
        for answer in choice.others:
            decisions = {choice.question: answer}
            yield decisions, make_moves(kernel, SMALL_CACHES, "heuristic", None, decisions).after


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_answer_gives_a_right_program(name: str) -> None:
    wanted = workload(name)
    kernel = with_alignment(wanted.instantiate(), 64)
    for decisions, program in variants(kernel):
        executable = compile_kernel(program, threads=2)
        inputs = random_inputs(executable.parameters, 3)
        (expected,) = numpy_reference(wanted)(*inputs.values())
        arrays = ArraySet(executable.parameters, inputs)
        executable(*arrays.arrays)
        assert arrays.damage() is None, decisions
        np.testing.assert_allclose(arrays.arrays[-1], expected, 3e-4, 1e-3, err_msg=str(decisions))


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name: str) -> None:
    """They depend on the processor; 32 registers of 64 bytes leave all of these open."""
    kernel = with_alignment(workload(name).instantiate(), 64)
    on = replace(machine("x86-64-avx512"), cache_bytes=SMALL_CACHES.cache_bytes, threads=2)
    assert {choice.question for choice in make_moves(kernel, on, "heuristic").choices} >= QUESTIONS[name]


SUM_OF_SQUARES = """kernel sum_of_squares(x, y) -> (s)
numerics reassociate contract
x f32 [1310, 509] heap
y f32 [1310, 509] heap
s f32 [] heap
d f32 [1310, 509] heap

1310 509 d[{0},{1}] = x[{0},{1}] - y[{0},{1}]
1310 509 d[{0},{1}] = d[{0},{1}] * d[{0},{1}]
s[] = 0
1310 509 s[] += d[{0},{1}]
"""
TALL = "matmul:13x8209x11"
THREADED = (
    "sigmoid:37x1031",
    "silu:131x509",
    "gelu:131x509",
    "colsum:40001x61",
    "colmax:50001x37",
    "colmean:5231x301",
    TALL,
)


@pytest.mark.parametrize("name", [*THREADED, "sum of squares"])
def test_whatever_the_sizes_threads_share_the_work(name: str) -> None:
    """Elements that fill no group of vectors, sums into few results, and sums over rows."""
    kernel = parse_notation(SUM_OF_SQUARES)[0] if name == "sum of squares" else workload(name).instantiate()
    on = replace(machine("x86-64-avx512"), threads=2)
    nest = nest_of(make_moves(with_alignment(kernel, 64), on, "heuristic").after)
    assert shared_instances(nest) > 0.9


def test_masks_of_vector_loops_stay_in_registers() -> None:
    """A mask has as many lanes as the numbers beside it, though its own type would allow more."""
    kernel = with_alignment(workload("cross_entropy:64x509").instantiate(), 64)
    nest = nest_of(make_moves(kernel, machine("x86-64-avx2"), "heuristic").after)
    masks = [array for array in nest.arrays.values() if array.dtype == "i1"]
    assert masks
    assert {array.buffer.memory for array in masks} == {Memory.REGISTER}


def shared_instances(nest: Nest) -> float:
    """The fraction of statement instances that run in parallel scopes."""
    counts = {leaf: prod(leaf.extents) for leaf in nest.leaves}
    shared = sum(n for leaf, n in counts.items() if any(s.mapping is Mapping.PARALLEL for s in leaf.chain))
    return shared / sum(counts.values())


def test_the_sum_of_squares_stores_no_differences() -> None:
    on = replace(machine("x86-64-avx512"), threads=2)
    kernel = with_alignment(parse_notation(SUM_OF_SQUARES)[0], 64)
    program = make_moves(kernel, on, "heuristic").after
    executable = compile_kernel(make_moves(kernel, replace(host(), threads=2), "heuristic").after, threads=2)
    inputs = random_inputs(executable.parameters, 5)
    arrays = ArraySet(executable.parameters, inputs)
    executable(*arrays.arrays)
    x, y = (value.astype(np.float64) for value in inputs.values())
    np.testing.assert_allclose(arrays.arrays[-1], np.sum((x - y) ** 2), 1e-5)
    large = [b for b in nest_of(program).buffers if b.op is not None and not any(b.reuse) and prod(b.shape) > 10_000]
    assert not large


def test_short_sums_store_whole_rows() -> None:
    on = replace(machine("x86-64-avx512"), threads=2)
    kernel = with_alignment(workload("matmul:603x12x701").instantiate(), 64)
    nest = nest_of(make_moves(kernel, on, "heuristic").after)
    stores = [w for w in nest.writers["c"] if len(w.chain) > 3]
    assert any(w.output.index[0].uses(0) and w.output.index[1].uses(1) for w in stores), "rows of blocks are outermost"


def test_swiglu_packs_its_rows_once() -> None:
    on = replace(machine("x86-64-avx512"), threads=2)
    kernel = with_alignment(workload("swiglu:1x256x4096x448").instantiate(), 64)
    nest = nest_of(make_moves(kernel, on, "heuristic").after)
    copies = [leaf for leaf in nest.leaves if is_copy(leaf) and leaf.reads[0].array.name == "x"]
    assert len(copies) == 1
