"""Does a program become code for its machine? A legal state of the game always does, where the kernel does."""

from __future__ import annotations

from pdojo.backends.backend import backend_of
from pdojo.dialect.analysis.program import Program
from pdojo.errors import LoweringError


def lowering_error(program: Program) -> str | None:
    """Why the program has no code for its machine; None if it has, or if no backend generates code for the machine."""
    try:
        backend_of(program.machine).check_lowers(program.nest, program.machine)
    except LoweringError as error:
        return str(error)
    return None
