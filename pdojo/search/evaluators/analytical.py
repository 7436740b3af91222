"""Costs by the analytical model: no program runs, and costs are deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_on
from pdojo.passes.cost_model import MODEL
from pdojo.passes.kind import CostModel
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener


class Analytical:
    """Cycles estimated by a cost model; programs outside of the model fail."""

    name = "analytical"
    unit = "cycles"

    def __init__(self, machine: Machine, model: CostModel = MODEL) -> None:
        self._machine = machine
        self._model = model

    @property
    def settings(self) -> JSON:
        """The machine and the version of the model."""
        machine = machine_facts(self._machine)
        return {"evaluator": self.name, "version": self._model.version, "machine": machine}

    def expect(self, candidate: Candidate) -> None:
        """Do nothing: an estimate is fast."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> list[Evaluation]:
        """The estimates, in order."""
        return [self._evaluate(candidate) for candidate in candidates]

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        start = perf_counter()
        nest = candidate.nest or nest_on(parse_notation(candidate.program.text)[0], self._machine)
        cost = self._model.estimate(nest, self._machine)
        seconds = {"run": perf_counter() - start}
        if cost is None:
            return Evaluation.failed("NoModel", {"message": "the model knows no mappings of this program"}, seconds)
        return Evaluation(cost.cycles, detail={"kind": "model", **asdict(cost)}, seconds=seconds)

    def check(self, candidate: Candidate) -> Evaluation:
        """The same estimate: no program ran whose results could be wrong."""
        return self._evaluate(candidate)

    def close(self) -> None:
        """Do nothing: no process was started."""
