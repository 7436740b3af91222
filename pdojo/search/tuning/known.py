"""The best known programs of kernels, which compilers of models ask for."""

from __future__ import annotations

from contextlib import closing

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.passes.scheduled_kernel import PASS, Scheduler, make_moves
from pdojo.search.database import Database, Problem
from pdojo.search.database.decisions import DecisionMemory
from pdojo.search.evaluators.named import evaluator_for, make_evaluator


def best_known(database: Database) -> Scheduler:
    """The best program that a database has for a plain kernel: a search's, or the decided variant of the pass."""

    def found(plain: KernelOp, machine: Machine) -> KernelOp | None:
        game = make_moves(plain, machine, None).game
        with closing(make_evaluator(evaluator_for(machine, None), machine, game.plain, 0)) as evaluator:
            memory = database.memory(Problem.of(game), evaluator)
        best = memory.best()
        if best is not None:
            return make_moves(plain, machine, None, best.trace).after
        decided = DecisionMemory(memory, game.program.nest).find()
        return None if decided is None else make_moves(plain, machine, PASS, None, decided.answers).after

    return found
