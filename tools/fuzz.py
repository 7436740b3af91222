"""Fuzz the game: random legal moves, judged by three independent oracles (`python -m pdojo_tools.fuzz`).

A walk starts from a random kernel or from one of the library at small sizes, on the machines `toy`, `toy-gpu` and
`toy-snitch` by turns. Each move is judged by the exact oracle, some by integer sets, some states by compiled code
against the interpreter. With `--traces N`, whole traces are undone, edited and replayed instead. The same seed gives
the same run, on any number of processes. A broken promise is shrunk and printed as a lit test; exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from os import sched_getaffinity
from pathlib import Path
from typing import cast

from pdojo_tools.command import Arguments
from pdojo_tools.fuzz_jobs import Found, Plan, Report, run, work
from pdojo_tools.fuzz_kernels import source
from pdojo_tools.fuzz_summary import Totals, as_json, tables
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pdojo.dialect.machine import machine
from pdojo.errors import PdojoError, UsageError
from pdojo.transforms.registry import transformation

TRACE_LENGTH = 12
WALK_LENGTH = 30


@dataclass
class Worker:
    """A process, the number it is at, and the connection on which it reports."""

    process: BaseProcess
    connection: Connection
    number: int
    begun: bool = False


@dataclass
class Fuzzer:
    """A run: its plan, its limits and what it found."""

    plan: Plan
    processes: int
    moves: int | None = None
    traces: int | None = None
    seconds: float | None = None
    failures: Path | None = None
    """Where failures are appended; with it the run goes on after the first one."""
    console: Console = field(default_factory=lambda: Console(stderr=True))
    totals: Totals = field(default_factory=Totals)
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> float:
        """The part of the run that is done, 1 at the end."""
        elapsed = time.monotonic() - self.started
        parts = [elapsed / self.seconds if self.seconds else 0.0]
        parts.append(self.totals.counts.total / self.moves if self.moves else 0.0)
        parts.append(self.totals.traces.traces / self.traces if self.traces else 0.0)
        return min(1.0, max(parts))

    def run(self) -> None:
        """Until a limit is met, or the first failure where they are not collected."""
        workers = [self._start(number) for number in range(self.processes)]
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        try:
            with Progress(*columns, console=self.console, transient=True) as progress:
                task = progress.add_task("starting", total=1.0)
                while self.done < 1 and not (self.totals.failures and self.failures is None):
                    ready = wait([w.connection for w in workers], timeout=0.25)
                    for worker in [w for w in workers if w.connection in ready]:
                        self._hear(worker, workers)
                        if self.done >= 1:
                            break
                    progress.update(task, completed=self.done, description=self.totals.line(self.started))
        finally:
            self.totals.seconds = time.monotonic() - self.started
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.process.join()
                worker.connection.close()

    def run_one(self, number: int) -> None:
        """One walk or trace, in this process."""
        for found in islice(run(self.plan, number, 1), 2):
            if not found.begins:
                self.totals.add(found)
                if found.failure is not None:
                    self._report(found.failure)
        self.totals.seconds = time.monotonic() - self.started

    def _start(self, number: int) -> Worker:
        spawning = get_context("spawn")
        mine, its = spawning.Pipe(duplex=False)
        process = spawning.Process(target=work, args=(self.plan, number, self.processes, its), daemon=True)
        process.start()
        its.close()
        return Worker(process, cast("Connection", mine), number)

    def _hear(self, worker: Worker, workers: list[Worker]) -> None:
        try:
            found: Found = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            workers.remove(worker)
            workers.append(self._after_crash(worker))
            return
        worker.number, worker.begun = found.number, found.begins
        if not found.begins:
            self.totals.add(found)
            if found.failure is not None:
                self._report(found.failure)

    def _after_crash(self, worker: Worker) -> Worker:
        """A process that died is a finding; another one goes on with the number after it."""
        worker.process.join()
        worker.connection.close()
        if not worker.begun:
            raise RuntimeError(f"a process of the run ended with code {worker.process.exitcode} before it began")
        detail = f"the process ended with code {worker.process.exitcode}; see number {worker.number} of this seed"
        name = self.plan.machines[worker.number % len(self.plan.machines)]
        report = Report(self.plan.seed, worker.number, name, "no crash", "an unknown move", detail, f"# {detail}\n")
        self.totals.failures.append(report)
        self._report(report)
        return self._start(worker.number + self.processes)

    def _report(self, report: Report) -> None:
        """Print it, and keep it at once: a long run may be cut short."""
        print(report, flush=True)
        if self.failures is not None:
            with self.failures.open("a", encoding="utf-8") as file:
                file.write(f"{report}\n")


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    """The command line. Raises UsageError."""
    parser = Arguments(prog="python -m pdojo_tools.fuzz", description=__doc__)
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="kernels of the library or .pdojo files; a mixture by default")
    add("--random", action="store_true", help="random kernels only")
    add(
        "--machine",
        action="append",
        metavar="MACHINE",
        help="a machine or its file; may be repeated (toy, toy-gpu and toy-snitch)",
    )
    add("--seed", type=int, default=0, help="seed of everything random (default 0)")
    add("--number", type=int, metavar="N", help="only walk or trace N of the seed, as a failure names it")
    add("--moves", type=int, metavar="N", help="stop after so many moves")
    add("--traces", type=int, metavar="N", help="undo, edit and replay N random traces instead of judging moves")
    add("--minutes", type=float, metavar="M", help="stop after so many minutes (default 5, without --moves, --traces)")
    add("--length", type=int, metavar="N", help=f"most moves of a walk ({WALK_LENGTH}) or a trace ({TRACE_LENGTH})")
    add("--sets-every", type=int, default=3, metavar="K", help="integer sets judge one move in K (default 3, 0: none)")
    add("--compile-every", type=int, default=15, metavar="K", help="one state in K is compiled (default 15, 0: none)")
    add("--prefer", action="append", metavar="MOVE", help="a move of which every second one is; may be repeated")
    add("--processes", type=int, metavar="N", help="processes (default: all processors)")
    add("--failures", type=Path, metavar="FILE", help="append every failure to a file, and go on after the first")
    add("--json", type=Path, metavar="FILE", help="write a summary as JSON")
    return parser.parse_args(args)


def fuzzer_for(options: argparse.Namespace) -> Fuzzer:
    """The run that the command line asks for. Raises UsageError."""
    limits = (options.moves, options.traces, options.minutes, options.length, options.processes)
    if any(limit is not None and limit <= 0 for limit in limits):
        raise UsageError("--moves, --traces, --minutes, --length and --processes take positive numbers")
    if options.sets_every < 0 or options.compile_every < 0:
        raise UsageError("--sets-every and --compile-every take 0 or a positive number")
    if options.traces and options.moves:
        raise UsageError("give --moves or --traces, not both")
    minutes = 5.0 if (options.moves, options.traces, options.minutes) == (None, None, None) else options.minutes
    machines = tuple(options.machine or ("toy", "toy-gpu", "toy-snitch"))
    for name in machines:
        machine(name)
    for name in options.prefer or ():
        transformation(name)
    source(options.kernels, only_random=options.random)
    plan = Plan(
        kernels=tuple(options.kernels),
        only_random=options.random,
        machines=machines,
        seed=options.seed,
        length=options.length or (TRACE_LENGTH if options.traces else WALK_LENGTH),
        sets_every=options.sets_every,
        compile_every=options.compile_every,
        traces=options.traces is not None,
        prefer=tuple(options.prefer or ()),
    )
    return Fuzzer(
        plan,
        processes=options.processes or len(sched_getaffinity(0)),
        moves=options.moves,
        traces=options.traces,
        seconds=None if minutes is None else minutes * 60,
        failures=options.failures,
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code: 1 for a broken promise, 2 for a wrong command line, 130 after Ctrl-C."""
    try:
        options = arguments(args)
        fuzzer = fuzzer_for(options)
        code = 0
        try:
            if options.number is None:
                fuzzer.run()
            else:
                fuzzer.run_one(options.number)
        except KeyboardInterrupt:
            code = 130
        for table in tables(fuzzer.plan, fuzzer.totals):
            fuzzer.console.print(table)
        if options.json is not None:
            options.json.write_text(as_json(fuzzer.plan, fuzzer.processes, fuzzer.totals), encoding="utf-8")
    except PdojoError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 1 if fuzzer.totals.failures else code


if __name__ == "__main__":
    sys.exit(main())
