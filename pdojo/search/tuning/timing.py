"""Timing of programs in turns, checked against the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self, TypeAlias

from pdojo.backends.backend import Runs
from pdojo.backends.measure import (
    KernelReference,
    MeasuredProgram,
    Ok,
    Options,
    Outcome,
    PhaseEvent,
    Success,
    cost_of,
)
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_on
from pdojo.errors import LoweringError, MeasurementError, UsageError
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.engine.racing import Race
from pdojo.search.tuning.scheduled_kernel import ScheduledKernel

FRESH = 1 << 62
"""Offset of the seeds of the last measurement's inputs, beyond the seeds of searches."""
MOST_INSTANCES, MOST_SIMULATED = 1 << 28, 1 << 16
"""Most statement instances of a plain kernel whose code is run, or simulated, without a measurement: a second or so."""
SECONDS = 2.5
"""Seconds of samples in the last measurement; the plain kernel's samples take at most as many more."""


MeasuredRow: TypeAlias = tuple[str, KernelOp, int]
"""A title, a program and its number of moves."""


@dataclass(frozen=True)
class Timed:
    """A program and its measurement."""

    title: str
    outcome: Outcome
    moves: int

    @property
    def cost(self) -> float:
        """Seconds or simulated cycles; infinite after a failure."""
        return cost_of(self.outcome)

    def beside(self, other: Timed) -> Race | None:
        """The race with a program of the same measurement: the samples of their common turns; None if they share no
        turns.
        """
        mine, its = self.outcome, other.outcome
        if not (isinstance(mine, Ok) and isinstance(its, Ok)):
            return None
        shared = set(mine.turns) & set(its.turns)
        return Race(_on_turns(mine, shared), _on_turns(its, shared)) if shared else None


def _on_turns(outcome: Ok, turns: AbstractSet[int]) -> Evaluation:
    samples = [seconds for turn, seconds in zip(outcome.turns, outcome.samples, strict=True) if turn in turns]
    return Evaluation(outcome.median, detail={**outcome.to_json(), "samples": samples, "all_samples": outcome.samples})


class Stopwatch:
    """Times programs and compares their results with a reference.

    Processes start once. One thread measures; another thread may call `interrupt`.
    """

    def __init__(self, machine: Machine, reference: KernelReference, options: Options | None = None) -> None:
        self._machine = machine
        self._reference = reference
        self._options = options or Options(threads=machine.threads)
        self._started: Runs | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def compare(self, programs: Sequence[MeasuredProgram], listen: Callable[[PhaseEvent], None]) -> list[Outcome]:
        """Time programs in turns. Raises MeasurementError if it fails or is interrupted."""
        if self._started is None:
            self._started = backend_of(self._machine).runs()
        return self._started.compare(programs, self._options, self._reference, listen)

    def interrupt(self) -> None:
        """Interrupt the current measurement."""
        if self._started is not None:
            self._started.interrupt()

    def close(self) -> None:
        """End all processes; no measurement may be running."""
        if self._started is not None:
            self._started.close()


def measure(
    programs: Sequence[MeasuredRow],
    plain: KernelOp,
    machine: Machine,
    seed: int,
    tell: Callable[[str], None],
) -> list[Timed]:
    """Check programs on fresh inputs against the kernel `plain`, and time them in turns: steadily, and `plain` briefly.

    Equal programs are timed once. `tell` receives the current phase.
    """
    wanted = [MeasuredProgram.of(kernel, machine) for _, kernel, _ in programs]
    distinct = {program.text: program for program in wanted}
    titles = {program.text: title for program, (title, _, _) in reversed(list(zip(wanted, programs, strict=True)))}
    shown = [titles[text] for text in distinct]
    options = Options(threads=machine.threads, seed=seed, steady=True, total=SECONDS, brief=True)
    reference = KernelReference(MeasuredProgram.of(plain, machine).text, compiled=True)
    with Stopwatch(machine, reference, options) as watch:
        outcomes = watch.compare(list(distinct.values()), lambda event: tell(f"{shown[event.index]}: {event.phase}"))
    found = dict(zip(distinct, outcomes, strict=True))
    return [Timed(title, found[each.text], n) for each, (title, _, n) in zip(wanted, programs, strict=True)]


def judge_code(tuning: ScheduledKernel, tell: Callable[[str], None]) -> str | None:
    """Run a tuned program's code once, beside the plain kernel's; returns the reason if it cannot run, else None.

    On a processor, the arrays lie between guard pages. Raises MeasurementError if the code fails or its results are
    wrong. `tell` receives the current phase.
    """
    machine = tuning.game.machine
    try:
        backend = backend_of(machine)
        backend.check_runs_here(machine)
    except (LoweringError, UsageError) as error:
        return str(error)
    count = count_instances(nest_on(tuning.before, machine))
    most = MOST_SIMULATED if backend.is_simulated else MOST_INSTANCES
    if count > most:
        return f"the kernel has {count} statement instances, more than {most}"
    options = Options(threads=machine.threads, samples=1, budget=0)
    reference = KernelReference(MeasuredProgram.of(tuning.before, machine).text, compiled=not backend.is_simulated)
    with Stopwatch(machine, reference, options) as watch:
        (outcome,) = watch.compare([MeasuredProgram.of(tuning.after, machine)], lambda event: tell(event.phase))
    if not isinstance(outcome, Success):
        raise MeasurementError(f"the tuned program: {outcome.summary}")
    return None
