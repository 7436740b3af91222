"""Compares Snitch code on a simulated core with the reference interpreter on one program and ordinary numbers."""

from __future__ import annotations

from pdojo.backends.measure import CompileError, KernelReference, Simulated, Simulation
from pdojo.backends.measure import MeasuredProgram as Text
from pdojo.backends.snitch.executable import load
from pdojo.backends.snitch.session import judged
from pdojo.dialect.flow.program import Program
from pdojo.errors import LoweringError
from qa.walks import Failure

CYCLES = 1_000_000
"""Limit of cycles of a program: programs of random walks are tiny."""


def simulated_code_differs(program: Program, seed: int) -> Failure | None:
    """A fault of a program's code: other results than the interpreter's, a trap, a deadlock, a hang; None if there is
    none.

    Results have the interpreter's bits, or are close if a function is approximated. Raises LoweringError if the core
    lacks an instruction or memory for the program.
    """
    kernel = load(program.kernel, program.machine)
    text = Text.of(program.kernel, program.machine)
    wanted = Simulation(text, KernelReference(text.text), seed, CYCLES, exact=True)
    outcome = judged(kernel, program.nest, wanted, lambda _: None)
    match outcome:
        case Simulated():
            return None
        case CompileError():
            raise LoweringError(outcome.message)
        case _:
            return Failure("simulation", outcome.summary)
