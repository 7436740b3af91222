"""Worker processes that compile or simulate: several at once, none of which can end the search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from time import perf_counter
from typing import TypeAlias, TypeVar

from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import Simulation
from pdojo.backends.measure.worker import Worker

T = TypeVar("T")

Job: TypeAlias = Future[tuple[T, float]]
"""A result, when it is there, and how many seconds it took."""


class Workers:
    """As many processes as `count`, one for each processor where left out. They start when they are needed."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self._workers = [Worker() for _ in range(self.count)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(self.count)
        self._closing = Event()

    @property
    def pids(self) -> list[int]:
        """The processes that have been started."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def submit(self, action: Callable[[Worker], T]) -> Job[T]:
        """Do something with a process that has nothing to do, as soon as there is one."""
        return self._threads.submit(self._run, action)

    def simulate(self, wanted: Simulation) -> Job[Outcome]:
        """The outcome of a simulation."""
        return self.submit(lambda worker: worker.simulate(wanted))

    def simulate_all(self, wanted: Sequence[Simulation], tell: Callable[[int], None] | None = None) -> list[Outcome]:
        """The outcomes of simulations, in order; `tell` hears the number of the one that is waited for."""
        return results([self.simulate(each) for each in wanted], tell)

    def interrupt(self) -> None:
        """End what the processes do now."""
        for worker in self._workers:
            worker.interrupt()

    def close(self) -> None:
        """End all processes, whatever they do."""
        self._closing.set()
        self.interrupt()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def _run(self, action: Callable[[Worker], T]) -> tuple[T, float]:
        worker = self._free.get()
        try:
            if self._closing.is_set():
                raise CancelledError
            start = perf_counter()
            return action(worker), perf_counter() - start
        finally:
            self._free.put(worker)


def finished(jobs: Sequence[Job[T]], tell: Callable[[int], None] | None = None) -> Iterator[tuple[T, float]]:
    """The results, in order, each as soon as it and those before it are there; and how many seconds each took.

    `tell` hears the number of a job that is waited for. If waiting ends early, what has not begun is not begun any
    more.
    """
    try:
        for number, job in enumerate(jobs):
            if tell is not None:
                tell(number)
            yield job.result()
    finally:
        for job in jobs:
            job.cancel()


def results(jobs: Sequence[Job[T]], tell: Callable[[int], None] | None = None) -> list[T]:
    """The results, in order, when all are there."""
    return [result for result, _ in finished(jobs, tell)]
