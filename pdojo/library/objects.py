"""Object files of programs, which a machine description alone determines."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm import optimize
from pdojo.backends.llvm.build import module_text
from pdojo.backends.llvm.lowering import lower
from pdojo.backends.llvm.openmp import FUNCTIONS
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.names import symbol
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of


@dataclass(frozen=True)
class CompiledProgram:
    """The object code of a program."""

    code: bytes
    """A position-independent ELF file."""
    symbol: str
    """The symbol of the program's function."""
    shared_bytes: int
    """Bytes of workspace for a call."""
    thread_bytes: int
    """Bytes of workspace for each thread."""
    is_parallel: bool
    """Whether the code calls functions of an OpenMP runtime."""


def compile_program(kernel: KernelOp, machine: Machine, name: str) -> CompiledProgram:
    """The object file of a program, whose function has the symbol of the name `name`.

    Equal programs and descriptions give equal bytes on every computer with the same LLVM. Raises LoweringError if the
    machine lacks what the program uses.
    """
    named = kernel.clone()
    named.properties["sym_name"] = StringAttr(name)
    processor = optimize.described_processor(machine)
    lowered = lower(named, features=processor.enabled, described=machine)
    target = processor.target_machine("full", jit=False)
    module = optimize.parse(module_text(lowered, processor, machine))
    optimize.run_passes(module, target, "full")
    plan = plan_memory(nest_of(named))
    called = {function.name for function in module.functions if function.is_declaration}
    return CompiledProgram(
        target.emit_object(module),
        symbol(name),
        plan.shared_bytes,
        plan.thread_bytes,
        not called.isdisjoint(FUNCTIONS),
    )
