"""Simulators in worker processes: many programs at once, none of which can end the search."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Event
from time import perf_counter

from pdojo.backends.measure import Crash, Outcome, Simulation, Worker


class Simulators:
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

    def submit(self, wanted: Simulation) -> Future[tuple[Outcome, float]]:
        """The outcome of a simulation when it is there, and how many seconds it took."""
        return self._threads.submit(self._run, wanted)

    def run(self, wanted: Sequence[Simulation]) -> list[Outcome]:
        """The outcomes of simulations, in order."""
        jobs = [self.submit(each) for each in wanted]
        try:
            return [job.result()[0] for job in jobs]
        finally:
            for job in jobs:
                job.cancel()

    def close(self) -> None:
        """End all processes, whatever they do."""
        self._closing.set()
        for pid in self.pids:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def _run(self, wanted: Simulation) -> tuple[Outcome, float]:
        """Run it in a process that has nothing to do."""
        worker = self._free.get()
        try:
            if self._closing.is_set():
                return Crash("simulate", "the simulators were closed"), 0.0
            start = perf_counter()
            return worker.simulate(wanted), perf_counter() - start
        finally:
            self._free.put(worker)
