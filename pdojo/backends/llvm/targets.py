"""The targets `llvm`, `asm`, `obj` and `c-header`: LLVM IR, optimised assembly, object file, and C declarations of the
object's functions. Code may be for any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.backends.common.binary import BinaryTarget
from pdojo.backends.llvm.lowering import convert, lower
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.versions import version_lists, versions_of

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine

    from pdojo.backends.llvm.optimize import Processor


@dataclass(frozen=True)
class _ForMachine:
    machine: str | None = None
    """Name of the machine; None: the machine that the first kernel names, else the host."""


@dataclass(frozen=True)
class PdojoLLVMTarget(_ForMachine, Target):
    """LLVM IR before LLVM's own passes; kernels are lowered first."""

    name = "pdojo-llvm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the module."""
        output.write(llvm_text(module, _machine(module, self.machine)))


@dataclass(frozen=True)
class PdojoAsmTarget(_ForMachine, Target):
    """Assembly text after LLVM's passes (O3)."""

    name = "pdojo-asm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the module."""
        output.write(asm_text(module, _machine(module, self.machine)))


@dataclass(frozen=True)
class PdojoObjectTarget(_ForMachine, BinaryTarget):
    """A position-independent object file of the code that the target `pdojo-asm` shows."""

    name = "pdojo-obj"

    def emit_bytes(self, ctx: Context, module: ModuleOp) -> bytes:
        """The contents of the object file."""
        return object_bytes(module, _machine(module, self.machine))


@dataclass(frozen=True)
class PdojoHeaderTarget(_ForMachine, Target):
    """A C header for object files of `pdojo-obj`."""

    name = "pdojo-c-header"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Print the header. Raises LoweringError for a kernel that has no object code."""
        from pdojo.backends.c.header import header_text

        # Lower the module too, to raise an error for kernels without object code.
        llvm_text(module, _machine(module, self.machine))
        nests = [nest_of(op) for op in module.walk() if isinstance(op, KernelOp)]
        output.write(header_text(nests, [versions_of(listed) for listed in version_lists(module)]))


def llvm_text(program: KernelOp | ModuleOp, machine: Machine | None = None) -> str:
    """A kernel, or a module of kernels and llvm functions, as LLVM IR; the program is not changed."""
    from pdojo.backends.llvm.build import module_text
    from pdojo.backends.llvm.optimize import any_processor

    target = any_processor(machine)
    return module_text(_lowered(program, target, machine), target, machine)


def asm_text(program: KernelOp | ModuleOp, machine: Machine | None = None) -> str:
    """A kernel or module as assembly of the optimised machine code."""
    from pdojo.backends.llvm import optimize

    processor = optimize.any_processor(machine)
    # For this architecture, show the code that runs in this process.
    jit = processor.architecture == optimize.any_processor().architecture
    target = processor.target_machine("full", jit=jit)
    return target.emit_assembly(_optimised(program, machine, target, jit=jit))


def object_bytes(program: KernelOp | ModuleOp, machine: Machine | None = None) -> bytes:
    """A kernel or module as an object file (ELF), for other programs to link."""
    from pdojo.backends.llvm import optimize

    target = optimize.any_processor(machine).target_machine("full", jit=False)
    return target.emit_object(_optimised(program, machine, target))


def _optimised(
    program: KernelOp | ModuleOp, machine: Machine | None, target: TargetMachine, *, jit: bool = False
) -> ModuleRef:
    from pdojo.backends.llvm import optimize

    module = optimize.parse(llvm_text(program, machine), jit=jit)
    optimize.run_passes(module, target, "full")
    return module


def _lowered(program: KernelOp | ModuleOp, target: Processor, machine: Machine | None) -> ModuleOp:
    if isinstance(program, KernelOp):
        return lower(program, features=target.enabled, described=machine)
    module = program.clone()
    convert(module, target.enabled, machine)
    return module


def _machine(module: ModuleOp, name: str | None) -> Machine | None:
    """The machine `name`; if None, the machine that the first kernel with a machine names, else None."""
    from pdojo.dialect.machines.registry import known_machine, machine

    if name is not None:
        return machine(name)
    kernels = (k for k in module.walk() if isinstance(k, KernelOp))
    named = next((k.machine.data for k in kernels if k.machine is not None), None)
    return None if named is None else known_machine(named)
