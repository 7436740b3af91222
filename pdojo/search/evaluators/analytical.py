"""Costs by the analytical model: no program runs, and costs are deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.build import nest_on
from pdojo.passes.cpu.cost_model import estimate
from pdojo.passes.gpu.cost_model import estimate_gpu
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener

VERSION = 2
"""Version of the model: costs of other versions are not comparable."""


class Analytical:
    """Cycles estimated by `pdojo.passes.cpu.cost_model` for CPUs, and by `pdojo.passes.gpu.cost_model` for
    GPUs.

    Programs for other machines fail.
    """

    name = "analytical"
    unit = "cycles"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def settings(self) -> JSON:
        """The machine and the version of the model."""
        machine = machine_facts(self._machine)
        return {"evaluator": self.name, "version": VERSION, "machine": machine}

    def expect(self, candidate: Candidate) -> None:
        """Do nothing: an estimate is fast."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> list[Evaluation]:
        """The estimates, in order."""
        return [self._evaluate(candidate) for candidate in candidates]

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        start = perf_counter()
        nest = candidate.nest or nest_on(parse_notation(candidate.program.text)[0], self._machine)
        cost = (estimate_gpu if self._machine.gpu.memory_bandwidth else estimate)(nest, self._machine)
        seconds = {"run": perf_counter() - start}
        if cost is None:
            return Evaluation.failed("NoModel", {"message": "the model knows no mappings of this program"}, seconds)
        return Evaluation(cost.cycles, detail={"kind": "model", **asdict(cost)}, seconds=seconds)

    def check(self, candidate: Candidate) -> Evaluation:
        """The same estimate: no program ran whose results could be wrong."""
        return self._evaluate(candidate)

    def close(self) -> None:
        """Do nothing: no process was started."""
