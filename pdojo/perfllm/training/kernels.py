"""Kernels for training an agent, as data for other processes."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation
from pdojo.kernels import Workload
from pdojo.search.environment.reward_model import RewardModel
from pdojo.search.evaluators.named import make_evaluator
from pdojo.transforms.game import Game


@dataclass(frozen=True)
class TrainingKernel:
    """A kernel, and the evaluation of its programs."""

    title: str
    """The name in tables, unique among the kernels of a training."""
    text: str
    """The plain kernel in the notation, its assumptions included."""
    machine: Machine
    evaluator: str
    """The name of the evaluator."""
    workload: Workload | None
    """The workload, which names the kernel in the database; None if the kernel is not the library's."""
    database: str | None
    """The file for costs; None keeps them in the process."""
    seed: int
    """Seed of the inputs that check results."""

    def game(self) -> Game:
        """The plain kernel."""
        return Game(parse_notation(self.text)[0], self.machine)

    def prices(self) -> RewardModel:
        """Prices of its programs. The caller closes them."""
        start = self.game()
        costs = make_evaluator(self.evaluator, self.machine, start.plain, self.seed)
        return RewardModel(start, costs, database=self.database, workload=self.workload)
