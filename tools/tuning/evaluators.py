"""Evaluators by name: the one place where they are made."""

from __future__ import annotations

from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.search.evaluation import Evaluator

EVALUATORS = ("runtime", "analytical")
"""Names of the evaluators; the first one is the default."""


def make_evaluator(name: str, machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    """The evaluator of that name for a kernel, whose plain program is right. It must be closed."""
    match name:
        case "runtime":
            from pdojo.search.evaluators.runtime import Runtime

            return Runtime(machine, plain, seed=seed)
        case _:
            from pdojo.search.evaluators.analytical import Analytical

            return Analytical(machine)
