"""Compares device code, run by fibers of a CPU, with the reference interpreter on one program and ordinary numbers."""

from __future__ import annotations

import numpy as np

from pdojo.backends.gpu.emulation import emulate
from pdojo.backends.gpu.fibers import FiberError
from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.program import Program
from pdojo.dialect.semantics.interpreter import interpret
from qa.compiled import is_close, ordinary_values
from qa.walks import Failure


def device_code_differs(program: Program, seed: int) -> Failure | None:
    """A fault of a program's device code, in any way to run it; None if there is none.

    Raises LoweringError if device code cannot express the program, or if there is no C++ compiler.
    """
    random = np.random.default_rng(seed)
    arrays = [a for a in program.nest.arrays.values() if a.intent is not None]
    inputs = {a.name: ordinary_values(a, random) for a in arrays if a.intent is not Intent.OUT}
    wanted = interpret(program.nest, inputs)
    try:
        for way, given in emulate(program.kernel, program.machine, inputs, library=seed % 2 == 0):
            for array in arrays:
                if array.intent is not Intent.IN and not is_close(given[array.name], wanted[array.name], array.dtype):
                    found = f"'{array.name}' is\n{given[array.name]}\nand should be\n{wanted[array.name]}"
                    return Failure("device code", f"with {way}, {found}")
    except FiberError as error:
        return Failure("device code", str(error))
    return None
