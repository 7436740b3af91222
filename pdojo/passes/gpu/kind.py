"""Graphics processors: passes for blocks, threads and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import lazy
from pdojo.passes.cpu.kind import CPU, naive_pass, runtime_version
from pdojo.passes.kind import EvaluatorKind, MachineKind
from pdojo.search.contract.evaluation import Evaluator

if TYPE_CHECKING:
    from pdojo.backends.gpu.backend import GpuBackend


def _backend(machine: Machine) -> GpuBackend:
    from pdojo.backends.gpu.backend import GpuBackend
    from pdojo.backends.registry import backend_of

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


GPU = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.gpu.greedy:greedy"),
        "heuristic": lazy("pdojo.passes.gpu.heuristic:heuristic"),
    },
    evaluators={
        "runtime": EvaluatorKind(_runtime, runtime_version),
        "analytical": CPU.evaluators["analytical"],
    },
)
