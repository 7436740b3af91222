"""Checks whether a program has code for its machine: a legal state of the game does if its kernel does."""

from __future__ import annotations

from pdojo.backends.backend import backend_of
from pdojo.dialect.analysis.program import Program
from pdojo.errors import LoweringError


def lowering_error(program: Program) -> str | None:
    """The reason why the program has no code; None if it has, or if the machine has no backend."""
    try:
        backend_of(program.machine).check_lowers(program.nest, program.machine)
    except LoweringError as error:
        return str(error)
    return None
