"""A process of a fuzz run: it runs walks or traces by number and sends its findings to the parent."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random
from typing import TypeAlias

from pdojo.backends.common.gc_pause import collect_rarely
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError, PdojoError
from qa.fuzzing.kernels import source
from qa.random_kernels.coverage import Coverage
from qa.shrink import lit_test, shrunk
from qa.traces import TraceCounts, check_trace, draw_trace, shrunk_trace, trace_lit_test
from qa.walks import Check, Counts, FailedWalk, Failure, walk

MACHINES = ("toy", "toy-gpu", "toy-snitch", "snitch-xdiv")
"""The machines that take turns; of the last one, code runs on the simulated core."""
SHRUNK = 3
"""Greatest number of failures of one kind (promise and move) that are shrunk; others are reported unshrunk."""


@dataclass(frozen=True)
class FuzzPlan:
    """The plan of a run; it determines the run for any number of processes."""

    kernels: tuple[str, ...] = ()
    only_random: bool = False
    machines: tuple[str, ...] = MACHINES
    seed: int = 0
    length: int = 30
    sets_every: int = 0
    compile_every: int = 0
    """One state in this many is compiled and run, and each state of a GPU; 0 for none."""
    traces: bool = False
    """True for traces that are undone and replayed, False for walks judged move by move."""
    prefer: tuple[str, ...] = ()
    """Families from which every second move of a walk is drawn."""
    trust: bool = False
    """True if the code of machine files may be compiled."""


@dataclass
class Found:
    """The findings of one walk or trace."""

    number: int
    counts: Counts = field(default_factory=Counts)
    traces: TraceCounts = field(default_factory=TraceCounts)
    features: Coverage = field(default_factory=Coverage)
    failure: Report | None = None


@dataclass(frozen=True)
class Report:
    """A broken promise with its lit test."""

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


@dataclass(frozen=True)
class Begun:
    """A walk or trace begins; the process may die in it."""

    number: int
    machine: str
    kernel: str


@dataclass(frozen=True)
class Announced:
    """The next move is about to be made and judged."""

    move: str


@dataclass(frozen=True)
class Failing:
    """A broken promise is about to be shrunk, which takes a while."""

    report: Report


Message: TypeAlias = Begun | Announced | Failing | Found
Tell: TypeAlias = Callable[[Message], None]


def nobody(_: Message) -> None:
    """Ignore messages."""


def work(plan: FuzzPlan, first: int, step: int, connection: Connection) -> None:
    """Run walks or traces `first`, `first + step` ... until the connection closes or a signal ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    try:
        for found in run(plan, first, step, connection.send):
            connection.send(found)
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)


def run(plan: FuzzPlan, first: int, step: int, tell: Tell = nobody) -> Iterator[Found]:
    """Run walks or traces endlessly, yielding the findings of each. `tell` receives each move before it is made."""
    kernels = source(plan.kernels, only_random=plan.only_random, stages=2 if plan.traces else 4)
    one = _trace if plan.traces else _walk
    number = first
    known: dict[tuple[str, str], int] = {}
    while True:
        name = plan.machines[number % len(plan.machines)]
        random = Random(f"{plan.seed}:{number}")
        kernel = kernels(number // len(plan.machines), random, name)
        tell(Begun(number, name, print_notation(kernel)))
        found = Found(number)
        found.features.add(nest_of(kernel))
        one(plan, found, kernel, name, random, known, tell)
        yield found
        number += step


def _walk(
    plan: FuzzPlan,
    found: Found,
    kernel: KernelOp,
    name: str,
    random: Random,
    known: dict[tuple[str, str], int],
    tell: Tell,
) -> None:
    seed, on = random.getrandbits(31), machine(name, trust=plan.trust)
    every = 1 if on.gpu and plan.compile_every else plan.compile_every
    check = code_against_interpreter(every, found.counts, on) if every else None
    try:
        for step in walk(
            kernel,
            on,
            seed,
            plan.length,
            found.counts,
            check=check,
            sets_every=plan.sets_every,
            prefer=plan.prefer,
            announce=lambda move: tell(Announced(str(move))),
        ):
            if isinstance(step, FailedWalk):
                found.failure = _report(plan, found.number, step)
                if _is_new(known, step):
                    tell(Failing(found.failure))
                    found.failure = _report(plan, found.number, shrunk(step, check))
    except PdojoError as error:
        found.failure = _unusable(plan, found.number, name, kernel, error)


def _is_new(known: dict[tuple[str, str], int], failed: FailedWalk) -> bool:
    """True if few failures of this promise and last move have been shrunk."""
    kind = failed.failure.promise, failed.steps[-1].move.name if failed.steps else ""
    known[kind] = known.get(kind, 0) + 1
    return known[kind] <= SHRUNK


def _report(plan: FuzzPlan, number: int, failed: FailedWalk) -> Report:
    try:
        text = (trace_lit_test if plan.traces else lit_test)(failed)
    except PdojoError as error:
        text = f"# cannot be printed as a test: {error}\n{print_notation(failed.kernel)}"
    steps = failed.steps if plan.traces else failed.steps[-1:]
    moves = ", ".join(str(step.move) for step in steps)
    name, failure = failed.machine.name, failed.failure
    return Report(plan.seed, number, name, failure.promise, moves, failure.detail, text)


def _unusable(plan: FuzzPlan, number: int, name: str, kernel: KernelOp, error: PdojoError) -> Report:
    """A report on an invalid kernel: the generator promises valid ones."""
    text = f"# {error}\n{print_notation(kernel)}"
    return Report(plan.seed, number, name, "valid kernel", "the generator", str(error), text)


def _trace(
    plan: FuzzPlan,
    found: Found,
    kernel: KernelOp,
    name: str,
    random: Random,
    known: dict[tuple[str, str], int],
    tell: Tell,
) -> None:
    on = machine(name, trust=plan.trust)
    try:
        drawn = draw_trace(
            kernel,
            machine(name, trust=plan.trust),
            random,
            plan.length,
            found.traces,
            lambda move: tell(Announced(str(move))),
        )
    except PdojoError as error:
        found.failure = _unusable(plan, found.number, name, kernel, error)
        return
    failure = check_trace(drawn, random, found.traces)
    if failure is None:
        return
    failed = FailedWalk(kernel, on, found.number, drawn.steps, failure)
    found.failure = _report(plan, found.number, failed)
    if _is_new(known, failed):
        tell(Failing(found.failure))
        found.failure = _report(plan, found.number, shrunk_trace(failed))


def code_against_interpreter(every: int, counts: Counts, machine: Machine) -> Check:
    """A check that the code of one state in `every` agrees with the interpreter on ordinary numbers.

    Code for Snitch cores runs on the simulator, code for graphics processors on fibers, other code on this processor.
    A missing C++ compiler for fibers is counted like a state without code.
    """
    if machine.architecture == "riscv32":
        from qa.simulated import simulated_code_differs as code_differs
    elif machine.gpu.block_threads:
        from qa.devices import device_code_differs as code_differs
    else:
        from qa.compiled import machine_code_differs as code_differs

    def check(program: Program, number: int) -> Failure | None:
        if (number + 1) % every:
            return None
        try:
            failure = code_differs(program, number)
        except LoweringError as error:
            counts.not_lowered[str(error)] += 1
            return None
        counts.compiled += 1
        return failure

    return check
