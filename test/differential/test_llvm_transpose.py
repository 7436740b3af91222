"""Copies of squares with rows and columns exchanged, which the LLVM backend transposes in registers."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.backends.measure.guarded import SIDES, GuardedArray, GuardPlacement, Side
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.rounding import INTERFACE

COPY = """
kernel square(x) -> (y)
x {dtype} [3, {size}, 5, {size}] heap
y {dtype} [3, {size}, {size}, 2] heap
{declared}
3
| {size}:u {size}:v t[{{1}},{{2}}] = x[{{0}},{{2}},4,{{1}}]
| {size} {size} y[{{0}},{{1}},{{2}},1] = t[{{1}},{{2}}]
3 {size} {size} y[{{0}},{{1}},{{2}},0] = x[{{0}},{{1}},3,{{2}}]
"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i16", "bf16", "f16", "i32", "i64"])
@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("memory", ["stack", "heap"])
def test_squares_of_every_size(dtype: str, size: int, memory: str) -> None:
    """Whatever the width of the processor's vectors; rows of the source are far from each other, and not aligned."""
    text = COPY.format(dtype=dtype, size=size, declared=f"t {dtype} [{size}, {size}] {memory}\n")
    (kernel,) = parse_notation(text)
    executable = compile_kernel(kernel)
    assert "shufflevector" in executable.llvm_ir
    inputs = random_inputs(executable.parameters, 1)
    arrays = ArraySet(executable.parameters, inputs)
    executable(*arrays.arrays)
    assert arrays.damage() is None
    (x,), y = inputs.values(), arrays.arrays[-1]
    np.testing.assert_array_equal(y[..., 1], np.swapaxes(x[:, :, 4, :], 1, 2))
    np.testing.assert_array_equal(y[..., 0], x[:, :, 3, :])


@pytest.mark.parametrize(
    "statement",
    [
        "8:u 8:v y[{0},{1}] = x[{0},{1}]",  # rows as they are
        "8:u 8:v y[{0},{1}] = x[{1},{0}*2%8]",  # no rows of the source
        "8:u 8:v y[{1},{0}] = x[{1},{0}]",  # no rows of the copy
        "8:u 8:v where ({1} < 5) y[{0},{1}] = x[{1},{0}]",
        "8:u where ({0} < 5) 8:v y[{0},{1}] = x[{1},{0}]",
        "8:u 8:v y[{0},{1}] = -x[{1},{0}]",
        "8:u 8:v y[{0},{1}] += x[{1},{0}]",
        "4:u 8:v y[{0},{1}] = x[{1},{0}]",
        "8:u 8:v y[{1},{0}] = x[{0},{1}]",
        "8:u 8:v y[{0},{1}]!nontemporal = x[{1},{0}]",  # one, past the caches
        "1\n| 8:u 8:v z[{1},{2}] = x[{2},{1}]\n| 8 8 y[{1},{2}] = z[{1},{2}]",  # rows of a swizzled array
        "1\n| 8:u 8:v r[{1},{2}] = x[{1},{2}]\n| 8:u 8:v y[{1},{2}] = r[{1},{2}]",
    ],
)
def test_what_is_no_such_square(statement: str) -> None:
    """Statements that are almost copies of squares give the same results as in loops."""
    arrays = "x f32 [8, 8] heap align 64\ny f32 [8, 8] heap align 64\nr f32 [8, 8] register\nz f32 [8, 16^0*8] stack\n"
    text = f"kernel k(x) -> (y)\n{arrays}\n8 8 y[{{0}},{{1}}] = 0\n{statement}\n"
    in_loops = text.replace(":u", "").replace(":v", "").replace("register", "stack")
    (kernel,), (plain,) = parse_notation(text), parse_notation(in_loops)
    np.testing.assert_array_equal(_result(kernel), _result(plain))


def _result(kernel: KernelOp) -> np.ndarray:
    executable = compile_kernel(kernel)
    arrays = ArraySet(executable.parameters, random_inputs(executable.parameters, 2))
    executable(*arrays.arrays)
    assert arrays.damage() is None
    return arrays.arrays[-1]


MASKED = """
kernel square(x) -> (y)
size N in 1..{size}
x {dtype} [N, {size}] heap
y {dtype} [{size}, {size}] heap
t {dtype} [{size}, {size}] {memory}

{size} {size} y[{{0}},{{1}}] = 3
{body}
"""
DIRECT = "{size}:u {size}:v where (N-{{1}} >= 1) y[{{0}},{{1}}] = x[{{1}},{{0}}]"
COPIED = (
    "{size}:u {size}:v where (N-{{1}} >= 1) t[{{0}},{{1}}] = x[{{1}},{{0}}]\n"
    "{size} {size} where (N-{{1}} >= 1) y[{{0}},{{1}}] = t[{{0}},{{1}}]"
)
KEPT = (
    "{size} {size} t[{{0}},{{1}}] = 3\n"
    "{size}:u {size}:v where (N-{{1}} >= 1) t[{{0}},{{1}}] = x[{{1}},{{0}}]\n"
    "{size} {size} y[{{0}},{{1}}] = t[{{0}},{{1}}]"
)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", ["f32", "i64", "i8"])
@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize(("body", "memory"), [(DIRECT, "heap"), (COPIED, "stack"), (KEPT, "stack"), (KEPT, "heap")])
def test_squares_with_rows_left_out(body: str, memory: str, size: int, dtype: str, side: Side) -> None:
    """Rows that are not there are not read; what the mask leaves out of the copy is kept where something reads it."""
    text = MASKED.format(size=size, dtype=dtype, memory=memory, body=body.format(size=size))
    (kernel,) = parse_notation(text)
    executable, element = compile_kernel(kernel), INTERFACE[dtype]
    if "avx512vl" in host().features:
        assert "shufflevector" in executable.llvm_ir
    random, placement = np.random.default_rng(size), GuardPlacement(side, element.itemsize)
    for rows in sorted({1, 2, size - 1, size}):
        x, y = (GuardedArray(shape, element, placement) for shape in ((rows, size), (size, size)))
        x.array[...] = random.integers(-99, 99, (rows, size))
        executable(x.array, y.array)
        np.testing.assert_array_equal(y.array[:, :rows], x.array.T)
        assert (y.array[:, rows:] == 3).all()


def test_squares_whose_masks_are_known() -> None:
    text = (
        "kernel k(x) -> (y)\nx f32 [5, 8] heap\ny f32 [8, 5] heap\n\n8:u 8:v where ({1} < 5) y[{0},{1}] = x[{1},{0}]\n"
    )
    (kernel,) = parse_notation(text)
    executable, placement = compile_kernel(kernel), GuardPlacement("behind", 4)
    x, y = (GuardedArray(shape, np.dtype(np.float32), placement) for shape in ((5, 8), (8, 5)))
    x.array[...] = np.random.default_rng(0).random((5, 8))
    executable(x.array, y.array)
    np.testing.assert_array_equal(y.array, x.array.T)
