"""What `-t llvm` and `-t asm` print: a module as LLVM IR, and as the assembly of optimised machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.backends.llvm.lowering import convert, lower
from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp

if TYPE_CHECKING:
    from pdojo.backends.llvm.optimize import Processor


@dataclass(frozen=True)
class PdojoLLVMTarget(Target):
    """LLVM IR, before LLVM's own passes; kernels are lowered first."""

    name = "pdojo-llvm"

    machine: str | None = None
    """Name of the machine description; that of the first kernel, or the host, where absent."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the module."""
        output.write(llvm_text(module, _machine(module, self.machine)))


@dataclass(frozen=True)
class PdojoAsmTarget(Target):
    """Assembly text after LLVM's passes (O3)."""

    name = "pdojo-asm"

    machine: str | None = None
    """Name of the machine description; that of the first kernel, or the host, where absent."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the module."""
        output.write(asm_text(module, _machine(module, self.machine)))


def llvm_text(program: KernelOp | ModuleOp, machine: Machine | None = None) -> str:
    """A kernel, or a module of kernels and llvm functions, as LLVM IR; the program stays as it is."""
    from pdojo.backends.llvm.build import module_text
    from pdojo.backends.llvm.optimize import processor

    target = processor(machine)
    return module_text(_lowered(program, target, machine), target, machine)


def asm_text(program: KernelOp | ModuleOp, machine: Machine | None = None) -> str:
    """The same as assembly of the optimised machine code."""
    from pdojo.backends.llvm import optimize

    target = optimize.processor(machine).target_machine("full")
    module = optimize.parse(llvm_text(program, machine))
    optimize.run_passes(module, target, "full")
    return target.emit_assembly(module)


def _lowered(program: KernelOp | ModuleOp, target: Processor, machine: Machine | None) -> ModuleOp:
    if isinstance(program, KernelOp):
        return lower(program, features=target.enabled, described=machine)
    module = program.clone()
    convert(module, target.enabled, machine)
    return module


def _machine(module: ModuleOp, name: str | None) -> Machine | None:
    """The machine to generate code for."""
    from pdojo.dialect.machine import machine

    if name is None:
        kernels = (k for k in module.walk() if isinstance(k, KernelOp))
        name = next((k.machine.data for k in kernels if k.machine is not None), None)
    return None if name is None else machine(name)
