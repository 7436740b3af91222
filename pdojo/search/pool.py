"""Processes of this computer that make calls for a search; results do not depend on their number."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, TypeVar

from pdojo.backends.garbage import collect_rarely
from pdojo.errors import MeasurementError

T = TypeVar("T")
A = TypeVar("A")

ATTEMPTS = 3
"""Processes that a call is given to before it fails."""


class Pool:
    """`count` processes, which start with the first call. Ctrl-C does not reach them; they end with their parent.

    `begin(*arguments)` is called in each process before anything else. One that dies is replaced, and its call is
    made again. Functions and arguments are pickled.
    """

    def __init__(self, count: int, begin: Callable[..., None], *arguments: object) -> None:
        self.count = count
        self._begin = (begin, arguments)
        self._executor: ProcessPoolExecutor | None = None

    @property
    def processes(self) -> list[int]:
        """Numbers of the processes that have started."""
        return [] if self._executor is None else list(self._executor._processes)  # pyright: ignore[reportPrivateUsage]

    def map(self, function: Callable[[A], T], arguments: Iterable[A]) -> Generator[T]:
        """The results, in order. Two calls for each process are made ahead of the one that is waited for.

        Calls that were made ahead when the generator is closed are cancelled. An exception of a call is raised here;
        MeasurementError if a call ended `ATTEMPTS` processes.
        """
        left = iter(arguments)
        waiting: deque[tuple[A, Future[T]]] = deque()

        def fill() -> None:
            for one in islice(left, 2 * self.count - len(waiting)):
                waiting.append((one, self._submit(function, one)))

        fill()
        return self._results(function, waiting, fill)

    def _results(
        self, function: Callable[[A], T], waiting: deque[tuple[A, Future[T]]], fill: Callable[[], None]
    ) -> Generator[T]:
        deaths = 0
        try:
            while waiting:
                try:
                    found = waiting[0][1].result()
                except BrokenProcessPool:
                    self.close()
                    deaths += 1
                    if deaths == ATTEMPTS:
                        raise MeasurementError(f"{ATTEMPTS} processes died over {waiting[0][0]}") from None
                    again = [(one, self._submit(function, one)) for one, _ in waiting]
                    waiting.clear()
                    waiting.extend(again)
                    continue
                deaths = 0
                waiting.popleft()
                fill()
                yield found
        finally:
            for _, job in waiting:
                job.cancel()

    def _submit(self, function: Callable[[A], T], argument: A) -> Future[T]:
        if self._executor is None:
            # A forked process would share PyTorch's threads and the database's connection.
            self._executor = ProcessPoolExecutor(
                self.count, get_context("spawn"), initializer=_start, initargs=self._begin
            )
        try:
            return self._executor.submit(function, argument)
        except BrokenProcessPool as error:
            # A process died between two calls: whoever waits for this one learns of it.
            broken: Future[T] = Future()
            broken.set_exception(error)
            return broken

    def close(self) -> None:
        """End the processes, whatever they do. The next call starts others."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        for process in list((executor._processes or {}).values()):  # pyright: ignore[reportPrivateUsage]
            with suppress(ValueError, ProcessLookupError):
                process.kill()
        executor.shutdown(cancel_futures=True)


def _start(begin: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    Thread(target=_end_with_parent, daemon=True).start()
    begin(*arguments)


def _end_with_parent() -> None:
    """End this process when its parent has ended, even if that was killed."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
