"""The backend of CPUs: code by LLVM, timed on this processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pdojo.backends.backend import Arrays, Listing
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure.pool import Workers
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest

if TYPE_CHECKING:
    from pdojo.backends.llvm.executable import Executable


class LLVMBackend:
    """LLVM IR through llvmlite, in process."""

    unit = "s"
    is_simulated = False

    @property
    def listings(self) -> Mapping[str, Listing]:
        """Assembly, LLVM IR, C."""
        from pdojo.backends.c.targets import c_text
        from pdojo.backends.llvm.targets import asm_text, llvm_text

        return {"asm": asm_text, "llvm": llvm_text, "c": lambda kernel, machine: c_text(kernel, machine=machine)}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Raise LoweringError if the kernel cannot be lowered to code for the machine."""
        from pdojo.backends.llvm.kernel_functions import lower_kernel

        lower_kernel(nest, frozenset(machine.features), {i.name: i for i in machine.intrinsics})

    def check_runs_here(self, machine: Machine) -> None:
        """Raise LoweringError if the machine has another architecture, or features that this processor lacks."""
        from pdojo.backends.llvm.optimize import processor

        processor(machine)

    def runs(self) -> CpuWorker:
        """A worker process, which times programs in turns."""
        return CpuWorker()

    def compilers(self, count: int | None = None) -> Workers:
        """`count` processes that compile programs for a worker to load; None: one per processor."""
        return Workers(count, CpuWorker)

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Compile a kernel and call it once."""
        from pdojo.backends.calling.arrays import empty_for

        executable = self.compile(kernel, machine, machine.threads, "full")
        arrays = {p.name: empty_for(p) for p in executable.parameters}
        for name, array in inputs.items():
            arrays[name][...] = array
        executable(**arrays)
        return {p.name: arrays[p.name] for p in executable.parameters if p.written}

    def compile(
        self, kernel: KernelOp, machine: Machine, threads: int | None, optimize: Literal["search", "full"]
    ) -> Executable:
        """The kernel as a callable."""
        from pdojo.backends.llvm.executable import compile as compile_here

        return compile_here(kernel, machine, threads=threads, optimize=optimize)

    def environment(self) -> Mapping[str, Any]:
        """The processor, the system, and the tool chain."""
        from pdojo.backends.measure.environment import environment

        return environment()


LLVM = LLVMBackend()
