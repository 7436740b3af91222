"""Fuzz the game: random legal moves, judged by three independent oracles (`python -m qa.fuzz`).

A walk starts from a random kernel or from a library kernel at small sizes, on the machines `toy`, `toy-gpu`, `toy-
snitch` and `snitch-xdiv` in turn. The exact oracle judges each move, and integer sets judge some moves. For some states
compiled code is compared with the interpreter: on this processor, simulated for a Snitch core, by fibers for each state
of a GPU. With `--traces N`, whole traces are undone, edited and replayed instead. The same seed gives the same run, on
any number of processes. A broken promise is shrunk and printed as a lit test; exit code 1. A process that dies, from
compiled code or by a signal, is a failure with its current trace. Ctrl-C ends the run with the figures so far; exit
code 130, or 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from os import sched_getaffinity
from pathlib import Path

from pdojo_tools.command import Arguments, random_seed, tool
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pdojo.dialect.machines.registry import machine
from pdojo.errors import MeasurementError, UsageError
from pdojo.transforms.registry import transformation
from qa.fuzzing.jobs import MACHINES, FuzzPlan, Report
from qa.fuzzing.kernels import source
from qa.fuzzing.summary import Totals, as_json, tables
from qa.fuzzing.workers import Worker

TRACE_LENGTH = 12
WALK_LENGTH = 30
EVERY = 30
"""Seconds between two lines of progress without a terminal."""
MOST_STILLBORN = 3
"""Greatest number of processes that may die before any walk has begun."""


@dataclass
class Fuzzer:
    """A run: its plan, its limits and its findings."""

    plan: FuzzPlan
    processes: int
    limits: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of moves, walks or traces at which the run ends."""
    seconds: float | None = None
    number: int | None = None
    """The number of the only walk or trace; None for all."""
    failures: Path | None = None
    """The file to which failures are appended; with it, the run continues after a failure."""
    console: Console = field(default_factory=lambda: Console(stderr=True))
    totals: Totals = field(default_factory=Totals)
    started: float = field(default_factory=time.monotonic)
    shown: float = field(default_factory=time.monotonic)
    workers: list[Worker] = field(default_factory=list[Worker])
    heard_number: bool = False
    """True if the only walk or trace has ended."""

    def run(self) -> None:
        """Run until a limit, Ctrl-C, or the first failure unless failures are collected."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        try:
            first, processes = (0, self.processes) if self.number is None else (self.number, 1)
            self.workers = [Worker.start(self.plan, first + k, processes) for k in range(processes)]
            with Progress(*columns, console=self.console, transient=True) as progress:
                task = progress.add_task("starting", total=1.0)
                while not self._is_over:
                    ready = wait([w.connection for w in self.workers], timeout=0.25)
                    for worker in [w for w in self.workers if w.connection in ready]:
                        self._hear(worker)
                        if self._is_over:
                            break
                    self._show(progress, task)
        except KeyboardInterrupt:
            self.totals.interrupted = True
        finally:
            self._close()

    @property
    def _done(self) -> float:
        """The finished fraction of the run, 1 at the end."""
        elapsed = time.monotonic() - self.started
        parts = [elapsed / self.seconds if self.seconds else 0.0]
        parts += [self.totals.counts.of(what).total() / limit for what, limit in self.limits.items()]
        return min(1.0, max(parts))

    @property
    def _is_over(self) -> bool:
        failed = bool(self.totals.failures) and self.failures is None
        return failed or self.heard_number or (self.number is None and self._done >= 1)

    def _show(self, progress: Progress, task: TaskID) -> None:
        """Update the bar on a terminal; print a line now and then elsewhere."""
        begun = sum(len(w.moves) for w in self.workers)
        text = self.totals.line(self.started, begun)
        progress.update(task, completed=self._done, description=text)
        if not self.console.is_terminal and time.monotonic() - self.shown > EVERY:
            self.shown = time.monotonic()
            self.console.print(f"{self.shown - self.started:.0f} s: {text}", highlight=False)

    def _close(self) -> None:
        """End the processes; count their unfinished walks, and report unshrunk failures."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.totals.seconds = time.monotonic() - self.started
        for worker in self.workers:
            worker.end()
            if worker.failing is not None:
                self._fail(worker.failing)
            elif self.totals.interrupted:
                self.totals.add_unfinished(worker.moves[:-1])

    def _hear(self, worker: Worker) -> None:
        shrinking = worker.failing
        try:
            found = worker.hear()
        except EOFError:
            self._after_crash(worker)
            return
        if found is None:
            if worker.failing is not None and shrinking is None:
                self._note(worker.failing)
            return
        self.totals.add(found)
        self.heard_number = found.number == self.number
        if found.failure is not None:
            self._report(found.failure)

    def _after_crash(self, worker: Worker) -> None:
        """Report the death of a process as a failure, and replace it from the next number on."""
        self.workers.remove(worker)
        self._fail(worker.crash())
        if (
            worker.begun is None
            and not self.totals.counts["kernels", ""]
            and len(self.totals.failures) > MOST_STILLBORN
        ):
            raise MeasurementError("the processes of the run end before they begin; the first failure shows how")
        self.heard_number = worker.number == self.number
        if not self._is_over:
            self.workers.append(Worker.start(self.plan, worker.number + self.processes, self.processes))

    def _fail(self, report: Report) -> None:
        self.totals.failures.append(report)
        self._report(report)

    def _note(self, report: Report) -> None:
        """Announce a failure: shrinking takes a while and may be interrupted."""
        self.console.print(f"number {report.number} of seed {report.seed}: {report.promise} is broken; shrinking it")
        self._keep(f"# to be shrunk, see below:\n{report}")

    def _report(self, report: Report) -> None:
        """Print a failure and save it at once: a long run may be interrupted."""
        print(report, flush=True)
        self._keep(str(report))

    def _keep(self, text: str) -> None:
        if self.failures is not None:
            with self.failures.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    """The arguments. Raises UsageError."""
    parser = Arguments(prog="python -m qa.fuzz", description=__doc__)
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="kernels of the library or .pdojo files; a mixture by default")
    add("--random", action="store_true", help="random kernels only")
    add(
        "--machine",
        action="append",
        metavar="MACHINE",
        help="a machine or its file; may be repeated (toy, toy-gpu, toy-snitch and snitch-xdiv)",
    )
    add("--trust-machine", action="store_true", help="compile and run the code of instructions of machine files")
    add("--seed", type=random_seed, default=0, help="seed of everything random (default 0)")
    add("--number", type=int, metavar="N", help="only walk or trace N of the seed, as a failure names it")
    add("--moves", type=int, metavar="N", help="stop after so many moves")
    add("--walks", type=int, metavar="N", help="stop after so many walks")
    add("--traces", type=int, metavar="N", help="undo, edit and replay N random traces instead of judging moves")
    add(
        "--minutes",
        type=float,
        metavar="M",
        help="stop after so many minutes (5 without any limit)",
    )
    add("--length", type=int, metavar="N", help=f"most moves of a walk ({WALK_LENGTH}) or a trace ({TRACE_LENGTH})")
    add("--sets-every", type=int, default=3, metavar="K", help="integer sets judge one move in K (default 3, 0: none)")
    add(
        "--compile-every",
        type=int,
        default=15,
        metavar="K",
        help="one state in K is compiled, of a GPU each (default 15, 0: none)",
    )
    add("--prefer", action="append", metavar="MOVE", help="a move of which every second one is; may be repeated")
    add("--processes", type=int, metavar="N", help="processes (default: all processors)")
    add("--failures", type=Path, metavar="FILE", help="append every failure to a file, and go on after the first")
    add("--json", type=Path, metavar="FILE", help="write a summary as JSON")
    return parser.parse_args(args)


