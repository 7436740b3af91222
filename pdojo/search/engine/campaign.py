"""Campaigns: searches of many kernels, several at once, each in its own thread, with one database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, Generic, TypeAlias, TypeVar

from pdojo.budget import Budget
from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.progress import Listener as SearchListener
from pdojo.search.contract.progress import Progress, SearchResult
from pdojo.search.contract.strategy import Strategy
from pdojo.search.database import Database
from pdojo.search.engine.search import search
from pdojo.transforms.game import Game

PAUSE = 0.2
"""Seconds between two calls of a listener."""

T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """Arguments of a task's `run`."""

    database: Database | None
    """A connection for this thread; None if the campaign has no database."""
    listener: SearchListener
    """Receives the search's progress. Raises KeyboardInterrupt when the campaign is to end."""
    stop: Event
    """Set when the campaign is to end: long waits raise KeyboardInterrupt then."""


@dataclass(frozen=True)
class Task(Generic[T]):
    """One search of a campaign."""

    name: str
    """The name in progress displays."""
    run: Callable[[Turn], T]
    """The search. If interrupted, it returns the best so far, or raises KeyboardInterrupt if there is none yet."""


class TaskStage(Enum):
    """Stages of a task."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    """The task has a result; its search may have been interrupted."""
    INTERRUPTED = "interrupted"
    """The task ended before it had a result."""
    FAILED = "failed"


@dataclass(frozen=True)
class TaskStanding(Generic[T]):
    """The state of a task."""

    task: Task[T]
    stage: TaskStage = TaskStage.WAITING
    progress: Progress | None = None
    """The latest progress; None before the first evaluation."""
    result: T | None = None
    error: PdojoError | None = None
    """The error that ended the task."""


Listener: TypeAlias = Callable[[Sequence[TaskStanding[T]]], None]
"""Receives the states of all tasks, in their order, in the thread that called `campaign`."""


def search_task(
    name: str,
    start: Callable[[], Game],
    evaluator: Callable[[Game, Event], Evaluator],
    strategy: Strategy,
    neighbourhood: Neighbourhood,
    budget: Budget,
    seed: int,
    workload: Workload | None = None,
    proposers: int = 1,
) -> Task[SearchResult]:
    """A search as a task; the campaign calls `start` and `evaluator` when it begins the task.

    `evaluator` gets the initial state and the event that ends its waits. The task closes the evaluator after the
    search.
    """

    def run(turn: Turn) -> SearchResult:
        game = start()
        costs = evaluator(game, turn.stop)
        try:
            return search(
                game,
                costs,
                strategy,
                neighbourhood,
                budget,
                seed,
                database=turn.database,
                listener=turn.listener,
                workload=workload,
                proposers=proposers,
            )
        finally:
            costs.close()

    return Task(name, run)


def campaign(
    tasks: Sequence[Task[T]], at_once: int, database: Path | None = None, listener: Listener[T] | None = None
) -> list[TaskStanding[T]]:
    """Run tasks, at most `at_once` at the same time; returns their final states in order.

    A failed task does not end the others. Ctrl-C ends all with the best so far; a second Ctrl-C does not wait for them.
    With a database, an interrupted or killed campaign resumes each of its searches.
    """
    if at_once < 1:
        raise UsageError(f"a campaign runs at least one search at once, not {at_once}")
    return _Campaign(tasks, database).run(at_once, listener)


class _Campaign(Generic[T]):
    """The state of one call of `campaign`."""

    def __init__(self, tasks: Sequence[Task[T]], database: Path | None) -> None:
        self._database = database
        self._changed = Condition()
        self._standings = [TaskStanding(task) for task in tasks]
        self._left = list(range(len(tasks)))
        self._working = 0
        self._stop = Event()
        self._bug: BaseException | None = None

    def run(self, at_once: int, listener: Listener[T] | None) -> list[TaskStanding[T]]:
        self._working = min(at_once, len(self._standings))
        for _ in range(self._working):
            Thread(target=self._work, daemon=True).start()
        try:
            self._watch(listener)
        except KeyboardInterrupt:
            self._stop.set()
            self._watch(listener)
        except BaseException:
            # The listener failed.
            self._stop.set()
            raise
        if self._bug is not None:
            raise self._bug
        return list(self._standings)

    def _watch(self, listener: Listener[T] | None) -> None:
        """Report to the listener until all threads have ended."""
        told: list[TaskStanding[T]] | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._working, PAUSE)
                is_over, standings = not self._working, list(self._standings)
            if listener is not None and standings != told:
                listener(standings)
                told = standings
            if is_over:
                return

    def _work(self) -> None:
        """The body of a thread: run one task after the other."""
        try:
            while (number := self._next()) is not None:
                self._run(number)
        except BaseException as error:  # noqa: BLE001  # a bug: raised by the thread that waits
            self._bug = error
            self._stop.set()
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def _next(self) -> int | None:
        with self._changed:
            return None if self._stop.is_set() or not self._left else self._left.pop(0)

    def _run(self, number: int) -> None:
        task = self._standings[number].task

        def listen(progress: Progress) -> None:
            self._note(number, stage=TaskStage.RUNNING, progress=progress)
            if self._stop.is_set():
                # This runs in the search's thread between two evaluations, so every measurement is stored.
                raise KeyboardInterrupt

        self._note(number, stage=TaskStage.RUNNING)
        try:
            # A connection belongs to one thread.
            with nullcontext() if self._database is None else Database(self._database) as database:
                result = task.run(Turn(database, listen, self._stop))
        except KeyboardInterrupt:
            self._note(number, stage=TaskStage.INTERRUPTED)
        except PdojoError as error:
            self._note(number, stage=TaskStage.FAILED, error=error)
        else:
            self._note(number, stage=TaskStage.ENDED, result=result)

    def _note(self, number: int, **changes: Any) -> None:
        with self._changed:
            self._standings[number] = replace(self._standings[number], **changes)
