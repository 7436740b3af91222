"""Campaigns: searches of many kernels, several at once, each in a thread of its own, with one database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Generic, TypeAlias, TypeVar

from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload
from pdojo.search.database import Database
from pdojo.search.dojo import Dojo
from pdojo.search.driver import search
from pdojo.search.evaluation import Evaluator
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.progress import Budget, Progress, Result
from pdojo.search.progress import Listener as SearchListener
from pdojo.search.strategies import Strategy

PAUSE = 0.2
"""Seconds between what listeners are told."""

T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """What a task is given, for its thread."""

    database: Database | None
    """A connection of its own; None if the campaign has no database."""
    listener: SearchListener
    """Is to be told of the search's progress. Raises KeyboardInterrupt when the campaign is to end."""
    stop: Event
    """Is set when the campaign is to end: what waits for long raises KeyboardInterrupt then."""


@dataclass(frozen=True)
class Task(Generic[T]):
    """A part of a campaign: a search, and what belongs to it."""

    name: str
    """What progress displays call it."""
    run: Callable[[Turn], T]
    """A search that is interrupted returns the best so far, or raises KeyboardInterrupt if there is none yet."""


class Stage(Enum):
    """How far a task is."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    """With a result, of a search that was interrupted too."""
    INTERRUPTED = "interrupted"
    """Before there was a result."""
    FAILED = "failed"


@dataclass(frozen=True)
class Standing(Generic[T]):
    """How a task of a campaign stands."""

    task: Task[T]
    stage: Stage = Stage.WAITING
    progress: Progress | None = None
    """The latest; None before the first evaluation."""
    result: T | None = None
    error: PdojoError | None = None
    """Why it failed."""


Listener: TypeAlias = Callable[[Sequence[Standing[T]]], None]
"""Is told how all tasks stand, in their order, by the thread that called `campaign`."""


def search_task(
    name: str,
    start: Callable[[], Dojo],
    evaluator: Callable[[Dojo, Event], Evaluator],
    strategy: Strategy,
    neighbourhood: Neighbourhood,
    budget: Budget,
    seed: int,
    workload: Workload | None = None,
) -> Task[Result]:
    """A search as a task; its state to start from and its evaluator are made when its turn comes.

    The evaluator is told what sets an end to waiting, and closed in the end.
    """

    def run(turn: Turn) -> Result:
        dojo = start()
        costs = evaluator(dojo, turn.stop)
        try:
            return search(
                dojo,
                costs,
                strategy,
                neighbourhood,
                budget,
                seed,
                database=turn.database,
                listener=turn.listener,
                workload=workload,
            )
        finally:
            costs.close()

    return Task(name, run)


def campaign(
    tasks: Sequence[Task[T]], at_once: int, database: Path | None = None, listener: Listener[T] | None = None
) -> list[Standing[T]]:
    """Run tasks, at most `at_once` at the same time; how they ended, in order.

    One that fails does not end the others. Ctrl-C ends all with the best so far; once more, and nothing is waited for.
    With a database, a campaign that was interrupted or killed goes on where each of its searches was.
    """
    if at_once < 1:
        raise UsageError(f"a campaign runs at least one search at once, not {at_once}")
    return _Campaign(tasks, database).run(at_once, listener)


class _Campaign(Generic[T]):
    """One call of `campaign`."""

    def __init__(self, tasks: Sequence[Task[T]], database: Path | None) -> None:
        self._database = database
        self._changed = Condition()
        self._standings = [Standing(task) for task in tasks]
        self._left = list(range(len(tasks)))
        self._working = 0
        self._stop = Event()
        self._bug: BaseException | None = None

    def run(self, at_once: int, listener: Listener[T] | None) -> list[Standing[T]]:
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
        """Until all threads have ended."""
        told: list[Standing[T]] | None = None
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
        """A thread: one task after the other."""
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
            self._note(number, stage=Stage.RUNNING, progress=progress)
            if self._stop.is_set():
                # In the search's thread, and between two evaluations: what was measured is stored.
                raise KeyboardInterrupt

        self._note(number, stage=Stage.RUNNING)
        try:
            # A connection belongs to one thread.
            with nullcontext() if self._database is None else Database(self._database) as database:
                result = task.run(Turn(database, listen, self._stop))
        except KeyboardInterrupt:
            self._note(number, stage=Stage.INTERRUPTED)
        except PdojoError as error:
            self._note(number, stage=Stage.FAILED, error=error)
        else:
            self._note(number, stage=Stage.ENDED, result=result)

    def _note(self, number: int, **changes: object) -> None:
        with self._changed:
            self._standings[number] = replace(self._standings[number], **changes)  # pyright: ignore[reportArgumentType]
