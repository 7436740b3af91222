"""Compares device code, run by fibers of a CPU, with the reference interpreter on one program and ordinary numbers."""

from __future__ import annotations

from pdojo.backends.gpu.emulation import emulate
from pdojo.backends.gpu.fibers import FiberError
from pdojo.dialect.flow.program import Program
from qa.compiled import Expected
from qa.walks import Failure


def device_code_differs(program: Program, seed: int) -> Failure | None:
    """A fault of a program's device code, in any way to run it; None if there is none.

    Raises LoweringError if device code cannot express the program, or if there is no C++ compiler.
    """
    expected = Expected(program, seed)
    try:
        for way, given in emulate(program.kernel, program.machine, expected.inputs, library=seed % 2 == 0):
            found = expected.difference(given)
            if found is not None:
                return Failure("device code", f"with {way}, {found}")
    except FiberError as error:
        return Failure("device code", str(error))
    return None
