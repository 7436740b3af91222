"""Cells in processes: several at once, or one alone if it is timed; finished work is appended to the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from queue import Empty, SimpleQueue
from statistics import median
from threading import Thread
from time import monotonic
from typing import IO, TypeAlias

from benchmarks.origin import JSON, commit
from benchmarks.perfllm.grid import Cell, Task
from benchmarks.perfllm.results import Done, Ledger

ATTEMPTS = 2
"""Number of starts of a job whose process dies."""
_DETAIL = 2000
"""Number of characters shown from the end of standard error."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Job:
    """A cell, or a task's reference if `cell` is None."""

    task: Task
    cell: Cell | None = None

    @property
    def title(self) -> str:
        """The name in messages."""
        if self.cell is None:
            return f"{self.task.label}: the heuristic's program"
        return f"{self.task.label}: {self.cell.method.name}, seed {self.cell.seed}"

    def line(self, processor: int | None) -> str:
        """The line of input that starts it."""
        what = {"reference": asdict(self.task)} if self.cell is None else {"cell": self.cell.to_json()}
        return json.dumps({**what, "processor": processor}) + "\n"


@dataclass(frozen=True)
class Failure:
    """A job without a result."""

    job: Job
    reason: str


@dataclass
class _Running:
    """A job and its process."""

    job: Job
    attempt: int
    processor: int | None
    process: subprocess.Popen[str]
    errors: IO[str]
    began: float = field(default_factory=monotonic)
    answer: JSON | None = None


Event: TypeAlias = tuple[_Running, JSON | None]
"""A line of a process; None at its end."""


@dataclass(frozen=True)
class Watcher:
    """Receives events, for displays."""

    began: Callable[[Job], None]
    progress: Callable[[Job, int, float], None]
    """Receives a job, its evaluations so far, and the best speed-up over the plain program."""
    ended: Callable[[Job, Failure | None], None]


class Runner:
    """Runs jobs in up to `jobs` processes, each on its own processor; a timed job runs alone, on all of them.

    A job does not start if it would probably end after `deadline`, on the clock `monotonic`; then no later job starts
    either.
    """

    def __init__(
        self,
        ledger: Ledger,
        jobs: int,
        watcher: Watcher,
        deadline: float | None = None,
        command: Sequence[str] = (sys.executable, "-m", "benchmarks.perfllm.child"),
    ) -> None:
        self._ledger = ledger
        self._jobs = jobs
        self._watcher = watcher
        self._deadline = deadline
        self._command = list(command)
        self._free = sorted(os.sched_getaffinity(0))[:jobs]
        self._running: list[_Running] = []
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._commit = commit()
        self.failures: list[Failure] = []
        self.is_cut = False
        """True if there was too little time for all jobs."""

    def run(self, jobs: Sequence[Job]) -> None:
        """Run all jobs, in order. After an exception, such as Ctrl-C, no process remains."""
        waiting = deque((job, 1) for job in jobs)
        try:
            while True:
                self._start(waiting)
                if not self._running:
                    return
                self._handle(waiting)
        finally:
            self._kill()

    def _start(self, waiting: deque[tuple[Job, int]]) -> None:
        while waiting:
            job, attempt = waiting[0]
            alone = job.task.is_timed or any(each.job.task.is_timed for each in self._running)
            if len(self._running) >= self._jobs or (alone and self._running):
                return
            if self._deadline is not None and monotonic() + self.expected(job) > self._deadline:
                self.is_cut = True
                waiting.clear()
                return
            waiting.popleft()
            processor = None if job.task.is_timed else self._free.pop(0)
            self._running.append(self._started(job, attempt, processor))
            self._watcher.began(job)

    def _started(self, job: Job, attempt: int, processor: int | None) -> _Running:
        errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed at the end
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | _ONE_THREAD if processor is not None else None,
            # This process handles Ctrl-C, and then ends the others.
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(job.line(processor))
            process.stdin.flush()
        running = _Running(job, attempt, processor, process, errors)
        Thread(target=self._read, args=(running,), daemon=True).start()
        return running

    def _read(self, running: _Running) -> None:
        assert running.process.stdout is not None
        with running.process.stdout as answers:
            for line in answers:
                with suppress(ValueError):
                    self._events.put((running, json.loads(line)))
        self._events.put((running, None))

    def _handle(self, waiting: deque[tuple[Job, int]]) -> None:
        """Handle one event, if one comes within half a second."""
        try:
            running, message = self._events.get(timeout=0.5)
        except Empty:
            return
        if message is None:
            self._end(running, waiting)
        elif "evaluations" in message:
            self._watcher.progress(running.job, message["evaluations"], message["factor"])
        else:
            running.answer = message

    def _end(self, running: _Running, waiting: deque[tuple[Job, int]]) -> None:
        detail = self._closed(running)
        self._running.remove(running)
        if running.processor is not None:
            self._free.append(running.processor)
        job, answer = running.job, running.answer
        if answer is None and running.attempt < ATTEMPTS:
            waiting.appendleft((job, running.attempt + 1))
            return
        if answer is not None and "result" in answer:
            self._ledger.add(self._line(running, answer["result"]))
            self._watcher.ended(job, None)
            return
        died = f"its process died ({_why(running.process.returncode)}) {detail}".strip()
        failure = Failure(job, died if answer is None else str(answer["error"]))
        self.failures.append(failure)
        self._watcher.ended(job, failure)

    def _line(self, running: _Running, result: JSON) -> JSON:
        job = running.job
        if job.cell is None:
            return {"kind": "reference", "task": job.task.label, **result}
        return {
            "kind": "cell",
            "task": job.task.label,
            "method": job.cell.method.name,
            "seed": job.cell.seed,
            "budget": job.task.evaluations,
            "commit": self._commit,
            "jobs": 1 if job.task.is_timed else self._jobs,
            "wall": round(monotonic() - running.began, 3),
            **result,
        }

    def _closed(self, running: _Running) -> str:
        """Kill a process tree; return the tail of its standard error."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()
        assert running.process.stdin is not None
        with suppress(BrokenPipeError):
            running.process.stdin.close()
        running.errors.seek(0)
        detail = running.errors.read()[-_DETAIL:]
        running.errors.close()
        return detail.strip()

    def _kill(self) -> None:
        while self._running:
            self._closed(self._running.pop())

    # Estimates

    def expected(self, job: Job) -> float:
        """Estimated seconds of a job, from similar finished ones; 0 if there are none."""
        return 0.0 if job.cell is None else expected(job.cell, list(self._ledger.results.cells.values()))

    def left(self, waiting: Sequence[Job]) -> float:
        """Estimated seconds until all waiting and running jobs are done."""
        timed = [job for job in waiting if job.task.is_timed]
        shared = [job for job in waiting if not job.task.is_timed]
        running = [max(0.0, self.expected(r.job) - (monotonic() - r.began)) for r in self._running]
        together = sum(map(self.expected, shared)) + sum(running)
        return together / self._jobs + sum(map(self.expected, timed))


def expected(cell: Cell, finished: Sequence[Done]) -> float:
    """Estimated seconds of a cell.

    It is the longest time of the same task and method; else the median of the same method, else of the same task, else
    of all; 0 if nothing has finished.
    """
    task, method, _ = cell.key
    alike = [done.wall for done in finished if (done.task, done.method) == (task, method)]
    if alike:
        return max(alike)
    for some in (
        [done.wall for done in finished if done.method == method],
        [done.wall for done in finished if done.task == task],
        [done.wall for done in finished],
    ):
        if some:
            return median(some)
    return 0.0


def _why(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
