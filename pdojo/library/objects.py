"""Object files of programs, determined only by the machine description."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.described import described_object
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.names import symbol
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError

LARGEST = 1 << 46
"""Most bytes of workspace: processors have 47 bits of addresses for programs."""


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
    made = described_object(named, machine)
    plan = plan_memory(nest_of(named))
    if max(plan.shared_bytes, plan.thread_bytes) > LARGEST:
        raise LoweringError("its temporaries take more than 2^46 bytes at its greatest sizes")
    return CompiledProgram(made.code, symbol(name), plan.shared_bytes, plan.thread_bytes, made.is_parallel)


@dataclass(frozen=True)
class ObjectSource:
    """A program to be compiled, perhaps in another process."""

    text: str
    """The program in the notation."""
    machine: Machine
    name: str
    """The name of the function."""

    def compiled(self) -> CompiledProgram:
        """The object file. Raises LoweringError if the machine lacks what the program uses."""
        (kernel,) = parse_notation(self.text)
        return compile_program(kernel, self.machine, self.name)
