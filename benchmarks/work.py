"""The least work of a workload, and the least time for it on a machine: the roofline.

least time = max(operations / peak, time to move the least bytes)

The least bytes are every input once and every output once, except for inputs masked by their position. A written byte
is paired with a read byte at the bandwidth of copies; further reads have the bandwidth of reading, or of copies if that
is higher. Both are measured at the kernel's footprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.attributes import Intent
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.kernels import Workload


@dataclass(frozen=True)
class Work:
    """The least work of a call."""

    operations: int
    """Additions and multiplications of the definition; comparisons, divisions and functions count one each."""
    read_bytes: int
    written_bytes: int

    @property
    def bytes(self) -> int:
        """The footprint in bytes."""
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True)
class Roofline:
    """The least time of a kernel on a machine, in seconds."""

    seconds: float
    bound: str
    """`memory` or `arithmetic`."""


def roofline(work: Work, peak: float | None, copy: float, read: float) -> Roofline:
    """The least time, from operations per second (None if unknown) and bytes per second."""
    paired = 2 * min(work.read_bytes, work.written_bytes)
    only_read = max(0, work.read_bytes - work.written_bytes)
    only_written = max(0, work.written_bytes - work.read_bytes)
    memory = (paired + only_written) / copy + only_read / max(copy, read)
    arithmetic = 0.0 if peak is None else work.operations / peak
    return Roofline(arithmetic, "arithmetic") if arithmetic > memory else Roofline(memory, "memory")


def work_of(workload: Workload) -> Work:
    """The least work of a workload."""
    nest = nest_of(workload.instantiate())
    parameters = parameters_of(nest)
    sizes = {p.name: prod(p.shape) * INTERFACE[p.dtype].itemsize for p in parameters}
    read = sum(sizes[p.name] for p in parameters if p.intent is not Intent.OUT)
    if workload.kernel == "causal_softmax":
        # No row needs elements after its own position.
        read = read * (workload.sizes["L"] + 1) // (2 * workload.sizes["L"])
    written = sum(sizes[p.name] for p in parameters if p.written)
    return Work(_operations(workload, nest), read, written)


def peak_type(workload: Workload) -> str | None:
    """The element type of the kernel's arithmetic; None if no measured peak bounds it.

    16-bit kernels compute in f32. Instructions that sum up products of narrow types exceed every measured peak.
    """
    match workload.element_type:
        case "f64":
            return "f64"
        case None:
            return None
        case _:
            return "f32"


def _taps(sizes: Mapping[str, int], extent: str) -> int:
    """Number of pairs of an output and a tap outside of the padding, along one axis."""
    k, s, p, d = sizes["K"], sizes["S"], sizes["P"], sizes.get("DIL", 1)
    length = sizes[extent]
    outputs = (length + 2 * p - d * (k - 1) - 1) // s + 1
    return sum(0 <= o * s + i * d - p < length for o in range(outputs) for i in range(k))


def _taps_up(sizes: Mapping[str, int], extent: str) -> int:
    """The same in ceil mode. Additional windows that start after the image would have no tap in it."""
    k, s, p = sizes["K"], sizes["S"], sizes["P"]
    length = sizes[extent]
    outputs = -(-(length + 2 * p - k) // s) + 1
    return sum(0 <= o * s + i - p < length for o in range(outputs) for i in range(k))


def _taps_back(sizes: Mapping[str, int], extent: str) -> int:
    """Number of pairs of an input and a tap that contribute to an output, along one axis."""
    k, s, p = sizes["K"], sizes["S"], sizes["P"]
    length = sizes[extent]
    outputs = (length - 1) * s + k + sizes["OP"] - 2 * p
    return sum(0 <= h * s + i - p < outputs for h in range(length) for i in range(k))


def _window(z: Mapping[str, int], taps: Callable[[Mapping[str, int], str], int] = _taps) -> int:
    return taps(z, "H") * taps(z, "W")


def _tile_products(z: Mapping[str, int]) -> int:
    """Products of one channel and one image, 16 for each tile of 2 by 2 results."""
    rows, columns = (-(-(z[extent] + 2 * z["P"] - 2) // 2) for extent in ("H", "W"))
    return rows * columns * 16


def _pairs(z: Mapping[str, int]) -> int:
    """Pairs of a query and a key that it attends to."""
    return sum(min(z["S"], query + z["P"] + 1) for query in range(z["L"]))


_PRODUCTS: dict[str, Callable[[Mapping[str, int]], int]] = {
    "matmul": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "matmul_nt": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "matmul_tn": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "matmul_tt": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "matmul_bf16": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "matmul_i8": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "dequant_matmul": lambda z: 2 * z["M"] * z["N"] * z["K"],
    "bmm": lambda z: 2 * z["B"] * z["M"] * z["N"] * z["K"],
    "bmm_broadcast_a": lambda z: 2 * z["B"] * z["M"] * z["N"] * z["K"],
    "bmm_broadcast_b": lambda z: 2 * z["B"] * z["M"] * z["N"] * z["K"],
    "swiglu": lambda z: 4 * z["B"] * z["M"] * z["N"] * z["K"],
    "attention_online": lambda z: 4 * z["N"] * z["J"] * z["G"] * z["D"] * _pairs(z),
    "attention": lambda z: 4 * z["B"] * z["L"] * z["S"] * z["D"],
    "conv": lambda z: 2 * z["N"] * z["O"] * z["C"] * _window(z),
    "conv_winograd": lambda z: 2 * z["N"] * z["O"] * z["C"] * _tile_products(z),
    "grouped_conv": lambda z: 2 * z["N"] * z["O"] * z["C"] // z["G"] * _window(z),
    "conv_transpose": lambda z: 2 * z["N"] * z["O"] * z["C"] * _window(z, _taps_back),
    "depthwise_conv": lambda z: 2 * z["N"] * z["C"] * _window(z),
    "maxpool": lambda z: z["N"] * z["C"] * _window(z),
    "maxpool_ceil": lambda z: z["N"] * z["C"] * _window(z, _taps_up),
    "avgpool": lambda z: z["N"] * z["C"] * _window(z),
    "avgpool_ceil": lambda z: z["N"] * z["C"] * _window(z, _taps_up),
    "sumpool": lambda z: z["N"] * z["C"] * _window(z),
    "gemv": lambda z: 2 * z["R"] * z["C"],
    "gemv_t": lambda z: 2 * z["R"] * z["C"],
    "dot": lambda z: 2 * z["R"] * z["C"],
    "axpy": lambda z: 2 * z["R"] * z["C"],
    "causal_softmax": lambda z: 5 * z["B"] * z["L"] * (z["L"] + 1) // 2,
}
"""Operations by sizes: two for each summed product (without transforms), five for each element of a causal softmax."""


def _operations(workload: Workload, nest: Nest) -> int:
    if workload.kernel in _PRODUCTS:
        return _PRODUCTS[workload.kernel](workload.sizes)
    # The kernel's text is its definition.
    return sum(
        prod(leaf.extents) * ((leaf.function is not None) + (leaf.accumulate is not None)) for leaf in nest.leaves
    )