def fuzzer_for(options: argparse.Namespace) -> Fuzzer:
    """The run of a command line. Raises UsageError."""
    ends = (options.moves, options.walks, options.traces, options.minutes)
    if any(limit is not None and limit <= 0 for limit in (*ends, options.length, options.processes)):
        raise UsageError("--moves, --walks, --traces, --minutes, --length and --processes take positive numbers")
    if options.sets_every < 0 or options.compile_every < 0:
        raise UsageError("--sets-every and --compile-every take 0 or a positive number")
    if options.traces and (options.moves or options.walks):
        raise UsageError(f"give --{'moves' if options.moves else 'walks'} or --traces, not both")
    minutes = 5.0 if not any(ends) else options.minutes
    machines = tuple(options.machine or MACHINES)
    for name in machines:
        machine(name)
    for name in options.prefer or ():
        transformation(name)
    source(options.kernels, only_random=options.random)
    plan = FuzzPlan(
        kernels=tuple(options.kernels),
        only_random=options.random,
        machines=machines,
        seed=options.seed,
        length=options.length or (TRACE_LENGTH if options.traces else WALK_LENGTH),
        sets_every=options.sets_every,
        compile_every=options.compile_every,
        traces=options.traces is not None,
        prefer=tuple(options.prefer or ()),
        trust=options.trust_machine,
    )
    return Fuzzer(
        plan,
        processes=options.processes or len(sched_getaffinity(0)),
        limits={what: limit for what in ("moves", "walks", "traces") if (limit := getattr(options, what))},
        seconds=None if minutes is None else minutes * 60,
        number=options.number,
        failures=options.failures,
    )


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the fuzzer. Raises MeasurementError for broken promises, KeyboardInterrupt after Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    try:
        options = arguments(args)
        fuzzer = fuzzer_for(options)
        fuzzer.run()
        for table in tables(fuzzer.plan, fuzzer.totals):
            fuzzer.console.print(table)
        if options.json is not None:
            options.json.write_text(as_json(fuzzer.plan, fuzzer.processes, fuzzer.totals), encoding="utf-8")
    finally:
        signal.signal(signal.SIGINT, before)
    if fuzzer.totals.failures:
        raise MeasurementError(f"broken promises: {len(fuzzer.totals.failures)}")
    if fuzzer.totals.interrupted:
        raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
