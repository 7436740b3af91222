"""CPUs: passes for vectors, caches and threads; programs are timed, or estimated by a model."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import lazy
from pdojo.passes.kind import EvaluatorKind, MachineKind
from pdojo.search.contract.evaluation import Evaluator

naive_pass = lazy("pdojo.passes.common.greedy:naive")
"""The naive pass, which fits any machine."""


def _runtime(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.runtime import RuntimeEvaluator

    return RuntimeEvaluator(machine, plain, seed=seed)


def runtime_version() -> object:
    """The facts of this computer and its tools that times depend on."""
    from pdojo.backends.measure.environment import environment

    return environment()


def _analytical(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.analytical import Analytical

    return Analytical(machine)


CPU = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.common.greedy:greedy"),
        "heuristic": lazy("pdojo.passes.cpu.heuristic:heuristic"),
    },
    evaluators={
        "runtime": EvaluatorKind(_runtime, runtime_version),
        "analytical": EvaluatorKind(_analytical, lazy("pdojo.search.evaluators.analytical:VERSION"), runs=False),
    },
    proposals=lazy("pdojo.passes.cpu.proposals:PROPOSALS"),
)
ANY = MachineKind(passes=CPU.passes, evaluators=CPU.evaluators)
"""Machines without a backend: passes and evaluators of CPUs."""
