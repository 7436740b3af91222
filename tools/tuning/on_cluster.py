"""Tuning on a Ray cluster: searches of all kernels run at once, and workers time the programs (docs/cluster.md)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Self

from pdojo_tools.tuning.choices import plan_of
from pdojo_tools.tuning.console_reporter import ConsoleReporter, goes_on_text
from pdojo_tools.tuning.limits import duration, times_text
from pdojo_tools.tuning.live import QUIET, REDRAW
from pdojo_tools.tuning.session import TuneSession
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.backends.registry import backend_of
from pdojo.errors import MeasurementError, UsageError
from pdojo.files import default_database
from pdojo.passes.task import TuningTask
from pdojo.search.contract.evaluation import Candidate, reason
from pdojo.search.contract.racing import STAGES, TimingRequest
from pdojo.search.database.database import Database
from pdojo.search.engine.campaign import Task, TaskStage, TaskStanding, Turn, campaign
from pdojo.search.engine.costs import LAST
from pdojo.search.evaluators.cluster import Cluster, OnCluster
from pdojo.search.evaluators.cluster.evaluator import WORKER_LOST
from pdojo.search.tuning.result import TuneResult
from pdojo.search.tuning.run import SearchOutcome, SearchRun
from pdojo.search.tuning.timing import Timed
from pdojo.search.tuning.workflow import require_timed, settle, verify_found
from pdojo.transforms.game import Game


@dataclass(frozen=True)
class Catch:
    """The result of a search, and a race of the best program with the pass's on one worker."""

    found: SearchOutcome
    timed: Sequence[Timed]
    """Empty if the race was interrupted or failed, or no program ran."""
    is_cut_short: bool = False
    """True if Ctrl-C came after the search."""

    @property
    def is_interrupted(self) -> bool:
        """True if Ctrl-C ended the search or the race."""
        return self.is_cut_short or self.found.is_interrupted


def tune_on_cluster(session: TuneSession, tasks: Sequence[TuningTask], cluster: Cluster) -> None:
    """Search all kernels at once; then verify, show and store the results one after the other."""
    given, console = session.given, session.console
    path = default_database() if given.database is None else Path(given.database)
    # A bad database shows before the searches begin.
    Database(given.database).close()
    for note in cluster.notes:
        console.print(note, style="yellow", markup=False, soft_wrap=True)
    console.print(f"{cluster.size} worker{'s' * (cluster.size > 1)} at {given.ray}", highlight=False)
    searches = [_task(console, task, given, cluster, session.rivals(number, task)) for number, task in enumerate(tasks)]
    with Board(console) as board:
        standings = campaign(searches, cluster.size, path, board)
    session.each(tasks, lambda number, task: _conclude(session, number, task, standings[number]))
    if any(s.stage is TaskStage.INTERRUPTED or (s.result and s.result.is_interrupted) for s in standings):
        session.say_how_to_go_on()
        raise KeyboardInterrupt


def _task(
    console: Console, task: TuningTask, given: argparse.Namespace, cluster: Cluster, rivals: Sequence[Game]
) -> Task[Catch]:
    plan = plan_of(given, task.machine)
    assert plan is not None, "--ray belongs to a search"

    def run(turn: Turn) -> Catch:
        assert turn.database is not None
        evaluator = OnCluster(cluster, task.plain, seed=plan.seed or 0, stop=turn.stop)
        try:
            search = SearchRun.of(task, plan, turn.database, evaluator)
            if search.known:
                console.print(f"{task.title}: {goes_on_text(search)}", markup=False, highlight=False, soft_wrap=True)
            found = search.run(search.baselines(), turn.listener, rivals)
            if found.is_interrupted:
                return Catch(found, ())
            try:
                return Catch(found, _timed(task, found, evaluator))
            except MeasurementError as error:
                # The search's result counts even without the race.
                console.print(f"{task.title}: {error}", markup=False, highlight=False, soft_wrap=True)
                return Catch(found, ())
            except KeyboardInterrupt:
                return Catch(found, (), is_cut_short=True)
        finally:
            evaluator.close()

    return Task(task.title, run)


