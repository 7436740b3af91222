"""CPUs: passes for vectors, caches and threads; programs are timed, or estimated by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.kinds.kind import EvaluatorKind, ExpertPass, OpenPass, Target

if TYPE_CHECKING:
    from pdojo.search.neighbourhoods.proposals import Proposals


def naive_pass() -> ExpertPass:
    """The naive pass, which fits any machine."""
    from pdojo.search.kinds.common.naive import naive

    return naive


def _greedy() -> ExpertPass:
    from pdojo.search.kinds.common.greedy import greedy

    return greedy


def _heuristic() -> ExpertPass:
    from pdojo.search.kinds.cpu.heuristic import heuristic

    return heuristic


def _open_heuristic() -> OpenPass:
    from pdojo.search.kinds.cpu.heuristic import open_heuristic

    return open_heuristic


def _proposals() -> Proposals:
    from pdojo.search.kinds.cpu.proposals import PROPOSALS

    return PROPOSALS


def _runtime(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.runtime import RuntimeEvaluator

    return RuntimeEvaluator(machine, plain, seed=seed)


def _runtime_version() -> object:
    from pdojo.backends.measure.environment import environment

    return environment()


def _analytical(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.analytical import Analytical

    return Analytical(machine)


def _analytical_version() -> object:
    from pdojo.search.evaluators.analytical import VERSION

    return VERSION


CPU = Target(
    passes={"naive": naive_pass, "greedy": _greedy, "heuristic": _heuristic},
    evaluators={
        "runtime": EvaluatorKind(_runtime, _runtime_version),
        "analytical": EvaluatorKind(_analytical, _analytical_version, runs=False),
    },
    proposals=_proposals,
    open_passes={"heuristic": _open_heuristic},
)
ANY = Target(passes=CPU.passes, evaluators=CPU.evaluators)
"""Machines without a backend: passes and evaluators of CPUs."""
