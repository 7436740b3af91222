"""Tuning for Acme's accumulator machine: fuse and reuse; costs are counted."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.passes.cpu.kind import naive_pass
from pdojo.passes.kind import EvaluatorKind, MachineKind
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Evaluator, Listener
from pdojo_acme.backend import cycles


class Counted:
    """Statements of a program."""

    name = "acme"
    unit = "cycles"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def settings(self) -> JSON:
        """The machine."""
        return {"evaluator": self.name, "machine": {"name": self._machine.name}}

    def expect(self, candidate: Candidate) -> None:
        """Nothing takes long."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> list[Evaluation]:
        """The counts, in order."""
        return [self.check(candidate) for candidate in candidates]

    def check(self, candidate: Candidate) -> Evaluation:
        """The count."""
        try:
            cost = cycles(nest_of(parse_notation(candidate.program.text)[0]))
        except LoweringError as error:
            return Evaluation.failed("CompileError", {"message": str(error)})
        return Evaluation(float(cost), detail={"kind": "count"})

    def close(self) -> None:
        """Nothing was started."""


def _counted(machine: Machine, plain: KernelOp, seed: int) -> Evaluator:
    return Counted(machine)


ACME = MachineKind(passes={"naive": naive_pass}, evaluators={"acme": EvaluatorKind(_counted, lambda: 1)})
