"""Evaluators by name: the one place where they are made."""

from __future__ import annotations

from pdojo.dialect.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, UsageError
from pdojo.search.evaluation import Evaluator

EVALUATORS = ("runtime", "analytical", "cycles")
"""Names of the evaluators."""


def is_simulated(machine: Machine) -> bool:
    """Whether programs for a machine run on its simulator: it is a Snitch core. They never run on this processor."""
    return machine.snitch.stream_registers > 0


def evaluator_for(machine: Machine, name: str | None) -> str:
    """The evaluator of that name, or a machine's own: `runtime`, or `cycles` where it is simulated.

    Raises UsageError where it cannot evaluate programs for the machine.
    """
    if name is None:
        return "cycles" if is_simulated(machine) else "runtime"
    if name == "cycles" and not is_simulated(machine):
        raise UsageError(f"--evaluator cycles simulates Snitch cores, and {machine.name} is none")
    if name != "cycles" and is_simulated(machine):
        raise UsageError(f"programs for {machine.name} are simulated: --evaluator {name} knows nothing about them")
    return name


def version_of(name: str) -> object:
    """What costs of the evaluator of that name depend on beside machine and program."""
    match name:
        case "runtime":
            from pdojo.backends.measure.environment import environment

            return environment()
        case "cycles":
            from pdojo.search.evaluators.cycles import version

            return version()
        case _:
            from pdojo.search.evaluators.analytical import VERSION

            return VERSION


def check_runs_here(name: str, machine: Machine) -> None:
    """Raise UsageError where the evaluator of that name would run programs, and this computer is no such machine."""
    if name != "runtime":
        return
    from pdojo.backends.llvm.optimize import processor

    try:
        processor(machine)
    except LoweringError as error:
        raise UsageError(f"{error}; --evaluator analytical estimates what it cannot run") from None


def make_evaluator(name: str, machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    """The evaluator of that name for a kernel, whose plain program is right. It must be closed."""
    match name:
        case "runtime":
            from pdojo.search.evaluators.runtime import Runtime

            return Runtime(machine, plain, seed=seed)
        case "cycles":
            from pdojo.search.evaluators.cycles import Cycles

            return Cycles(machine, plain, seed=seed)
        case _:
            from pdojo.search.evaluators.analytical import Analytical

            return Analytical(machine)
