"""`benchmarks.gpu.device` without PyTorch: arrays of NumPy, kernels on the stand-in, times that are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import aligned
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.kernels import Workload
from pdojo.kernels.reference import numpy_reference

Array = NDArray[Any]
CACHE_BYTES = 1 << 20


@dataclass(frozen=True)
class Timed:
    """An implementation."""

    name: str
    call: Callable[[list[Array]], Array]


def facts() -> dict[str, Any]:
    """The facts that tables need."""
    return {"multiprocessors": 4, "torch": "none", "cache_bytes": CACHE_BYTES, "copy": 1e9}


def cache_bytes() -> int:
    """Bytes of the last cache."""
    return CACHE_BYTES


def on_device(arrays: Sequence[tuple[Array, str]]) -> list[Array]:
    """Copies of the arrays."""
    return [aligned(array) for array, _ in arrays]


def ours(name: str, kernel: GpuKernel) -> Timed:
    """A kernel on arrays of the host."""

    def call(arrays: list[Array]) -> Array:
        kernel(*arrays)
        return arrays[-1]

    return Timed(name, call)


def peers(workload: Workload, *, compile_too: bool, autotune: bool) -> list[Timed]:
    """The meaning, by the names of PyTorch's ways."""

    def call(arrays: list[Array]) -> Array:
        return numpy_reference(workload)(*arrays[:-1])[0].astype(arrays[-1].dtype)

    return [Timed(name, call) for name in ("strict", *["compile"] * compile_too, *["autotune"] * autotune)]


def errors(workload: Workload, rows: Sequence[Timed], arrays: list[Array]) -> dict[str, float]:
    """The largest error of each implementation over the largest result."""
    (exact,) = numpy_reference(workload)(*arrays[:-1])
    found: dict[str, float] = {}
    for row in rows:
        arrays[-1].fill(np.nan)
        found[row.name] = float(np.abs(row.call(arrays) - exact).max() / np.abs(exact).max())
    return found


def host_seconds(row: Timed, arrays: list[Array]) -> float:
    """No time."""
    return len(row.name) * len(arrays) * 1e-6


def timed(rows: Sequence[Timed], sets: Sequence[list[Array]]) -> dict[str, float]:
    """The later an implementation comes, the longer it takes."""
    for row in rows:
        row.call(sets[-1])
    return {row.name: (1 + number) * 1e-6 for number, row in enumerate(rows)}
