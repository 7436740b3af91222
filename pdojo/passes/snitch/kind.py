"""Snitch cores: passes for streams and hardware loops; programs are simulated."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import lazy
from pdojo.passes.cpu.kind import naive_pass
from pdojo.passes.kind import EvaluatorKind, MachineKind
from pdojo.search.contract.evaluation import Evaluator


def _cycles(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.passes.snitch.cycles import Cycles

    return Cycles(machine, plain, seed=seed)


def _version() -> object:
    from pdojo.backends.snitch.backend import version

    return version()


SNITCH = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.snitch.passes:greedy"),
        "heuristic": lazy("pdojo.passes.snitch.passes:heuristic"),
    },
    evaluators={"cycles": EvaluatorKind(_cycles, _version)},
)
