"""Running the code of programs, checked against the plain kernel's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from pdojo.backends.backend import Runs
from pdojo.backends.measure import KernelReference, MeasuredProgram, Options, Outcome, PhaseEvent, Success
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.versions import narrowed
from pdojo.dialect.view.build import nest_on
from pdojo.errors import LoweringError, MeasurementError, UsageError
from pdojo.passes.scheduled_kernel import ScheduledKernel

MOST_INSTANCES, MOST_SIMULATED = 1 << 28, 1 << 16
"""Most statement instances of a plain kernel whose code is run, or simulated, without a measurement: a second or so."""


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


def judge_code(tuning: ScheduledKernel, tell: Callable[[str], None]) -> str | None:
    """Run the tuned and the plain kernel's code once, and compare; returns the reason if it cannot run, else None.

    The arrays have the greatest sizes, or for large kernels those of a part of the ranges. On a processor, they lie
    between guard pages. Raises MeasurementError if the code fails or its results are wrong. `tell` receives the current
    phase.
    """
    machine = tuning.game.machine
    try:
        backend = backend_of(machine)
        backend.check_runs_here(machine)
    except (LoweringError, UsageError) as error:
        return str(error)
    most = MOST_SIMULATED if backend.is_simulated else MOST_INSTANCES
    before, after = _of_size(tuning, most)
    count = count_instances(nest_on(before, machine))
    if count > most:
        return f"the kernel has {count} statement instances, more than {most}"
    options = Options(threads=machine.threads, samples=1, budget=0)
    reference = KernelReference(MeasuredProgram.of(before, machine).text, compiled=not backend.is_simulated)
    with Stopwatch(machine, reference, options) as watch:
        (outcome,) = watch.compare([MeasuredProgram.of(after, machine)], lambda event: tell(event.phase))
    if not isinstance(outcome, Success):
        raise MeasurementError(f"the tuned program: {outcome.summary}")
    return None


def _of_size(tuning: ScheduledKernel, most: int) -> tuple[KernelOp, KernelOp]:
    """The plain and the tuned kernel, for a part of the ranges of their sizes if all of it has too many instances."""
    before, after = tuning.before, tuning.after
    while count_instances(nest_on(before, tuning.game.machine)) > most:
        wide = max(before.known_sizes().values(), key=lambda size: size.high - size.low, default=None)
        if wide is None or wide.low == wide.high:
            break
        part = {wide.name: range(wide.low, max(wide.low, wide.high // 2) + 1, wide.step)}
        before, after = narrowed(before, part), narrowed(after, part)
    return before, after
