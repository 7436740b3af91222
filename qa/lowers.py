"""Does a program become code for its machine? A legal state of the game always does, where the kernel does."""

from __future__ import annotations

from pdojo.backends.llvm.kernel import lower_kernel as lower_for_cpu
from pdojo.backends.snitch.kernel import lower_kernel as lower_for_snitch
from pdojo.dialect.analysis.program import Program
from pdojo.errors import LoweringError


def lowering_error(program: Program) -> str | None:
    """Why the program has no code for its machine; None if it has, or if there is no backend (graphics processors)."""
    machine = program.machine
    if machine.gpu.block_threads:
        return None
    try:
        if machine.snitch.frep_instructions:
            lower_for_snitch(program.nest, machine)
        else:
            lower_for_cpu(program.nest, frozenset(machine.features), {i.name: i for i in machine.intrinsics})
    except LoweringError as error:
        return str(error)
    return None
