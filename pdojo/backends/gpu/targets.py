"""The targets `cuda`, `hip` and `fibers`: the kernels of a module as device code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.backends.c.prelude import Prelude
from pdojo.backends.c.targets import printed_kernels
from pdojo.backends.gpu.devices import device_of
from pdojo.backends.gpu.kernel_text import KernelText, kernel_text
from pdojo.backends.gpu.spelling import CudaSpelling, DeviceSpelling, FiberSpelling, HipSpelling, Uses
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_on
from pdojo.dialect.view.versions import refuse_versions


@dataclass(frozen=True)
class DeviceText:
    """Prints a file of device code."""

    text: str
    kernels: tuple[KernelText, ...]


def device_text(*kernels: KernelOp, spelling: DeviceSpelling, machine: Machine | None = None) -> DeviceText:
    """A file with the device functions and the launching function of each kernel.

    `machine` gives the limits of blocks and warps (None: the machine that a kernel names, or the spelling's default).
    Raises LoweringError for kernels that device code cannot express.
    """
    prelude = Prelude(spelling)
    found = [_kernel(kernel, prelude, machine) for kernel in kernels]
    body = "\n".join(kernel.text for kernel in found)
    uses = sum((kernel.uses for kernel in found), Uses())
    return DeviceText("\n".join([spelling.device_head(uses) + prelude.text(), body]), tuple(found))


def _kernel(kernel: KernelOp, prelude: Prelude, machine: Machine | None) -> KernelText:
    spelling = prelude.spelling
    assert isinstance(spelling, DeviceSpelling)
    described = machine or device_of(kernel, spelling.machine)
    return kernel_text(nest_on(kernel, described), prelude, described)


@dataclass(frozen=True)
class _DeviceTarget(Target):
    spelling: ClassVar[DeviceSpelling]

    machine: str | None = None
    """Name of the machine; None: the machine that the kernel names."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the kernels of the module."""
        refuse_versions(module, f"the target {self.name}")
        kernels = printed_kernels(module, self.name)
        described = None if self.machine is None else machine(self.machine)
        output.write(device_text(*kernels, spelling=self.spelling, machine=described).text)


@dataclass(frozen=True)
class PdojoCudaTarget(_DeviceTarget):
    """CUDA C++, for nvcc and NVRTC."""

    name = "pdojo-cuda"
    spelling = CudaSpelling()


@dataclass(frozen=True)
class PdojoHipTarget(_DeviceTarget):
    """HIP C++, for hipcc, hiprtc and clang."""

    name = "pdojo-hip"
    spelling = HipSpelling()


@dataclass(frozen=True)
class PdojoFibersTarget(_DeviceTarget):
    """C++ whose threads are fibers on a CPU, to check device code without a device."""

    name = "pdojo-fibers"
    spelling = FiberSpelling()