def _timed(task: TuningTask, found: SearchOutcome, evaluator: OnCluster) -> Sequence[Timed]:
    """Race the best program with the pass's on fresh inputs. Raises MeasurementError."""
    if found.result.known is None:
        return ()
    best, passed = found.result.known.game, task.start("pass")
    rival = None if passed.fingerprint == best.fingerprint else Candidate.of(passed)
    (race,) = evaluator.heat(TimingRequest([Candidate.of(best)], rival, STAGES[-1], LAST + 1))
    evaluations = [each for each in (race.evaluation, race.other) if each is not None]
    lost = next((each for each in evaluations if each.failure == WORKER_LOST), None)
    if lost is not None:
        raise MeasurementError(f"the pass's program and the best cannot be timed beside each other: {reason(lost)}")
    outcomes = [outcome_from_json(each.detail) for each in evaluations]
    # If the pass's program is the best, both have its times.
    return Timed("pass", outcomes[-1], len(passed.trace.steps)), Timed("best", outcomes[0], len(best.trace.steps))


def _conclude(session: TuneSession, number: int, task: TuningTask, standing: TaskStanding[Catch]) -> None:
    if standing.error is not None:
        raise standing.error
    if standing.result is None:
        session.console.print("interrupted before there was a result")
        return
    found, timed = standing.result.found, list(standing.result.timed)
    narrator = ConsoleReporter(session.console, task)
    narrator.found(found)
    tuning, decision = verify_found(task, found, narrator)
    if timed:
        require_timed(timed, narrator)
        tuning, decision = settle(task, tuning, decision, found, timed, narrator)
    session.conclude(number, TuneResult(task, tuning, decision, timed, found))


class Board:
    """A listener of campaigns: a table that is redrawn, or plain lines without a terminal."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._shown = -inf
        self._said: dict[str, tuple[TaskStage, float]] = {}
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, standings: Sequence[TaskStanding[Any]]) -> None:
        """Show the standings, unless the last display is too recent; always show the end of a search."""
        now = self._clock()
        is_due = now - self._shown >= (REDRAW if self._live is not None else QUIET)
        if self._live is not None:
            if is_due:
                self._shown = now
                self._live.update(self.picture(standings), refresh=True)
            return
        for standing in standings:
            stage, best = self._said.get(standing.task.name, (TaskStage.WAITING, inf))
            reached = standing.progress.best if standing.progress is not None else inf
            if stage is not standing.stage or (is_due and reached < best):
                self._said[standing.task.name] = standing.stage, reached
                self._shown = now
                line = f"{standing.task.name}: {', '.join(cell for cell in _cells(standing) if cell)}"
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def picture(self, standings: Sequence[TaskStanding[Any]]) -> Table:
        """A table with a row for each kernel."""
        table = Table("", "", "best", "evaluations", "pace", "time", "failed", "now")
        for standing in standings:
            table.add_row(escape(standing.task.name), *map(escape, _cells(standing)))
        return table


def _cells(standing: TaskStanding[Any]) -> list[str]:
    """Stage, best, evaluations, pace, time, failures, and current activity; '' if unknown."""
    progress = standing.progress
    if progress is None:
        return [standing.stage.value, *[""] * 6]
    failed = sum(progress.failures.values())
    return [
        standing.stage.value,
        f"{times_text(progress.root, progress.best)} times its start" if progress.is_measured else "",
        f"{progress.evaluations} evaluations",
        f"{progress.rate:.1f} a second",
        duration(progress.seconds),
        f"{failed} failed" if failed else "",
        progress.doing if standing.stage is TaskStage.RUNNING else "",
    ]


def check_one_machine(tasks: Sequence[TuningTask]) -> None:
    """Raise UsageError if kernels name different or simulated machines: a cluster's machines are of one kind."""
    names = list(dict.fromkeys(task.machine.name for task in tasks))
    if any(backend_of(task.machine).is_simulated for task in tasks):
        raise UsageError("--ray is for programs that are timed; those for Snitch cores are simulated: leave it out")
    if len(names) > 1:
        raise UsageError(f"the machines of a cluster are of one kind, and the kernels are for {' and '.join(names)}")
