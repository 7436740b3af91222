"""Snitch cores: passes for streams and hardware loops; programs are simulated."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import lazy
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.kinds.cpu.kind import naive_pass
from pdojo.search.kinds.kind import EvaluatorKind, MachineKind


def _cycles(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    from pdojo.search.kinds.snitch.cycles import Cycles

    return Cycles(machine, plain, seed=seed)


def _version() -> object:
    from pdojo.backends.snitch.backend import version

    return version()


SNITCH = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.search.kinds.snitch.passes:greedy"),
        "heuristic": lazy("pdojo.search.kinds.snitch.passes:heuristic"),
    },
    evaluators={"cycles": EvaluatorKind(_cycles, _version)},
)
