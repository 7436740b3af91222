"""Parallel scopes: whatever the number of threads, every iteration runs once."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.notation import parse_notation

COUNT = """
kernel count(x) -> (y)
x i32 [{rows}, {columns}] heap
y i32 [{rows}, {columns}] heap

{rows} {columns} y[{{0}},{{1}}] = 0
{rows}:p {columns} y[{{0}},{{1}}] += x[{{0}},{{1}}]
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1000])
@pytest.mark.parametrize("columns", [4, 1 << 15])
def test_every_iteration_runs_once(rows: int, columns: int, threads: int) -> None:
    """Also with common pieces, which scopes of much work have, and with more threads than iterations."""
    (kernel,) = parse_notation(COUNT.format(rows=rows, columns=columns))
    executable = compile_kernel(kernel, threads=threads)
    assert ('call i8 @"GOMP_loop_dynamic_start"' in executable.llvm_ir) == (rows >= 32 and columns > 4)
    x = np.random.default_rng(1).integers(-9, 9, (rows, columns), np.int32)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(executable(x)), x)
