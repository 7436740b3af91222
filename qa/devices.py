"""Compares device code, run by fibers of a CPU, with the reference interpreter on one program and ordinary numbers."""

from __future__ import annotations

import numpy as np

from pdojo.backends.c.names import Names
from pdojo.backends.gpu.fibers import WAYS, FiberError, compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Intent
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from qa.compiled import is_close, ordinary_values
from qa.walks import Failure

WARP = 32
"""Threads of a warp of fibers: warps of a machine with fewer are parts of one."""
_POISON = 0xA5


def device_code_differs(program: Program, seed: int) -> Failure | None:
    """A fault of a program's device code, in any of the ways to run it; None if there is none.

    Raises LoweringError if device code cannot say the program, or if there is no C++ compiler.
    """
    random = np.random.default_rng(seed)
    arrays = [a for a in program.nest.arrays.values() if a.intent is not None]
    inputs = {a.name: ordinary_values(a, random) for a in arrays if a.intent is not Intent.OUT}
    wanted = interpret(program.nest, inputs)
    made = device_text(program.kernel, spelling=FiberSpelling(library=seed % 2 == 0), machine=program.machine)
    compiled = compile_fibers(made.text, warp=max(WARP, program.machine.gpu.warp_size))
    for late, order in WAYS:
        given = {a.name: np.zeros(a.shape, INTERFACE[a.dtype]) for a in arrays}
        for name, values in inputs.items():
            given[name][...] = values
        workspace = np.full(max(1, made.kernels[0].workspace.size_bytes), _POISON, np.uint8)
        try:
            compiled.run(Names().fresh(program.nest.name), [*given.values(), workspace], late=late, order=order)
        except FiberError as error:
            return Failure("device code", str(error))
        for array in arrays:
            if array.intent is not Intent.IN and not is_close(given[array.name], wanted[array.name], array.dtype):
                return Failure(
                    "device code",
                    f"with copies {'late' if late else 'early'} and threads {order}, '{array.name}' is\n"
                    f"{given[array.name]}\nand should be\n{wanted[array.name]}",
                )
    return None
