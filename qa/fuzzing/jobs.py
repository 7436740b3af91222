"""A process of a fuzz run: it runs walks or traces by number and sends its findings to the parent."""

from __future__ import annotations

import signal
import sys
from collections import Counter
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
from qa.kernel_coverage import features_of
from qa.shrink import lit_test, shrunk
from qa.traces import check_trace, draw_trace, shrunk_trace, trace_lit_test
from qa.walks import Announce, Check, Counts, FailedWalk, Failure, walk

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
    number = first
    known = Counter[tuple[str, str]]()
    while True:
        name = plan.machines[number % len(plan.machines)]
        random, on = Random(f"{plan.seed}:{number}"), machine(name, trust=plan.trust)
        kernel = kernels(number // len(plan.machines), random, name)
        tell(Begun(number, name, print_notation(kernel)))
        found = Found(number)
        found.counts["kernels", ""] += 1
        found.counts.update(("features", feature) for feature in features_of(nest_of(kernel)))
        check = _code_check(plan, found.counts, on)
        try:
            one = _trace if plan.traces else _walk
            failed = one(plan, kernel, on, random, found, check, lambda move: tell(Announced(str(move))))
        except PdojoError as error:
            text = f"# {error}\n{print_notation(kernel)}"
            found.failure = Report(plan.seed, number, name, "valid kernel", "the generator", str(error), text)
        else:
            if failed is not None:
                found.failure = _report(plan, number, failed)
                if _is_new(known, failed):
                    tell(Failing(found.failure))
                    smaller = shrunk_trace(failed) if plan.traces else shrunk(failed, check)
                    found.failure = _report(plan, number, smaller)
        yield found
        number += step


def _code_check(plan: FuzzPlan, counts: Counts, on: Machine) -> Check | None:
    every = 1 if on.gpu and plan.compile_every else plan.compile_every
    return code_against_interpreter(every, counts, on) if every else None


def _walk(
    plan: FuzzPlan, kernel: KernelOp, on: Machine, random: Random, found: Found, check: Check | None, announce: Announce
) -> FailedWalk | None:
    walked = walk(
        kernel,
        on,
        random.getrandbits(31),
        plan.length,
        found.counts,
        check=check,
        sets_every=plan.sets_every,
        prefer=plan.prefer,
        announce=announce,
    )
    return next((step for step in walked if isinstance(step, FailedWalk)), None)


def _trace(
    plan: FuzzPlan, kernel: KernelOp, on: Machine, random: Random, found: Found, _: Check | None, announce: Announce
) -> FailedWalk | None:
    game = draw_trace(kernel, on, random, plan.length, found.counts, announce)
    steps = list(game.trace.steps)  # the checks undo some of them
    failure = check_trace(game, random, found.counts)
    return None if failure is None else FailedWalk(kernel, on, found.number, steps, failure)


def _is_new(known: Counter[tuple[str, str]], failed: FailedWalk) -> bool:
    """True if few failures of this promise and last move have been shrunk."""
    kind = failed.failure.promise, failed.steps[-1].move.name if failed.steps else ""
    known[kind] += 1
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
            counts["not lowered", str(error)] += 1
            return None
        counts["compiled", ""] += 1
        return failure

    return check
