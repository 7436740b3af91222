"""The worker: it measures in a separate process, which may crash, hang or run out of memory."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

from pdojo.backends.measure.outcome import Crash, Outcome, OutOfMemory, Timeout, outcome_from_json
from pdojo.backends.measure.process import Died, LimitReached, WorkerProcess
from pdojo.backends.measure.request import (
    DEFAULT_OPTIONS,
    Assembled,
    Assembly,
    Comparison,
    Contender,
    MeasuredProgram,
    Options,
    Reference,
    Request,
    Simulation,
)
from pdojo.errors import MeasurementError

_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Settings of glibc: freed memory is kept, so that times of libraries that allocate their results contain no page
faults; memory is on huge pages, like pdojo's arrays."""


@dataclass(frozen=True)
class PhaseLimits:
    """Seconds that each phase may take before the worker is killed."""

    start: float = 60.0
    compile: float = 60.0
    reference: float = 300.0
    """Limit for the reference result, which is computed once. Beyond it the comparison ends; no candidate fails."""
    run: float = 30.0
    """Limit of the first call with its check, and of each sample or warm-up, untimed calls included."""
    simulate: float = 1800.0
    """Limit of a simulation, which also has a limit in cycles."""


@dataclass(frozen=True)
class PhaseEvent:
    """The phase that the worker begins, for progress displays."""

    index: int
    """Index of the contender in the comparison."""
    phase: str
    """`compile`, `reference`, `run`, `allocate`, `time` or `simulate`."""


Listener: TypeAlias = Callable[[PhaseEvent], None]


class Worker:
    """Measures programs in a child process, started when needed and restarted after a failure.

    The process may take `memory_bytes` of address space (`most` is three quarters of the machine's memory, None is no
    limit of its own), and never more than this process may. It runs on `processors` (None: all that are allowed) with
    its threads bound to them, and ends with its parent.
    `compiler`, `peers` and `references` are `module:function` paths of the code that it uses; `session` is the path of
    the measuring class, `simulator` the path of a `tools.SimulateFunction`. These paths come from the program that
    creates the worker and from the subclasses of backends, never from data. A worker is not safe for use from several
    threads at once.
    """

    compiler: ClassVar[str | None] = None
    session: ClassVar[str | None] = None
    simulator: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        limits: PhaseLimits | None = None,
        memory_bytes: int | Literal["most"] | None = "most",
        processors: Sequence[int] | None = None,
        compiler: str | None = None,
        peers: str | None = None,
        references: str | None = None,
        session: str | None = None,
    ) -> None:
        self.limits = limits or PhaseLimits()
        wanted = (most_memory() if memory_bytes == "most" else memory_bytes, _limit_of_this_process())
        self.memory_bytes = min((each for each in wanted if each is not None), default=None)
        self._settings = {
            "memory_limit": self.memory_bytes,
            "processors": None if processors is None else list(processors),
            "compiler": compiler or self.compiler,
            "peers": peers,
            "references": references,
            "session": session or self.session,
            "simulator": self.simulator,
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
        """Kill the process and its group; may be called from another thread."""
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    @property
    def pid(self) -> int | None:
        """The identifier of the running process; None if there is none."""
        return None if self._process is None else self._process.pid

    def measure(self, request: Request) -> Outcome:
        """Compile, check and time one program. Raises MeasurementError if nothing could be measured at all."""
        return self.compare([request.program], request.options, request.reference)[0]

    def compare(
        self,
        contenders: Sequence[Contender],
        options: Options = DEFAULT_OPTIONS,
        reference: Reference | None = None,
        listener: Listener | None = None,
    ) -> list[Outcome]:
        """Time several contenders in turns, in one process and on the same arrays; one outcome for each, in order.

        If a contender ends the process, the others are measured again together: their times always come from one run.
        Raises MeasurementError if nothing could be measured at all, for example without a reference.
        """
        failed: dict[int, Outcome] = {}
        wanted = Comparison(tuple(contenders), options, reference)
        while len(failed) < len(contenders):
            left = [i for i in range(len(contenders)) if i not in failed]
            try:
                index, result = self._attempt(wanted.without(list(failed)), left, listener)
            except BaseException:
                # Also on Ctrl-C: the running measurement is no longer needed.
                self.close()
                raise
            if isinstance(result, Outcome):
                failed[left[index]] = result
                continue
            outcomes = {**failed, **dict(zip(left, self._outcomes(result, len(left)), strict=True))}
            return [outcomes[i] for i in range(len(contenders))]
        return [failed[i] for i in range(len(contenders))]

    def assemble(self, program: MeasuredProgram, effort: Literal["search", "full"] = "full") -> Assembled | Outcome:
        """Compile a program to object code that other workers of this machine run; a failure is an Outcome."""
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
        """Run a program on its machine's simulator. Raises MeasurementError if nothing could be run at all."""
        try:
            _, result = self._attempt(wanted, [0], None)
        except BaseException:
            self.close()
            raise
        return result if isinstance(result, Outcome) else self._outcomes(result, 1)[0]

    def _attempt(
        self, wanted: Comparison | Assembly | Simulation, numbers: Sequence[int], listener: Listener | None
    ) -> tuple[int, Outcome | dict[str, Any]]:
        """The worker's answer, or the failure of a contender that ended the process, with its position in `numbers`."""
        before = self.pid
        process = self._running(wanted.options.threads if isinstance(wanted, Comparison) else 1)
        event: PhaseEvent | None = None
        try:
            process.send(wanted)
            while True:
                message = process.receive(self._limit(event))
                if message["event"] == "fatal":
                    self.close()
                    return int(message["index"]), outcome_from_json(message["outcome"])
                if message["event"] != "phase":
                    return 0, message
                event = PhaseEvent(numbers[int(message["index"])], str(message["phase"]))
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
                # The process ended while idle, not because of this comparison.
                return self._attempt(wanted, numbers, listener)
            if event is None or event.phase == "reference":
                # No candidate failed, so none may be recorded as a failure.
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

    def _limit(self, event: PhaseEvent | None) -> float:
        """Seconds that the worker may take until its next message."""
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
        """The running process for this number of threads; starts one if there is none."""
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


def most_memory() -> int:
    """The most bytes that a worker process takes: three quarters of this computer's memory, or this process's limit."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    limit = _limit_of_this_process()
    return most if limit is None else min(most, limit)


def _limit_of_this_process() -> int | None:
    """The bytes of address space that this process may take (`ulimit -v`); None if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit
