"""Snitch code on a simulated core against the reference interpreter, on one program and ordinary numbers."""

from __future__ import annotations

from pdojo.backends.measure import CompileError, KernelReference, Simulated, Simulation
from pdojo.backends.measure import Program as Text
from pdojo.backends.snitch.executable import load
from pdojo.backends.snitch.session import judged
from pdojo.dialect.analysis.program import Program
from pdojo.errors import LoweringError
from qa.walks import Failure

CYCLES = 1_000_000
"""Cycles after which a program hangs: what random walks make are tiny kernels."""


def simulated_code_differs(program: Program, seed: int) -> Failure | None:
    """What is wrong with the code of a program: other results than the interpreter's, a trap, a deadlock, a hang.

    The results have the interpreter's bits, or are close where a function is approximated. Raises LoweringError where
    the core cannot do what the program asks for, or has too little memory.
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
