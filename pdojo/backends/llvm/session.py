"""The worker's side of a comparison on the processor: machine code from another process is loaded."""

from __future__ import annotations

from typing import Literal

from pdojo.backends.llvm.executable import LoadedKernel, load
from pdojo.backends.llvm.executable import assemble as compile_to_object
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.backends.measure.request import JSON
from pdojo.backends.measure.session import WorkerSession
from pdojo.backends.measure.tools import Tools
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp


class CpuSession(WorkerSession):
    """One comparison on the processor."""

    def load(self, kernel: KernelOp, code: JSON) -> LoadedKernel:
        """A kernel's code from `assembled`, ready to run; another process may have made it."""
        return load(kernel, ObjectCode.from_json(code), self.options.threads)

    @staticmethod
    def assembled(kernel: KernelOp, machine: Machine, effort: Literal["search", "full"], tools: Tools) -> JSON:
        """Compile a kernel to code for `load`. Raises PdojoError."""
        return compile_to_object(kernel, machine, optimize=effort).to_json()
