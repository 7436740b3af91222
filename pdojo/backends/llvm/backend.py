"""CPUs: code by LLVM, timed on this processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.backend import Arrays, Listing
from pdojo.backends.measure.worker import Worker
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import Nest
from pdojo.dialect.ops import KernelOp


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
        """Raise LoweringError for a kernel that has no code for the machine."""
        from pdojo.backends.llvm.kernel import lower_kernel

        lower_kernel(nest, frozenset(machine.features), {i.name: i for i in machine.intrinsics})

    def check_runs_here(self, machine: Machine) -> None:
        """Raise LoweringError for another architecture, and for features that this processor lacks."""
        from pdojo.backends.llvm.optimize import processor

        processor(machine)

    def runs(self) -> Worker:
        """A worker process, which times programs in turns."""
        return Worker()

    def execute(self, kernel: KernelOp, machine: Machine, seed: int) -> Arrays:
        """Compile a kernel and call it once on random inputs."""
        from pdojo.backends.arrays import empty_for
        from pdojo.backends.executable import compile as compile_kernel
        from pdojo.backends.measure.arrays import random_inputs

        executable = compile_kernel(kernel, machine, threads=machine.threads)
        inputs = random_inputs(executable.parameters, seed)
        arrays: dict[str, NDArray[np.generic]] = {}
        for parameter in executable.parameters:
            array = arrays[parameter.name] = empty_for(parameter)
            if parameter.name in inputs:
                array[...] = inputs[parameter.name]
        executable(**arrays)
        before = {f"{p.name}_before": inputs[p.name] for p in executable.parameters if p.written and p.name in inputs}
        return {**before, **arrays}

    def environment(self) -> Mapping[str, Any]:
        """The processor, the system, and the tool chain."""
        from pdojo.backends.measure.environment import environment

        return environment()


LLVM = LLVMBackend()
