"""The moves of each program: from the database, by tuning here, or by the expert pass alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.errors import DatabaseError
from pdojo.library.entries import PlannedEntry
from pdojo.library.levels import Level
from pdojo.library.manifest import ALIGNED
from pdojo.library.spec import TuningSpec
from pdojo.search.database import Database, Problem, SearchMemory
from pdojo.search.database.decisions import DecisionMemory, find_decision, keep_decision
from pdojo.search.evaluators.named import evaluator_for, make_evaluator
from pdojo.search.strategies import strategy
from pdojo.search.tuning.run import SearchConfig, usual_neighbourhood
from pdojo.search.tuning.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.tuning.task import TuningTask
from pdojo.search.tuning.workflow import TuneListener, tune_task
from pdojo.transforms.trace import Trace

PASS = "heuristic"
"""The expert pass of libraries."""
How = Literal["plain", "pass", "database", "tuned", "adapted"]
"""Where moves come from; `adapted` are those of the aligned variant as far as they are legal."""


@dataclass(frozen=True)
class Choice:
    """The program of a variant."""

    tuning: ScheduledKernel
    how: How

    @property
    def trace(self) -> Trace:
        """The moves from the plain kernel."""
        return self.tuning.game.trace


class Chooser:
    """Chooses the programs of a library."""

    def __init__(self, plan: TuningSpec, database: Database, listener: TuneListener | None = None) -> None:
        self._plan = plan
        self._database = database
        self._listener = listener or TuneListener()

    def choose(self, entry: PlannedEntry, level: Level, align: int, aligned: Trace | None = None) -> Choice:
        """The program of an entry for a level and an alignment; `aligned` are the moves of the aligned variant.

        Raises MeasurementError or InvalidKernel if tuning fails, and the errors of the pass.
        """
        plain = with_alignment(entry.kernel, align)
        machine = tuning_machine(entry, level)
        if not entry.is_tuned:
            return Choice(make_moves(plain, machine, None), "plain")
        if not level.is_measured:
            return Choice(make_moves(plain, machine, PASS), "pass")
        if aligned is not None:
            made = make_moves(plain, machine, None)
            made.game.become(step.resolved for step in aligned.steps)
            return Choice(made, "adapted")
        known = self.known(entry, level)
        if known is not None:
            return Choice(make_moves(plain, machine, None, known), "database")
        self._tune(entry, level)
        found = self.known(entry, level)
        assert found is not None
        return Choice(make_moves(plain, machine, None, found), "tuned")

    def known(self, entry: PlannedEntry, level: Level) -> Trace | None:
        """The moves that the database has for the aligned variant on this computer; None if it must be tuned.

        These are those of the fastest program that a search found, those of an earlier build, or those that a race
        decided, in this order.
        """
        task = self.task(entry, level)
        memory = self._memory(task)
        mark = find_decision(memory, _kind(task))
        if self._plan.search is not None and (mark is None or mark.get("plan") != self._plan.text):
            return None
        best = memory.best()
        if best is not None:
            return best.trace
        if mark is not None:
            return _trace(mark.get("trace"))
        decided = DecisionMemory(memory, task.start("plain").program.nest).find()
        if decided is not None and decided.is_own:
            return task.remade(decided.answers).game.trace
        return None

    def task(self, entry: PlannedEntry, level: Level) -> TuningTask:
        """The task of tuning the aligned variant of an entry."""
        plain = with_alignment(entry.kernel, ALIGNED)
        begun = make_moves(plain, _shared(tuning_machine(entry, level)), None)
        return TuningTask(entry.name, entry.workload, begun, entry.source, PASS)

    def keep(self, task: TuningTask, trace: Trace) -> None:
        """Store the moves of a tuned program, so that the next build takes the same ones."""
        keep_decision(self._memory(task), _kind(task), {"plan": self._plan.text, "trace": trace.dump()}, 1.0)

    def _tune(self, entry: PlannedEntry, level: Level) -> None:
        task, plan = self.task(entry, level), self._plan
        config = None
        if plan.search is not None:
            near = usual_neighbourhood(task.machine)
            chosen = evaluator_for(task.machine, None)
            config = SearchConfig(plan.search, near, plan.budget, chosen, "pass", plan.seed)
        tuned = tune_task(
            task, config, self._listener, database=self._database, seed=plan.seed, is_measured=True, with_plain=False
        )
        if tuned.is_interrupted:
            raise KeyboardInterrupt
        self.keep(task, tuned.trace)

    def _memory(self, task: TuningTask) -> SearchMemory:
        machine = task.machine
        with closing(make_evaluator(evaluator_for(machine, None), machine, task.plain, 0)) as evaluator:
            return self._database.memory(Problem.of(task.start("plain"), task.workload), evaluator)


def check_search(plan: TuningSpec) -> None:
    """Raise UsageError if a package that the search needs is missing."""
    if plan.search is not None:
        strategy(plan.search)


def tuning_machine(entry: PlannedEntry, level: Level) -> Machine:
    """The machine that a program is chosen for; chunks and rows are computed by one thread each."""
    return level.tuned if entry.dispatch == "exact" else replace(level.tuned, threads=1)


def _shared(machine: Machine) -> Machine:
    """The machine by which the database knows a level: this computer's own, if the level is its own."""
    own = host()
    named = replace(machine, name=own.name, features=own.features, description=own.description)
    return named if named == replace(own, threads=machine.threads) else machine


def _kind(task: TuningTask) -> str:
    """The kind of decision that holds the moves of a build."""
    return f"library {task.start('plain').fingerprint}"


def _trace(stored: object) -> Trace:
    if not isinstance(stored, str):
        raise DatabaseError("the database holds no moves of a library where they should be")
    return Trace.parse(stored, "a trace in the database")
