"""Tasks in processes, several at once, each on its own processor; a task that is timed runs alone, on all."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from statistics import median
from typing import Any, TypeAlias

from benchmarks.origin import JSON
from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.backends.common.processes import end_with_parent
from pdojo.errors import PdojoError

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
EVERY = 1.0
"""Seconds between two reports of a process."""
Work: TypeAlias = Callable[[Callable[[str], None]], JSON]
"""Work of a process, which tells its activity; it can be pickled."""


@dataclass(frozen=True)
class Task:
    """Work for a process."""

    title: str
    """The name in messages."""
    work: Work
    kind: tuple[str, str]
    """Tasks of one kind take similar times; so do, less so, tasks with the same first or second word."""
    is_timed: bool = False
    """True if it must run alone."""


@dataclass(frozen=True)
class _Running:
    task: Task
    process: SpawnProcess
    processor: int | None
    began: float


class Processes:
    """Runs tasks in up to `count` processes; none begins that would probably end after `deadline` (`time.monotonic`).

    A task whose process dies begins again once. After an exception, such as Ctrl-C, no process remains.
    """

    def __init__(self, count: int, deadline: float | None = None) -> None:
        self._count = count
        self._deadline = deadline
        self._free = sorted(os.sched_getaffinity(0))[:count]
        self._running: dict[Connection, _Running] = {}
        self._waiting = deque[Task]()
        self._died: set[str] = set()
        """Titles of tasks whose process died once."""
        self.seconds: list[tuple[tuple[str, str], float]] = []
        """Kinds and seconds of finished tasks."""
        self.is_cut = False
        """True if there was too little time for all tasks."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Task, JSON, float], None],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run all tasks, in order. `ended` receives the result of each, or its failure as `error`, and its seconds."""
        self._waiting.extend(tasks)
        try:
            while True:
                self._start()
                if not self._running:
                    return
                for ready in connection.wait([*self._running]):
                    assert isinstance(ready, Connection)
                    self._receive(ready, ended, tell)
        finally:
            for each in self._running.values():
                _kill(each.process)

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._count:
            task = self._waiting[0]
            if self._running and (task.is_timed or any(each.task.is_timed for each in self._running.values())):
                return
            if self._deadline is not None and time.monotonic() + expected(task.kind, self.seconds) > self._deadline:
                self.is_cut = True
                self._waiting.clear()
                return
            self._waiting.popleft()
            processor = None if task.is_timed else self._free.pop(0)
            context: Any = get_context("spawn")
            receive, send = context.Pipe(duplex=False)
            process: SpawnProcess = context.Process(target=_work, args=(task.work, send))
            with _bound(processor):
                process.start()
            send.close()
            self._running[receive] = _Running(task, process, processor, time.monotonic())

    def _receive(
        self, ready: Connection, ended: Callable[[Task, JSON, float], None], tell: Callable[[str], None]
    ) -> None:
        running = self._running[ready]
        try:
            message = ready.recv()
        except EOFError:
            running.process.join()
            message = None
        if isinstance(message, str):
            tell(f"{running.task.title}: {message}")
            return
        del self._running[ready]
        ready.close()
        _kill(running.process)
        if running.processor is not None:
            self._free.append(running.processor)
        if message is None:
            why = f"its process died ({_why(running.process.exitcode)})"
            if running.task.title not in self._died:
                self._died.add(running.task.title)
                self._waiting.appendleft(running.task)
                tell(f"{running.task.title}: {why}; it begins again")
                return
            message = {"error": why}
        seconds = time.monotonic() - running.began
        if "error" not in message:
            self.seconds.append((running.task.kind, seconds))
        ended(running.task, message, seconds)


def expected(kind: tuple[str, str], finished: Sequence[tuple[tuple[str, str], float]]) -> float:
    """Estimated seconds: the longest time of the same kind; else the median of the same second word, of the same first
    word, or of all; 0 if nothing has finished.
    """
    alike = [seconds for other, seconds in finished if other == kind]
    if alike:
        return max(alike)
    for some in (
        [seconds for other, seconds in finished if other[1] == kind[1]],
        [seconds for other, seconds in finished if other[0] == kind[0]],
        [seconds for _, seconds in finished],
    ):
        if some:
            return median(some)
    return 0.0


@contextmanager
def _bound(processor: int | None) -> Generator[None]:
    """A context whose new processes have one processor, and one thread in numerical libraries; None changes nothing."""
    if processor is None:
        yield
        return
    affinity, environment = os.sched_getaffinity(0), dict(os.environ)
    os.sched_setaffinity(0, {processor})
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        os.sched_setaffinity(0, affinity)
        for name in _ONE_THREAD:
            os.environ.pop(name)
        os.environ.update({name: environment[name] for name in _ONE_THREAD if name in environment})


def _work(work: Work, answers: Connection) -> None:
    """The process of a task. It ends with its parent, also if that is killed, and leaves Ctrl-C to it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    collect_rarely()
    told = 0.0

    def tell(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            told = time.monotonic()
            answers.send(text)

    try:
        found = work(tell)
    except PdojoError as error:
        found = {"error": str(error)}
    except Exception:  # noqa: BLE001  # a task's failure must not end the others
        found = {"error": traceback.format_exc(limit=-6)}
    answers.send(found)


def _kill(process: SpawnProcess) -> None:
    """Kill a process and those that it started."""
    assert process.pid is not None
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _why(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
