"""Calls whose arrays fit as they are take a short way; all others the one that checks and explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pdojo
from pdojo.backends.calling.arguments import CallArguments
from pdojo.backends.calling.arrays import aligned_empty
from pdojo.backends.llvm.executable import Executable
from pdojo.errors import UsageError

TEXT = """kernel k(x, y) -> (y, z)
x f32 [4, 6] heap
y f32 [4] heap
z f32 [4, 6] heap align 64

4 y[{0}] += 1
4 6 z[{0},{1}] = x[{0},{1}] * 2
"""
Array = NDArray[Any]


@pytest.fixture(scope="module")
def kernel() -> Executable:
    made = pdojo.compile(TEXT)
    assert isinstance(made, Executable)
    return made


def arrays() -> tuple[Array, Array, Array]:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    return x, np.zeros(4, np.float32), aligned_empty((4, 6), np.dtype(np.float32))


@pytest.mark.parametrize("count", [2, 3])
def test_arrays_that_fit_are_not_checked_again(count: int, kernel: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(CallArguments, "of")
    x, y, z = arrays()
    x.flags.writeable = False
    found = kernel(*(x, y, z)[:count])
    assert (found == x * 2).all()
    assert (found is z) is (count == 3)
    assert (y == 1).all()


MISFITS: dict[str, Callable[[Array, Array, Array], tuple[Any, ...]]] = {
    "other type": lambda x, y, z: (x.astype(np.float64), y, z),
    "other shape": lambda x, y, z: (x.reshape(6, 4), y, z),
    "transposed": lambda x, y, z: (x.reshape(6, 4).T, y, z),
    "read-only output": lambda x, y, z: (x, np.broadcast_to(np.float32(0), (4,)), z),
    "unaligned": lambda x, y, z: (x, y, aligned_empty((25,), z.dtype)[1:].reshape(4, 6)),
    "too few": lambda x, _y, _z: (x,),
    "too many": lambda x, y, z: (x, y, z, z),
    "an output that is an input": lambda x, y, z: (z, y, z),
    "overlapping": lambda x, y, z: (x, z.reshape(-1)[-4:], z),
    "no array": lambda x, y, z: ("x", y, z),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_arrays_that_do_not_fit_are_explained(misfit: str, kernel: Executable) -> None:
    given = arrays()
    with pytest.raises(UsageError):
        kernel(*MISFITS[misfit](*given))
    assert (given[1] == 0).all()


def test_subclasses_take_the_long_way(kernel: Executable) -> None:
    x, y, z = arrays()
    assert (kernel(np.ma.masked_array(x), y, z) == x * 2).all()
