"""Graphics processors: passes for blocks, threads and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.kinds.cpu.kind import CPU, naive_pass
from pdojo.search.kinds.kind import EvaluatorKind, ExpertPass, OpenPass, Target

if TYPE_CHECKING:
    from pdojo.backends.gpu.backend import GpuBackend


def _greedy() -> ExpertPass:
    from pdojo.search.kinds.gpu.greedy import greedy

    return greedy


def _heuristic() -> ExpertPass:
    from pdojo.search.kinds.gpu.heuristic import heuristic

    return heuristic


def _open_heuristic() -> OpenPass:
    from pdojo.search.kinds.gpu.heuristic import open_heuristic

    return open_heuristic


def _backend(machine: Machine) -> GpuBackend:
    from pdojo.backends.common.backend import backend_of
    from pdojo.backends.gpu.backend import GpuBackend

    backend = backend_of(machine)
    assert isinstance(backend, GpuBackend)
    return backend


def _runtime(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.evaluators.runtime import RuntimeEvaluator

    backend = _backend(machine)
    timer, surroundings = backend.runs(), backend.environment
    return RuntimeEvaluator(
        machine, plain, seed=seed, compilers=backend.compilers(), timer=timer, surroundings=surroundings
    )


def _runtime_version() -> object:
    from pdojo.backends.measure.environment import environment

    return environment()


GPU = Target(
    passes={"naive": naive_pass, "greedy": _greedy, "heuristic": _heuristic},
    evaluators={
        "runtime": EvaluatorKind(_runtime, _runtime_version),
        "analytical": CPU.evaluators["analytical"],
    },
    open_passes={"heuristic": _open_heuristic},
)
