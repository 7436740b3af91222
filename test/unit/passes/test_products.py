"""Programs of the CPU's pass for products with few rows, and for sums of squares in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo import build
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.kernels import workload
from pdojo.passes.cpu.audit import audit
from pdojo.passes.scheduled_kernel import make_moves


def tuned(kernel: str, name: str = "x86-64-avx512") -> Nest:
    plain = with_alignment(workload(kernel).instantiate(), 64)
    return nest_of(make_moves(plain, machine(name), "heuristic").after)


def gathers(leaf: Leaf) -> bool:
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR:
        return False
    return any(lane_stride(a.index, a.array.shape, lanes.depth) is Stride.STRIDED for a in leaf.reads)


@pytest.mark.parametrize("machine_name", ["x86-64-avx2", "x86-64-avx512"])
@pytest.mark.parametrize("shape", ["2x512x512", "3x512x512", "4x500x300", "6x512x512", "8x512x512", "1..8x512x512"])
def test_products_do_not_gather(shape: str, machine_name: str) -> None:
    """The other factor is transposed into panels, or its rows are read along the terms."""
    sums = [leaf for leaf in tuned(f"matmul_nt:{shape}", machine_name).leaves if leaf.accumulate is not None]
    assert sums
    assert not any(gathers(leaf) for leaf in sums)


def test_few_long_rows_are_multiplied_along_the_terms() -> None:
    """Each factor is read once, as it is."""
    users = [leaf for leaf in tuned("matmul_nt:2x512x512").leaves if "b" in {r.array.name for r in leaf.reads}]
    assert users
    assert all(leaf.contracted for leaf in users)


def test_blocks_have_the_rows_of_their_plan() -> None:
    """Rows at 2 KiB evict each other: 30 of them, which fill the registers, took three times as long as 8."""
    nest = tuned("matmul_nt:8x512x512")
    heights = [s.extent for s in nest.scopes if s.mapping is Mapping.UNROLL]
    assert max(heights) <= 16


SQUARES = """
kernel k(x) -> (s)
size N in 1..8192
x f32 [64, N] heap
s f32 [64, (N//2048+1)] heap
p f32 [64, N] heap

64 N p[{0},{1}] = x[{0},{1}] * x[{0},{1}]
64 4 where (N//2048-{1} >= 1)
| s[{0},{1}] = 0
| 2048 s[{0},{1}] += p[{0},{1}*2048+{2}]
64
| s[{0},N//2048] = 0
| 2047 where (N%2048-{1} >= 1) s[{0},N//2048] += p[{0},{1}+N//2048*2048]
"""


def test_parts_of_a_sum_compute_cheap_terms_themselves() -> None:
    (kernel,) = parse_notation(SQUARES.replace("kernel k(x) -> (s)", "kernel k(x) -> (s)\nnumerics reassociate"))
    nest = nest_of(make_moves(kernel, machine("x86-64-avx512"), "heuristic").after)
    # The squares would be written into memory, which two loops read.
    assert "p" not in nest.arrays


def test_sums_whose_order_is_kept_have_blocks() -> None:
    kernel = with_alignment(workload("matmul_nt:2x512x512").instantiate(), 64)
    text = print_notation(kernel)
    (exact,) = parse_notation(text.replace("\na f32", "\nnumerics contract\na f32", 1))
    nest = nest_of(make_moves(exact, machine("x86-64-avx512"), "heuristic").after)
    sums = [leaf for leaf in nest.leaves if leaf.accumulate is not None]
    assert all(leaf.parent is not None and leaf.parent.mapping is Mapping.VECTOR for leaf in sums)


def test_two_terms_of_windows_that_overlap_by_rows_are_no_innermost_loop() -> None:
    """LLVM kept the 14 elements that two iterations share in registers: 99 of 203 GFLOP/s."""
    x, w = build.input("x", "f32", (1, 64, 28, 28)), build.input("w", "f32", (32, 64, 2, 2), const=True)
    plain = with_alignment(build.kernel("k", [x, w], [build.conv(x, w)]), 64)
    nest = nest_of(make_moves(plain, machine("x86-64-zen4"), "heuristic").after)
    sums = [leaf for leaf in nest.leaves if leaf.accumulate is not None]
    assert sums
    for leaf in sums:
        inner = [s for s in leaf.chain if s.mapping is Mapping.SEQUENTIAL][-1]
        rows = [s for s in leaf.chain if s.mapping is Mapping.UNROLL and s.extent > 2]
        assert rows
        expressions = [e for read in leaf.reads for e in read.index if e.uses(inner.depth)]
        assert not any(e.uses(row.depth) for e in expressions for row in rows)


def drawn(kernel: KernelOp) -> dict[str, NDArray[Any]]:
    """Random inputs of a kernel."""
    random = np.random.default_rng(0)
    inputs = (b for b in nest_of(kernel).buffers if b.intent is Intent.IN)
    return {b.names[0]: random.normal(size=b.shape).astype(np.float32) for b in inputs}


APART = """
kernel k(x, w) -> (y)
x f32 [2, 5, 40, 48] heap
w f32 [5] heap
y f32 [2, 40, 48] heap
p f32 [2, 5, 40, 48] heap

2 5 40 48 p[{0},{1},{2},{3}] = x[{0},{1},{2},{3}] * w[{1}]
2 40 48
| y[{0},{1},{2}] = 0
| 5 y[{0},{1},{2}] += p[{0},{3},{1},{2}]
"""


@pytest.mark.parametrize("permits", [True, False])
def test_sums_take_products_of_other_nests(permits: bool) -> None:
    text = APART.replace("-> (y)", "-> (y)\nnumerics " + ("contract" if permits else "none"))
    (kernel,) = parse_notation(text)
    program = make_moves(kernel, machine("x86-64-avx512"), "heuristic").after
    nest = nest_of(program)
    sums = [leaf for leaf in nest.leaves if leaf.accumulate is not None and leaf.output.array.name.startswith("y")]
    assert {leaf.contracted for leaf in sums} == {permits}
    assert not permits or not nest.writers.get("p")
    inputs = drawn(kernel)
    assert np.allclose(interpret(program, inputs)["y"], interpret(kernel, inputs)["y"], rtol=1e-5, atol=1e-5)


def test_sums_of_long_columns_read_whole_rows() -> None:
    """Blocks of a few columns would read a line of every row, pages apart."""
    (kernel,) = parse_notation(
        "kernel k(x) -> (y)\nx f32 [364, 1594] heap\ny f32 [1594] heap\np f32 [364, 1594] heap\n\n"
        "364 1594 p[{0},{1}] = x[{0},{1}] * x[{0},{1}]\n1594\n| y[{0}] = 0\n| 364 y[{0}] += p[{1},{0}]\n"
    )
    found = audit(make_moves(kernel, machine("neoverse-v2"), "heuristic").game)
    assert "pages apart" not in {each.kind for each in found}


def test_sums_of_one_number_stay() -> None:
    (kernel,) = parse_notation(
        "kernel k(x) -> (y)\nx f32 [1] heap\ny f32 [1] heap\np f32 [] heap\n\n"
        "y[0] = 0\np[] = x[0] * x[0]\ny[0] += p[]\n"
    )
    program = make_moves(kernel, machine("x86-64-avx512"), "heuristic").after
    assert interpret(program, {"x": np.full(1, 3, np.float32)})["y"] == 9


def test_rows_of_short_sums_are_stored_whole() -> None:
    """One nest has the whole panels and the rests of the columns: each row's pages are visited once."""
    nest = tuned("matmul:2929x2x1800")
    stores = [leaf.chain[0] for leaf in nest.leaves if leaf.output.array.name == "c"]
    blocks = max(stores, key=lambda scope: scope.extent)
    assert stores.count(blocks) == 3


def test_numbers_that_divide_are_inverted_once() -> None:
    (kernel,) = parse_notation(
        "kernel k(x) -> (y)\nnumerics reciprocal\nx f32 [40, 48] heap\ny f32 [40, 48] heap\n\n"
        "40 48 y[{0},{1}] = x[{0},{1}] / 5\n"
    )
    program = make_moves(kernel, machine("x86-64-avx512"), "heuristic").after
    divisions = [leaf for leaf in nest_of(program).leaves if leaf.function == "arith.divf"]
    assert [leaf.extents for leaf in divisions] == [()]
    # On a GPU, a statement of its own would be a launch.
    device = nest_of(make_moves(kernel, machine("nvidia-sm90"), "heuristic").after)
    assert all(leaf.chain for leaf in device.leaves)
    inputs = drawn(kernel)
    assert np.allclose(interpret(program, inputs)["y"], interpret(kernel, inputs)["y"], rtol=1e-6)
