"""Checks if a program has code for its machine: a legal state of the game has code if its kernel does.

Models of GPUs without a backend use the code for fibers.
"""

from __future__ import annotations

from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.backends.registry import backend_of
from pdojo.dialect.flow.program import Program
from pdojo.errors import LoweringError


def lowering_error(program: Program) -> str | None:
    """The reason why the program has no code; None if it has code, or if no backend supports the machine."""
    nest, machine = program.nest, program.machine
    try:
        if machine.gpu and not machine.backend:
            device_text(nest.kernel, spelling=FiberSpelling(), machine=machine)
        else:
            backend_of(machine).check_lowers(nest, machine)
    except LoweringError as error:
        return str(error)
    return None
