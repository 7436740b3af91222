"""Object files of programs, determined only by the machine description."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import StringAttr

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.binding import split_kernel
from pdojo.backends.common.placement import plan_memory
from pdojo.backends.llvm.described import described_object
from pdojo.dialect.functions import byte_width
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
    arguments: tuple[str, ...]
    """The names of the arrays that the function takes: of the interface, and constants."""
    binding: CompiledBinding | None = None
    """The function that computes constants; None if there are none."""


@dataclass(frozen=True)
class CompiledBinding:
    """The function of a program that computes its constants."""

    symbol: str
    arguments: tuple[str, ...]
    """The names of the arrays that it takes: of the interface, and constants, which it writes."""
    constants: tuple[tuple[str, int], ...]
    """The constants with their bytes."""


def compile_program(kernel: KernelOp, machine: Machine, name: str) -> CompiledProgram:
    """The object file of a program, whose function has the symbol of the name `name`.

    A program with constants has two functions, `NAME_call` and `NAME_bind`. Equal programs and descriptions give equal
    bytes on every computer with the same LLVM. Raises LoweringError if the machine lacks what the program uses.
    """
    named = kernel.clone()
    named.properties["sym_name"] = StringAttr(name)
    parts = split_kernel(nest_of(named))
    functions = [named] if parts is None else [parts.calling, parts.binding]
    made = described_object(functions, machine)
    plans = [plan_memory(nest_of(each)) for each in functions]
    shared, thread = max(plan.shared_bytes for plan in plans), max(plan.thread_bytes for plan in plans)
    if max(shared, thread) > LARGEST:
        raise LoweringError("its temporaries take more than 2^46 bytes at its greatest sizes")
    names = [tuple(p.name for p in parameters_of(nest_of(each))) for each in functions]
    binding = None
    if parts is not None:
        written = [p for p in parameters_of(nest_of(parts.binding)) if p.written]
        sizes = tuple((p.name, prod(p.shape) * byte_width(p.dtype)) for p in written)
        binding = CompiledBinding(symbol(parts.binding.sym_name.data), names[1], sizes)
    called = symbol(functions[0].sym_name.data)
    return CompiledProgram(made.code, called, shared, thread, made.is_parallel, names[0], binding)


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
