"""The micro-kernels: library kernels at sizes that fit the TCDM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

import pdojo.kernels
from benchmarks.snitch.compiler import c_source
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.errors import UsageError, did_you_mean
from pdojo.kernels import Workload, workload

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
DTYPES = ("f64", "f32")
TRACES = Path(pdojo.kernels.__file__).parent / "traces" / "snitch"
"""The folder of handmade traces."""
DIVIDER = "xdiv_sqrt"


@dataclass(frozen=True)
class MicroKernel:
    """A library kernel at sizes."""

    text: str
    """The kernel as on command lines: `dot:1x256`."""
    title: str
    """The name in tables."""
    divides: bool = False
    """True if it needs a divider, which the default cluster lacks; it then runs on a core with one."""
    has_maximum: bool = False
    """True if it computes a maximum. A maximum in a hardware loop loses NaN, which the kernel permits (`numerics
    numbers`).
    """

    def workload(self, dtype: str) -> Workload:
        """The workload with elements of a type."""
        return workload(self.text, dtype)

    def instantiate(self, dtype: str) -> KernelOp:
        """The plain kernel with its alignment and permissions."""
        kernel = with_alignment(self.workload(dtype).instantiate(), ALIGNMENT)
        return with_permission(kernel, Numerics.NUMBERS) if self.has_maximum else kernel

    def c_source(self, dtype: str) -> str:
        """The same computation as plain C."""
        return c_source(self.instantiate(dtype))

    def check(self, dtype: str, inputs: Arrays, outputs: Arrays) -> None:
        """Raise MeasurementError if outputs differ from an independent reference; library kernels have none here."""

    def machine(self, machine: Machine) -> Machine:
        """The machine, with a divider if the kernel needs one."""
        if not self.divides or DIVIDER in machine.features:
            return machine
        return replace(machine, features=tuple(sorted((*machine.features, DIVIDER))))

    def trace(self, dtype: str) -> Path | None:
        """The handmade trace, the most specific of sizes and type first; None if there is none."""
        exact = self.text.replace(":", "-").replace(",", "-").replace("=", "")
        kernel = self.text.partition(":")[0]
        names = (f"{exact}-{dtype}", exact, f"{kernel}-{dtype}", kernel)
        return next((path for name in names if (path := TRACES / f"{name}.trace").exists()), None)


MICRO_KERNELS = (
    MicroKernel("fill:16x16", "fill 16x16"),
    MicroKernel("copy:16x16", "copy 16x16"),
    MicroKernel("transpose:16x16", "transpose 16x16"),
    MicroKernel("axpy:1x256", "axpy 256"),
    MicroKernel("dot:1x256", "dot 256"),
    MicroKernel("reducesum:1x128", "sum 128"),
    MicroKernel("reducesum:16x16", "sum 16x16"),
    MicroKernel("reducemax:16x16", "max 16x16", has_maximum=True),
    MicroKernel("relu:16x16", "relu 16x16", has_maximum=True),
    MicroKernel("sigmoid:16x16", "sigmoid 16x16", divides=True),
    MicroKernel("gemv:16x32", "gemv 16x32"),
    MicroKernel("matmul:16x16x16", "gemm 16x16x16"),
    MicroKernel("matmul:8x8x8", "gemm 8x8x8"),
    MicroKernel("conv:1x1x1x10x10x3", "conv3x3 8x8"),
    MicroKernel("maxpool:1x1x10x10x3,S=1,P=0", "maxpool3x3 8x8", has_maximum=True),
    MicroKernel("sumpool:1x1x10x10x3,S=1,P=0", "sumpool3x3 8x8"),
    MicroKernel("batchnorm_folded:16x16", "batchnorm 16x16"),
    MicroKernel("layernorm:16x64", "layernorm 16x64", divides=True),
    MicroKernel("rmsnorm:16x64", "rmsnorm 16x64", divides=True),
    MicroKernel("softmax:16x16", "softmax 16x16", divides=True, has_maximum=True),
    MicroKernel("reducemean:16x16", "mean 16x16"),
)


def chosen(names: Sequence[str], known: tuple[MicroKernel, ...] = MICRO_KERNELS) -> tuple[MicroKernel, ...]:
    """The known kernels named on a command line: `dot:1x256`, or `matmul` for all its sizes; all without names.

    Raises UsageError for an unknown name.
    """
    if not names:
        return known
    found: dict[str, MicroKernel] = {}
    for name in names:
        mine = [each for each in known if name in (each.text, each.text.partition(":")[0])]
        if not mine:
            raise UsageError(f"'{name}' is no micro-kernel; {did_you_mean(name, [each.text for each in known])}")
        found |= {each.text: each for each in mine}
    return tuple(found.values())


def required_operations(nest: Nest) -> int:
    """Number of arithmetic instructions that a plain kernel needs, each on one element.

    The paper's peak is one such instruction per cycle. A product whose only use is in a sum counts as part of the sum,
    a function counts as one, and a kernel without arithmetic counts its moves.
    """
    total = sum(_operations(leaf, k, nest) for k, leaf in enumerate(nest.leaves))
    written = [leaf for leaf in nest.leaves if leaf.output.array.intent is not None]
    return total or sum(_instances(leaf) for leaf in written)


def lanes_of(dtype: str) -> int:
    """Elements per register."""
    return 8 // byte_width(dtype)


def _operations(leaf: Leaf, place: int, nest: Nest) -> int:
    is_product = leaf.function == "arith.mulf"
    is_sum = leaf.accumulate == "arith.addf"
    each = (leaf.function is not None) + (leaf.accumulate is not None)
    if (is_product and is_sum) or (is_product and _is_added(leaf, place, nest)):
        each -= 1
    return each * _instances(leaf)


def _is_added(leaf: Leaf, place: int, nest: Nest) -> bool:
    """True if the first reader of a product adds it or subtracts with it."""
    array = leaf.output.array
    for other in nest.leaves[place + 1 :]:
        if any(access.array is array for access in other.accesses[1:]):
            if other.function is None:
                return other.accumulate == "arith.addf"
            return other.accumulate is None and other.function in ("arith.addf", "arith.subf")
    return False


def _instances(leaf: Leaf) -> int:
    count = 1
    for scope in leaf.chain:
        count *= scope.extent
    return count
