"""One process of a fuzz run: walks or traces by number, and what they found, told to the process that started it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random

from pdojo_tools.fuzz_kernels import source
from pdojo_tools.random_kernels.coverage import Coverage
from pdojo_tools.shrink import lit_test, shrunk
from pdojo_tools.traces import TraceCounts, check_trace, draw_trace, shrunk_trace, trace_lit_test
from pdojo_tools.walks import Check, Counts, FailedWalk, Failure, walk

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.machine import machine
from pdojo.dialect.nest import nest_of
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, PdojoError

SHRUNK = 3
"""Failures of one kind (promise and move) that are shrunk; more of them are reported as they are."""


@dataclass(frozen=True)
class Plan:
    """What a run does; the same plan does the same, whatever the number of processes."""

    kernels: tuple[str, ...] = ()
    only_random: bool = False
    machines: tuple[str, ...] = ("toy", "toy-gpu", "toy-snitch")
    seed: int = 0
    length: int = 30
    sets_every: int = 0
    compile_every: int = 0
    traces: bool = False
    """Traces undone and replayed, rather than walks judged move by move."""
    prefer: tuple[str, ...] = ()
    """Moves of which every second move of a walk is one."""


@dataclass
class Found:
    """What one walk or trace did, or that it begins."""

    number: int
    begins: bool = False
    counts: Counts = field(default_factory=Counts)
    traces: TraceCounts = field(default_factory=TraceCounts)
    features: Coverage = field(default_factory=Coverage)
    failure: Report | None = None


@dataclass(frozen=True)
class Report:
    """A broken promise, ready to be kept as a test."""

    seed: int
    number: int
    machine: str
    promise: str
    move: str
    detail: str
    lit: str

    def __str__(self) -> str:
        head = f"# seed {self.seed}, number {self.number}, machine {self.machine}: {self.promise} broken by {self.move}"
        return f"{head}\n{self.lit}"


def work(plan: Plan, first: int, step: int, connection: Connection) -> None:
    """Do numbers `first`, `first + step` ... until told to stop by a closed connection or a signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for found in run(plan, first, step):
            connection.send(found)
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)


def run(plan: Plan, first: int, step: int) -> Iterator[Found]:
    """Do numbers without end; each tells that it begins, and what it found."""
    kernels = source(plan.kernels, only_random=plan.only_random, stages=2 if plan.traces else 4)
    one = _trace if plan.traces else _walk
    number = first
    known: dict[tuple[str, str], int] = {}
    while True:
        yield Found(number, begins=True)
        name = plan.machines[number % len(plan.machines)]
        random = Random(f"{plan.seed}:{number}")
        kernel = kernels(number // len(plan.machines), random, name)
        found = Found(number)
        found.features.add(nest_of(kernel))
        one(plan, found, kernel, name, random, known)
        yield found
        number += step


def _walk(
    plan: Plan, found: Found, kernel: KernelOp, name: str, random: Random, known: dict[tuple[str, str], int]
) -> None:
    check = compiled_against_interpreter(plan.compile_every, found.counts) if plan.compile_every else None
    seed = random.getrandbits(31)
    try:
        for step in walk(
            kernel,
            machine(name),
            seed,
            plan.length,
            found.counts,
            check=check,
            sets_every=plan.sets_every,
            prefer=plan.prefer,
        ):
            if isinstance(step, FailedWalk):
                found.failure = _report(plan, found.number, name, step, check, known)
    except PdojoError as error:
        found.failure = _unusable(plan, found.number, name, kernel, error)


def _report(
    plan: Plan, number: int, name: str, failed: FailedWalk, check: Check | None, known: dict[tuple[str, str], int]
) -> Report:
    kind = failed.failure.promise, failed.steps[-1].move.name
    known[kind] = known.get(kind, 0) + 1
    if known[kind] <= SHRUNK:
        failed = shrunk(failed, check)
    try:
        text = lit_test(failed)
    except PdojoError as error:
        text = f"# cannot be printed as a test: {error}\n{print_notation(failed.kernel)}"
    return Report(
        plan.seed, number, name, failed.failure.promise, str(failed.steps[-1].move), failed.failure.detail, text
    )


def _unusable(plan: Plan, number: int, name: str, kernel: KernelOp, error: PdojoError) -> Report:
    """The generator promised a valid kernel; that promise is judged too."""
    return Report(plan.seed, number, name, "valid kernel", "the generator", str(error), print_notation(kernel))


def _trace(
    plan: Plan, found: Found, kernel: KernelOp, name: str, random: Random, known: dict[tuple[str, str], int]
) -> None:
    try:
        drawn = draw_trace(kernel, machine(name), random, plan.length, found.traces)
    except PdojoError as error:
        found.failure = _unusable(plan, found.number, name, kernel, error)
        return
    failure = check_trace(drawn, random, found.traces)
    if failure is None:
        return
    kind = failure.promise, drawn.steps[-1].move.name if drawn.steps else ""
    known[kind] = known.get(kind, 0) + 1
    failed = FailedWalk(kernel, machine(name), found.number, drawn.steps, failure)
    if known[kind] <= SHRUNK:
        failed = shrunk_trace(failed)
    moves = ", ".join(str(step.move) for step in failed.steps)
    found.failure = Report(
        plan.seed, found.number, name, failure.promise, moves, failed.failure.detail, trace_lit_test(failed)
    )


def compiled_against_interpreter(every: int, counts: Counts) -> Check:
    """A check of one state in `every`: machine code computes what the interpreter does, on ordinary numbers."""
    from pdojo_tools.compiled import machine_code_differs

    def check(program: Program, number: int) -> Failure | None:
        if (number + 1) % every:
            return None
        try:
            failure = machine_code_differs(program, number)
        except LoweringError as error:
            counts.not_lowered[str(error)] += 1
            return None
        counts.compiled += 1
        return failure

    return check
