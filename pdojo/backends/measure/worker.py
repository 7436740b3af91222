"""The worker: measures in a process of its own, which may crash, hang or run out of memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from pdojo.backends.measure.outcome import Crash, Outcome, OutOfMemory, Timeout, outcome_from_json
from pdojo.backends.measure.process import Died, LimitReached, WorkerProcess
from pdojo.backends.measure.request import (
    DEFAULT_OPTIONS,
    Assembled,
    Assembly,
    Comparison,
    Options,
    Program,
    Reference,
    Request,
    Simulation,
    Subject,
)
from pdojo.errors import MeasurementError

DEFAULT_COMPILER = "pdojo.backends.executable:compile"

_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""glibc keeps freed memory, so that libraries which allocate their results are not timed for page faults, and asks for
huge pages, as for our arrays."""


@dataclass(frozen=True)
class Limits:
    """Seconds that a phase may take before the worker is killed."""

    start: float = 60.0
    compile: float = 60.0
    reference: float = 300.0
    """The reference result is computed once. Where it takes longer nothing is measured, and no candidate failed."""
    run: float = 30.0
    """The first call, with its check; each sample, the warm-up's included, which makes its calls twice."""
    simulate: float = 1800.0
    """A run on a simulator, which has a limit of cycles of its own."""


@dataclass(frozen=True)
class Event:
    """What the worker does now, for progress displays."""

    index: int
    """Number of the subject in the comparison."""
    phase: str
    """`compile`, `reference`, `run`, `allocate`, `time` or `simulate`."""


Listener: TypeAlias = Callable[[Event], None]


