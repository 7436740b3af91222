"""Checks of indices in machine code: they refuse what NumPy's check refuses, with the same words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import pdojo
from pdojo.backends.calling.arrays import INTERFACE
from pdojo.errors import IndexOutOfRange

TAKEN = """
kernel taken(x, i) -> (y)
size M in 2..300
size N in 1..64
x f32 [M, 8] heap
i {dtype} [N, 3] heap in {low}..M-1{outside}
y f32 [N, 3, 8] heap

N 3 8 y[{{0}},{{1}},{{2}}] = x[i[{{0}},{{1}}],{{2}}]
"""


@pytest.mark.parametrize("outside", ["", " wrap", " clamp"])
@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_one_index_anywhere(dtype: str, low: int, outside: str) -> None:
    kernel = pdojo.compile(TAKEN.format(dtype=dtype, low=low, outside=outside))
    rng = np.random.default_rng()
    limits = np.iinfo(INTERFACE[dtype])
    for _ in range(40):
        m, n = int(rng.integers(2, 301)), int(rng.integers(1, 65))
        x, y = np.zeros((m, 8), np.float32), np.zeros((n, 3, 8), np.float32)
        i = rng.integers(low, min(m - 1, limits.max), (n, 3), limits.dtype, endpoint=True)
        i[rng.integers(n), rng.integers(3)] = rng.integers(
            max(-m - 2, limits.min), min(m + 1, limits.max), endpoint=True
        )
        numbers = [x.ctypes.data, i.ctypes.data, y.ctypes.data, m, n]
        assert _message(partial(kernel.run_with_indices, numbers)) == _message(partial(kernel, x, i))


def _message(call: Callable[[], object]) -> str:
    try:
        call()
    except IndexOutOfRange as error:
        return str(error)
    return ""
