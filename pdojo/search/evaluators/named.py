"""Evaluators, keyed by name: those that a machine's backend and its kind make possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pdojo.backends.measure.environment import environment
from pdojo.backends.measure.evaluating import Simulates, Times
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, UsageError
from pdojo.passes.kind import CostModel
from pdojo.passes.registry import kind_of_machine
from pdojo.search.contract.evaluation import Evaluator


@dataclass(frozen=True)
class EvaluatorKind:
    """An evaluator of a machine."""

    make: Callable[[KernelOp, int], Evaluator]
    """Makes the evaluator for a plain kernel, with a seed."""
    version: Callable[[], object]
    """Everything except machine and program that its costs depend on."""
    runs: bool = True
    """True if programs run or are simulated; False if costs are estimates."""


def evaluators_of(machine: Machine) -> Mapping[str, EvaluatorKind]:
    """The evaluators of a machine, keyed by name, the default one first."""
    found: dict[str, EvaluatorKind] = {}
    backend, model = backend_of(machine), kind_of_machine(machine).model
    if isinstance(backend, Simulates):
        found["cycles"] = EvaluatorKind(lambda plain, seed: _cycles(machine, plain, seed), backend.version)
    elif isinstance(backend, Times):
        found["runtime"] = EvaluatorKind(lambda plain, seed: _runtime(machine, backend, plain, seed), environment)
    if model is not None:
        found["analytical"] = EvaluatorKind(
            lambda _plain, _seed: _analytical(machine, model()), lambda: model().version, runs=False
        )
    return found


def _cycles(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.cycles import Cycles

    return Cycles(machine, plain, seed=seed)


def _runtime(machine: Machine, backend: Times, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.runtime import RuntimeEvaluator

    compilers, timer, surroundings = backend.compilers(), backend.runs(), backend.environment
    return RuntimeEvaluator(machine, plain, seed=seed, compilers=compilers, timer=timer, surroundings=surroundings)


def _analytical(machine: Machine, model: CostModel) -> Evaluator:
    from pdojo.search.evaluators.analytical import Analytical

    return Analytical(machine, model)


def evaluator_for(machine: Machine, name: str | None) -> str:
    """The name of the evaluator; the machine's default if `name` is None.

    Raises UsageError if it cannot evaluate programs for the machine.
    """
    known = evaluators_of(machine)
    if name is None:
        return next(iter(known))
    if name not in known:
        raise UsageError(f"--evaluator {name} knows nothing about programs for {machine.name}; take {', '.join(known)}")
    return name


def version_of(name: str, machine: Machine) -> object:
    """The version of an evaluator: everything except machine and program that its costs depend on."""
    return evaluators_of(machine)[name].version()


def check_runs_here(name: str, machine: Machine) -> None:
    """Raise UsageError if the evaluator runs programs and the machine does not fit this computer."""
    if not evaluators_of(machine)[name].runs:
        return
    try:
        backend_of(machine).check_runs_here(machine)
    except LoweringError as error:
        estimates = [other for other, kind in evaluators_of(machine).items() if not kind.runs]
        hint = "".join(f"; --evaluator {other} estimates what it cannot run" for other in estimates)
        raise UsageError(f"{error}{hint}") from None


def estimating_evaluator(machine: Machine) -> str | None:
    """The first evaluator of a machine that runs no programs; None if there is none."""
    return next((name for name, kind in evaluators_of(machine).items() if not kind.runs), None)


def why_not_timed(name: str, machine: Machine) -> str | None:
    """The reason why a program judged by this evaluator cannot run here; None if it can."""
    if evaluators_of(machine)[name].runs:
        return None
    try:
        backend_of(machine).check_runs_here(machine)
    except LoweringError as error:
        return str(error)
    return None


def make_evaluator(name: str, machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    """The named evaluator; it checks results against the kernel `plain`. The caller closes it."""
    return evaluators_of(machine)[name].make(plain, seed)
