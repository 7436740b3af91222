"""Timing the program now, in a worker process; what was measured so far."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event as Stop

from pdojo_tools.playing.session import State

from pdojo.backends.measure import Event, KernelReference, Ok, Options, Outcome, Program, Worker
from pdojo.dialect.machine import Machine
from pdojo.errors import MeasurementError

_GIVEN_UP = "the measurement was given up"


class Stopwatch:
    """Times programs and compares their results with the reference interpreter's on the plain program.

    One thread measures; `interrupt` may be called from another.
    """

    def __init__(self, machine: Machine, plain: State, options: Options | None = None) -> None:
        self._machine = machine
        self._plain = plain
        self._options = options or Options(threads=machine.threads)
        self._worker = Worker()
        self.phase = ""
        """What a measurement does now."""

    def measure(self, states: list[State], stopped: Stop) -> list[Outcome]:
        """Time programs in turns. Raises MeasurementError where nothing could be measured, or it was `stopped`."""
        self.phase = "start"

        def listen(event: Event) -> None:
            if stopped.is_set():
                raise MeasurementError(_GIVEN_UP)
            self.phase = event.phase

        programs = [Program(state.page.text, self._machine) for state in states]
        try:
            outcomes = self._worker.compare(programs, self._options, KernelReference(self._plain.page.text), listen)
        except MeasurementError:
            # A worker that was killed while it started says something else.
            if not stopped.is_set():
                raise
        else:
            if not stopped.is_set():
                return outcomes
        self._worker.close()
        raise MeasurementError(_GIVEN_UP)

    def interrupt(self) -> None:
        """End what the worker does now, so that a measurement that is `stopped` ends at once."""
        pid = self._worker.pid
        if pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the worker; nothing is being measured."""
        self._worker.close()


@dataclass(frozen=True)
class Timing:
    """A measurement of one program."""

    moves: int
    """How many moves had been made."""
    fingerprint: str
    outcome: Outcome


@dataclass
class Times:
    """What was measured, in order."""

    timings: list[Timing] = field(default_factory=list[Timing])

    def add(self, moves: int, state: State, outcome: Outcome) -> None:
        """Append a measurement."""
        self.timings.append(Timing(moves, state.fingerprint, outcome))

    def latest(self, state: State) -> Outcome | None:
        """The last measurement of a program."""
        found = (t.outcome for t in reversed(self.timings) if t.fingerprint == state.fingerprint)
        return next(found, None)

    def gain(self, seconds: float, plain: State) -> float | None:
        """How many times as fast as the plain program that is."""
        outcome = self.latest(plain)
        return outcome.median / seconds if isinstance(outcome, Ok) else None

    @property
    def seconds(self) -> list[float]:
        """The times of what succeeded."""
        return [t.outcome.median for t in self.timings if isinstance(t.outcome, Ok)]


def spell_time(outcome: Outcome | None) -> str:
    """A time in milliseconds, the kind of a failure, or nothing where nothing is known; nine characters at most."""
    match outcome:
        case None:
            return ""
        case Ok():
            return spell_seconds(outcome.median)
        case _:
            return "failed"


def spell_seconds(seconds: float) -> str:
    """A time with four digits, in the unit that fits: `0.123 us`, `12.34 ms`, `1.234 s`."""
    for unit, name in ((1e-6, "us"), (1e-3, "ms")):
        if seconds < 1000 * unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds:.4g} s"
