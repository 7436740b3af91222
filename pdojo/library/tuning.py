"""Programs of the level that this computer measures: from the database, or by tuning."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host
from pdojo.errors import DatabaseError
from pdojo.library.entries import PlannedEntry
from pdojo.library.levels import Level
from pdojo.library.manifest import ALIGNED
from pdojo.library.programs import BuildListener
from pdojo.library.spec import TuningSpec
from pdojo.passes.scheduled_kernel import PASS, make_moves
from pdojo.passes.task import TuningTask
from pdojo.search.contract.progress import Progress
from pdojo.search.database import Database, Problem, SearchMemory
from pdojo.search.database.decisions import DecisionMemory, find_decision, keep_decision
from pdojo.search.evaluators.named import evaluator_for, make_evaluator
from pdojo.search.tuning.run import Baselines, SearchConfig, SearchRun, usual_neighbourhood
from pdojo.search.tuning.workflow import TuneListener, tune_task
from pdojo.transforms.trace import Trace

OFTEN = 10.0
"""Seconds between two details of a search."""


class DatabaseTuner:
    """Takes moves from a database, and tunes programs for which it has none."""

    def __init__(self, plan: TuningSpec, database: Database, listener: BuildListener | None = None) -> None:
        self._plan = plan
        self._database = database
        self._listener = _Details(listener or BuildListener())

    def known(self, entry: PlannedEntry, level: Level) -> Trace | None:
        """The moves that the database has for the aligned variant on this computer; None if it must be tuned.

        In this order: the moves of the fastest program that a search found, of an earlier build, or of the winner of a
        race.
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
        begun = make_moves(plain, _shared(level.tuned), None)
        return TuningTask(entry.name, entry.workload, begun, entry.source, PASS)

    def keep(self, task: TuningTask, trace: Trace) -> None:
        """Store the moves of a tuned program, so that the next build takes the same ones."""
        keep_decision(self._memory(task), _kind(task), {"plan": self._plan.text, "trace": trace.dump()}, 1.0)

    def tune(self, entry: PlannedEntry, level: Level) -> Trace:
        """The moves after tuning, stored in the database."""
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
        found = self.known(entry, level)
        assert found is not None
        return found

    def _memory(self, task: TuningTask) -> SearchMemory:
        machine = task.machine
        with closing(make_evaluator(evaluator_for(machine, None), machine, task.plain, 0)) as evaluator:
            return self._database.memory(Problem.of(task.start("plain"), task.workload), evaluator)


class _Details(TuneListener):
    """Shows steps of tuning as details of a build's step."""

    def __init__(self, listener: BuildListener) -> None:
        self._listener = listener

    @contextmanager
    def doing(self, what: str) -> Generator[Callable[[str], None]]:
        self._listener.detail(what)
        yield self._listener.detail

    @contextmanager
    def searching(self, search: SearchRun, baselines: Baselines) -> Generator[Callable[[Progress], None]]:
        """Show the progress of a search from time to time."""
        last = time.monotonic()

        def tell(progress: Progress) -> None:
            nonlocal last
            if time.monotonic() - last > OFTEN:
                last = time.monotonic()
                count = progress.evaluations
                self._listener.detail(f"{count} evaluation{'s' * (count != 1)}, {progress.doing}")

        yield tell


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
