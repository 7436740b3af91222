"""Processes of this computer that make calls for a search; results do not depend on their number.

`loky` is no substitute: its busy processes outlive a killed parent, and import a `signal.py` of the current folder.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import wait
from threading import Lock, RLock, Thread
from time import perf_counter
from types import ModuleType
from typing import Any, TypeVar

from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.errors import MeasurementError

T = TypeVar("T")
A = TypeVar("A")

PATIENCE = 1.0
"""Seconds of calls in this process before others help, the time that they take to start."""
ATTEMPTS = 3
"""Number of processes that try a call before it fails."""
_launch = Lock()
"""Lock for starting a process: the signal mask, the environment and `__main__` are changed meanwhile."""


class Pool:
    """`count` processes that start with the first call. They ignore Ctrl-C and end with their parent.

    Each process first calls `begin(*arguments)`. A process that dies is replaced, and its call is repeated. Functions
    and arguments are pickled. The main module is imported only if the arguments of `begin` need it; a script then needs
    `if __name__ == "__main__"`.
    """

    def __init__(self, count: int, begin: Callable[..., None], *arguments: object) -> None:
        self.count = count
        self._begin = (begin, arguments)
        self._needs_main = needs_main(arguments)
        self._executor: ProcessPoolExecutor | None = None
        self._jobs: list[Future[Any]] = []
        """Calls of the latest `map` that have begun."""
        self._lock = RLock()
        """Lock for beginning calls: threads of the executor do so, too."""

    @property
    def processes(self) -> list[int]:
        """Process identifiers of the started processes."""
        # Python 3.11 has no public access to the processes of an executor.
        return [] if self._executor is None else list(self._executor._processes)  # pyright: ignore[reportPrivateUsage]

    def map(self, function: Callable[[A], T], arguments: Iterable[A], *, helps: bool = False) -> Generator[T]:
        """The results, in order. One call more than there are processes is submitted at a time.

        If this process `helps`, it makes calls, too, while it waits, and each of the others has one call at a time.

        An exception of a call is raised here, or RuntimeError with its text if it cannot be pickled. Raises
        MeasurementError if a call ended `ATTEMPTS` processes.
        """
        every, jobs = list(arguments), list[Future[T]]()
        self._jobs = jobs
        self._fill(function, every, jobs, helps)
        return self._results(function, every, jobs, helps)

    def _fill(self, function: Callable[[A], T], every: Sequence[A], jobs: list[Future[T]], helps: bool) -> None:
        with self._lock:
            room = self.count + (not helps) - sum(not job.done() for job in jobs)
            for argument in every[len(jobs) : len(jobs) + max(room, 0)]:
                job = self._submit(function, argument)
                jobs.append(job)
                if helps:
                    job.add_done_callback(partial(self._go_on, self._executor, function, every, jobs))

    def _go_on(
        self,
        executor: ProcessPoolExecutor | None,
        function: Callable[[A], T],
        every: Sequence[A],
        jobs: list[Future[T]],
        job: Future[T],
    ) -> None:
        """Submit another call after one, in a thread of the executor; none after a failure, or if it was closed."""
        # An executor that fails holds a lock of its own, for which a thread with this one may wait.
        if job.cancelled() or job.exception() is not None:
            return
        with self._lock:
            if executor is self._executor:
                self._fill(function, every, jobs, helps=True)

    def _help(self, function: Callable[[A], T], every: Sequence[A], jobs: list[Future[T]]) -> bool:
        """Make the next call in this process; returns False if all have begun."""
        own: Future[T] = Future()
        with self._lock:
            if len(jobs) == len(every):
                return False
            argument = every[len(jobs)]
            jobs.append(own)
        try:
            own.set_result(function(argument))
        except Exception as error:  # noqa: BLE001  # raised in turn, like those of other processes
            own.set_exception(error)
        return True

    def _results(
        self, function: Callable[[A], T], every: Sequence[A], jobs: list[Future[T]], helps: bool
    ) -> Generator[T]:
        deaths, number = 0, 0
        while number < len(every):
            while number >= len(jobs) or not jobs[number].done():
                if helps and self._help(function, every, jobs):
                    continue
                wait_for([job for job in jobs if not job.done()], return_when=FIRST_COMPLETED)
                self._fill(function, every, jobs, helps)
            try:
                found = jobs[number].result()
            except BrokenProcessPool:
                self.close()
                deaths += 1
                if deaths == ATTEMPTS:
                    raise MeasurementError(
                        f"{ATTEMPTS} processes died over {every[number]}; what they printed may say why"
                    ) from None
                for k, job in enumerate(jobs):
                    if not job.done() or isinstance(job.exception(), BrokenProcessPool):
                        jobs[k] = self._submit(function, every[k])
                continue
            deaths = 0
            number += 1
            self._fill(function, every, jobs, helps)
            yield found

    def rest(self) -> None:
        """Wait until no call is running. Calls of the latest `map` that have not begun are dropped."""
        jobs, self._jobs = self._jobs, []
        wait_for(jobs)

    def _submit(self, function: Callable[[A], T], argument: A) -> Future[T]:
        if self._executor is None:
            # A forked process would share PyTorch's threads and the database's connection.
            self._executor = ProcessPoolExecutor(
                self.count, get_context("spawn"), initializer=_start, initargs=self._begin
            )
        try:
            with _launching(with_main=self._needs_main):
                return self._executor.submit(_answered, function, argument)
        except BrokenProcessPool as error:
            # A process died between two calls: the waiting caller sees the failure.
            broken: Future[T] = Future()
            broken.set_exception(error)
            return broken

    def close(self) -> None:
        """End the processes at once, even if they are busy. The next call starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is None:
            return
        for process in list((executor._processes or {}).values()):  # pyright: ignore[reportPrivateUsage]
            with suppress(ValueError, ProcessLookupError):
                process.kill()
        executor.shutdown(cancel_futures=True)


def shared_map(function: Callable[[A], T], arguments: Sequence[A]) -> Generator[T]:
    """The results, in order: computed in this process, and after a second also in one for each further processor.

    Functions and arguments are pickled. An exception of a call is raised here.
    """
    begun = perf_counter()
    others = _processors() - 1
    for number, argument in enumerate(arguments):
        rest = arguments[number:]
        if others and len(rest) > 1 and perf_counter() - begun > PATIENCE:
            with closing(Pool(min(others, len(rest) - 1), _nothing)) as pool:
                yield from pool.map(function, rest, helps=True)
            return
        yield function(argument)


def _processors() -> int:
    """Processors for calls; 1 if this process may not start others."""
    return 1 if current_process().daemon else len(os.sched_getaffinity(0))


def _nothing() -> None:
    """Begin in a process that needs no preparation."""


def needs_main(arguments: object) -> bool:
    """True if unpickling `arguments` imports the main module."""
    return b"__main__" in pickle.dumps(arguments)


@contextmanager
def _launching(*, with_main: bool) -> Generator[None]:
    """A context in which processes inherit this one's state, except for Ctrl-C.

    They begin with the signal blocked, and do not import Python's own modules from the current folder. Without
    `with_main` they do not run the main module, which may be a script that searches.
    """
    main = sys.modules["__main__"]
    with _launch:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        before = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        if not with_main:
            sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if before is None:
                del os.environ["PYTHONSAFEPATH"]
            else:
                os.environ["PYTHONSAFEPATH"] = before
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


# In the processes


def _answered(function: Callable[[A], T], argument: A) -> T:
    try:
        return function(argument)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001  # whatever user code raises
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        raise


def _start(begin: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    collect_rarely()
    end_with_parent()
    begin(*arguments)


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by a kill."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
