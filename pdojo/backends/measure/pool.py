"""Worker processes that compile or simulate in parallel; a crash of one does not end the search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from queue import LifoQueue
from threading import Event
from time import perf_counter
from typing import TypeAlias, TypeVar

from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.request import Simulation
from pdojo.backends.measure.worker import Worker

T = TypeVar("T")

Job: TypeAlias = Future[tuple[T, float]]
"""The future of a pair: a result, and the seconds that it took."""


class Workers:
    """A pool of `count` processes (None: one per processor), started when needed; `make` creates a worker."""

    def __init__(self, count: int | None, make: Callable[[], Worker]) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self._workers = [make() for _ in range(self.count)]
        # The worker that was used last is taken first: a caller with one job at a time starts only one process, and
        # keeps using its caches.
        self._free: LifoQueue[Worker] = LifoQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(self.count)
        self._closing = Event()

    @property
    def pids(self) -> list[int]:
        """The identifiers of all started processes."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def submit(self, action: Callable[[Worker], T]) -> Job[T]:
        """Call `action` with a worker as soon as one is idle."""
        return self._threads.submit(self._run, action)

    def simulate(self, wanted: Simulation) -> Job[Outcome]:
        """The outcome of a simulation."""
        return self.submit(lambda worker: worker.simulate(wanted))

    def simulate_all(self, wanted: Sequence[Simulation], tell: Callable[[int], None] | None = None) -> list[Outcome]:
        """The outcomes of simulations, in order; calls `tell` with the index of each before waiting for it."""
        return results([self.simulate(each) for each in wanted], tell)

    def interrupt(self) -> None:
        """Cancel the current work of all processes."""
        for worker in self._workers:
            worker.interrupt()

    def close(self) -> None:
        """End all processes, even busy ones."""
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
    """Yield each result with the seconds that it took, in order, as soon as it is available.

    Calls `tell` with the index of each job before waiting for it. If the caller stops early, jobs that have not begun
    are cancelled.
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
    """All results, in order."""
    return [result for result, _ in finished(jobs, tell)]
