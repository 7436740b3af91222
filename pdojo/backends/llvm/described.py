"""Object code that a program and a machine description determine, on whatever computer it is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from pdojo.backends.llvm import optimize
from pdojo.backends.llvm.build import module_text
from pdojo.backends.llvm.lowering import lower
from pdojo.backends.llvm.openmp import FUNCTIONS
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp


@dataclass(frozen=True)
class DescribedObject:
    """An object file for a machine description."""

    code: bytes
    """A position-independent ELF file."""
    is_parallel: bool
    """Whether the code calls functions of an OpenMP runtime."""


def described_object(kernels: Sequence[KernelOp], machine: Machine) -> DescribedObject:
    """The object file of programs. Equal arguments give equal bytes on every computer with the same LLVM.

    Raises LoweringError if the machine lacks what a program uses.
    """
    processor = optimize.described_processor(machine)
    target = processor.target_machine("full", jit=False)
    modules: list[llvm.ModuleRef] = []
    for kernel in kernels:
        lowered = lower(kernel, features=processor.enabled, described=machine)
        modules.append(optimize.parse(module_text(lowered, processor, machine)))
    module = modules[0]
    for other in modules[1:]:
        module.link_in(other)
    optimize.run_passes(module, target, "full")
    called = {function.name for function in module.functions if function.is_declaration}
    return DescribedObject(target.emit_object(module), not called.isdisjoint(FUNCTIONS))


def llvm_version() -> str:
    """The version of LLVM: `20.1.8`."""
    return ".".join(map(str, llvm.llvm_version_info))