class Worker:
    """Measures programs in a process that is started when needed, and started again after a failure.

    The process may take `memory_bytes` of address space (`most` is three quarters of the machine's memory, None is no
    limit), runs on `processors` (all that are allowed where left out) with its threads bound to them, and dies with its
    parent. `compiler`, `peers` and `references` are `module:function` paths of the code that it uses; they are part of
    the program that creates the worker, never of data. Not safe for use from several threads at once.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        memory_bytes: int | Literal["most"] | None = "most",
        processors: Sequence[int] | None = None,
        compiler: str = DEFAULT_COMPILER,
        peers: str | None = None,
        references: str | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.memory_bytes = _most_memory() if memory_bytes == "most" else memory_bytes
        self._settings = {
            "memory_limit": self.memory_bytes,
            "processors": None if processors is None else list(processors),
            "compiler": compiler,
            "peers": peers,
            "references": references,
        }
        self._process: WorkerProcess | None = None
        self._threads = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next measurement starts another."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def interrupt(self) -> None:
        """End what the process does now, and all that it started; may be called from another thread."""
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    @property
    def pid(self) -> int | None:
        """The process that is running, if any."""
        return None if self._process is None else self._process.pid

    def measure(self, request: Request) -> Outcome:
        """Compile, check and time one program. Raises MeasurementError where nothing could be measured at all."""
        return self.compare([request.program], request.options, request.reference)[0]

    def compare(
        self,
        subjects: Sequence[Subject],
        options: Options = DEFAULT_OPTIONS,
        reference: Reference | None = None,
        listener: Listener | None = None,
    ) -> list[Outcome]:
        """Time several subjects in turns, in one process and on the same arrays; one outcome for each, in order.

        Where one of them ends the process, the others are measured again together, so that their times always come
        from one run. Raises MeasurementError where nothing could be measured at all, also for want of a reference.
        """
        failed: dict[int, Outcome] = {}
        wanted = Comparison(tuple(subjects), options, reference)
        while len(failed) < len(subjects):
            left = [i for i in range(len(subjects)) if i not in failed]
            try:
                index, result = self._attempt(wanted.without(list(failed)), left, listener)
            except BaseException:
                # Also on Ctrl-C: what is running is of no use to anyone.
                self.close()
                raise
            if isinstance(result, Outcome):
                failed[left[index]] = result
                continue
            outcomes = {**failed, **dict(zip(left, self._outcomes(result, len(left)), strict=True))}
            return [outcomes[i] for i in range(len(subjects))]
        return [failed[i] for i in range(len(subjects))]

    def assemble(self, program: Program, effort: Literal["search", "full"] = "full") -> Assembled | Outcome:
        """Compile a program to object code that other workers of this machine run, or how that failed."""
        try:
            _, result = self._attempt(Assembly(program, effort), [0], None)
        except BaseException:
            self.close()
            raise
        if isinstance(result, Outcome):
            return result
        if result["event"] != "assembled":
            return self._outcomes(result, 1)[0]
        if "outcome" in result:
            return outcome_from_json(result["outcome"])
        return Assembled(program.text, program.machine, result["code"], result["seconds"])

    def simulate(self, wanted: Simulation) -> Outcome:
        """Run a program on the simulator of its machine. Raises MeasurementError where nothing could be run at all."""
        try:
            _, result = self._attempt(wanted, [0], None)
        except BaseException:
            self.close()
            raise
        return result if isinstance(result, Outcome) else self._outcomes(result, 1)[0]

    def _attempt(
        self, wanted: Comparison | Assembly | Simulation, numbers: Sequence[int], listener: Listener | None
    ) -> tuple[int, Outcome | dict[str, Any]]:
        """The answer; or the place in `numbers` of the subject that ended the process, and how."""
        before = self.pid
        process = self._running(wanted.options.threads if isinstance(wanted, Comparison) else 1)
        event: Event | None = None
        try:
            process.send(wanted.to_json())
            while True:
                message = process.receive(self._limit(event))
                if message["event"] != "phase":
                    return 0, message
                event = Event(numbers[int(message["index"])], str(message["phase"]))
                if listener is not None:
                    listener(event)
        except LimitReached:
            self.close()
            if event is None or event.phase == "reference":
                late = "the worker did not begin within" if event is None else "the reference result takes more than"
                raise MeasurementError(f"{late} {self._limit(event):g} s") from None
            return numbers.index(event.index), Timeout(event.phase, self._limit(event))
        except Died:
            reason, exhausted, detail = process.death()
            self.close()
            if event is None and process.pid == before:
                # It ended while it had nothing to do; nobody in this comparison is to blame.
                return self._attempt(wanted, numbers, listener)
            if event is None or event.phase == "reference":
                # No candidate is to blame, and none must be known as a failure for ever.
                when = "before it began" if event is None else "while it computed the reference result"
                raise MeasurementError(f"the worker ended {when} ({reason})\n{detail}") from None
            crash = Crash(event.phase, reason, detail)
            return numbers.index(event.index), (
                OutOfMemory(event.phase, self.memory_bytes, reason) if exhausted else crash
            )

    def _outcomes(self, message: dict[str, Any], count: int) -> list[Outcome]:
        if message["event"] == "error":
            raise MeasurementError(message["message"])
        if message["event"] == "bug":
            raise RuntimeError(f"the worker failed:\n{message['message']}")
        if message["event"] == "memory":
            return [OutOfMemory("prepare", self.memory_bytes, message["message"])] * count
        return [outcome_from_json(outcome) for outcome in message["outcomes"]]

    def _limit(self, event: Event | None) -> float:
        """Seconds until the next message is due."""
        match None if event is None else event.phase:
            case None:
                return self.limits.start
            case "compile":
                return self.limits.compile
            case "reference":
                return self.limits.reference
            case "simulate":
                return self.limits.simulate
            case _:
                return self.limits.run

    def _running(self, threads: int) -> WorkerProcess:
        """The process, started where there is none for this number of threads."""
        if self._process is not None and self._threads == threads and self._process.is_alive:
            return self._process
        self.close()
        pinned = {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
        process = WorkerProcess(self._settings, {**_ALLOCATOR, **pinned})
        self._process, self._threads = process, threads
        try:
            process.receive(self.limits.start)
        except (Died, LimitReached) as error:
            late = isinstance(error, LimitReached)
            reason = f"no answer in {self.limits.start:g} s" if late else process.death()[0]
            detail = process.errors()
            self.close()
            raise MeasurementError(f"the worker process does not start ({reason})\n{detail}") from None
        return process


def _most_memory() -> int:
    """Three quarters of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
