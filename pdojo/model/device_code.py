"""Compiling the kernels of a model for a GPU: programs with the moves of the GPU's pass, and their images."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pdojo.backends.common.gc_pause import uncollected
from pdojo.backends.gpu.backend import GpuBackend
from pdojo.backends.gpu.program import DeviceProgram
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.model.compiling import versions
from pdojo.passes.scheduled_kernel import make_moves


@dataclass(frozen=True)
class DeviceObject:
    """A kernel that is compiled for a GPU."""

    text: str
    """The kernel with its moves, in the notation."""
    program: DeviceProgram

    def to_json(self) -> dict[str, Any]:
        """A JSON object for the cache."""
        return {"text": self.text, "program": self.program.to_json()}


@dataclass(frozen=True)
class DeviceRequest:
    """A kernel to be compiled for a GPU; no device is needed."""

    text: str
    """The kernel in the notation."""
    machine: Machine
    expert: str | None
    """The expert pass that makes moves first; None for a kernel that is compiled as it is."""
    compiler: str
    """`module:name` of the GpuCompiler, for other processes."""

    @property
    def key(self) -> str:
        """All facts that determine the code: equal keys, equal code. Raises MissingTool without the compiler."""
        compiler = [self.compiler, GpuBackend(self.compiler).compiler_version()]
        return json.dumps([versions(), compiler, machine_to_json(self.machine), self.expert, self.text], sort_keys=True)

    def compiled(self) -> DeviceObject:
        """The code.

        Raises LoweringError if the machine lacks what the kernel uses, MissingTool without the compiler.
        """
        with uncollected():
            (kernel,) = parse_notation(self.text)
            if self.expert is not None:
                kernel = make_moves(kernel, self.machine, self.expert).after
            program = GpuBackend(self.compiler).compiler.assemble(kernel, self.machine)
            return DeviceObject(print_notation(kernel), program)

    def read(self, data: dict[str, Any]) -> DeviceObject:
        """The code from the cache."""
        return DeviceObject(data["text"], DeviceProgram.from_json(data["program"]))


def gpu_backend(machine: Machine) -> GpuBackend:
    """The backend of a GPU's machine."""
    backend = backend_of(machine)
    assert isinstance(backend, GpuBackend), machine.name
    return backend
