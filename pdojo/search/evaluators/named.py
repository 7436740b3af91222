"""Evaluators by name, as registered by the kind of a machine."""

from __future__ import annotations

from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, UsageError
from pdojo.passes.kind import kind_of_machine
from pdojo.search.contract.evaluation import Evaluator


def evaluator_for(machine: Machine, name: str | None) -> str:
    """The name of the evaluator; the machine's default if `name` is None.

    Raises UsageError if it cannot evaluate programs for the machine.
    """
    known = kind_of_machine(machine).evaluators
    if name is None:
        return next(iter(known))
    if name not in known:
        raise UsageError(f"--evaluator {name} knows nothing about programs for {machine.name}; take {', '.join(known)}")
    return name


def version_of(name: str, machine: Machine) -> object:
    """The version of an evaluator: what its costs depend on, besides machine and program."""
    return kind_of_machine(machine).evaluators[name].version()


def check_runs_here(name: str, machine: Machine) -> None:
    """Raise UsageError if the evaluator runs programs and the machine does not fit this computer."""
    if not kind_of_machine(machine).evaluators[name].runs:
        return
    try:
        backend_of(machine).check_runs_here(machine)
    except LoweringError as error:
        estimates = [other for other, kind in kind_of_machine(machine).evaluators.items() if not kind.runs]
        hint = "".join(f"; --evaluator {other} estimates what it cannot run" for other in estimates)
        raise UsageError(f"{error}{hint}") from None


def estimating_evaluator(machine: Machine) -> str | None:
    """The first evaluator of a machine that runs no programs; None if there is none."""
    return next((name for name, kind in kind_of_machine(machine).evaluators.items() if not kind.runs), None)


def why_not_timed(name: str, machine: Machine) -> str | None:
    """The reason why a program judged by this evaluator cannot run here; None if it can."""
    if kind_of_machine(machine).evaluators[name].runs:
        return None
    try:
        backend_of(machine).check_runs_here(machine)
    except LoweringError as error:
        return str(error)
    return None


def make_evaluator(name: str, machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    """The named evaluator; it checks results against the kernel `plain`. The caller closes it."""
    return kind_of_machine(machine).evaluators[name].make(machine, plain, seed)
