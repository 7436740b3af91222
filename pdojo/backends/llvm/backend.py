"""CPUs: code by LLVM, timed on this processor."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.backend import Arrays, Listing
from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import KernelReference, Options, Program
from pdojo.backends.measure.worker import Listener, Worker
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import Nest
from pdojo.dialect.ops import KernelOp


class TimedRuns:
    """Programs in turns, in one worker process."""

    def __init__(self) -> None:
        self._worker = Worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def compare(
        self,
        programs: Sequence[Program],
        options: Options,
        reference: KernelReference | None = None,
        listener: Listener | None = None,
    ) -> list[Outcome]:
        """Time programs in turns, on the same arrays. Raises MeasurementError."""
        return self._worker.compare(programs, options, reference, listener)

    def interrupt(self) -> None:
        """End what the worker does now."""
        pid = self._worker.pid
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the worker."""
        self._worker.close()


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

    def runs(self) -> TimedRuns:
        """A worker process."""
        return TimedRuns()

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
