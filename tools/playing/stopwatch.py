"""Timing of programs in a worker process, and the history of measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from threading import Event as Stop

from pdojo_tools.playing.session import State

from pdojo.backends.measure import KernelReference, MeasuredProgram, Options, Outcome, PhaseEvent, Success, cost_of
from pdojo.dialect.machines.machine import Machine
from pdojo.errors import MeasurementError
from pdojo.passes.verification.running import Stopwatch

_GIVEN_UP = "the measurement was given up"


class PlayStopwatch(Stopwatch):
    """Times the states of a game."""

    def __init__(self, machine: Machine, plain: State, options: Options | None = None) -> None:
        super().__init__(machine, KernelReference(plain.page.text), options)
        self.phase = ""
        """The current phase of a measurement."""

    def measure(self, states: list[State], stopped: Stop) -> list[Outcome]:
        """Time programs in turns. Raises MeasurementError if it fails or `stopped` is set."""
        self.phase = "start"

        def listen(event: PhaseEvent) -> None:
            if stopped.is_set():
                raise MeasurementError(_GIVEN_UP)
            self.phase = event.phase

        try:
            outcomes = self.compare([MeasuredProgram(state.page.text, self._machine) for state in states], listen)
        except MeasurementError:
            # A worker killed at its start raises another message.
            if not stopped.is_set():
                raise
        else:
            if not stopped.is_set():
                return outcomes
        self.close()
        raise MeasurementError(_GIVEN_UP)


@dataclass(frozen=True)
class PlayTiming:
    """A measurement of one program."""

    moves: int
    """Number of moves made before the measurement."""
    fingerprint: str
    outcome: Outcome


@dataclass
class PlayTimings:
    """All measurements, in order."""

    timings: list[PlayTiming] = field(default_factory=list[PlayTiming])

    def add(self, moves: int, state: State, outcome: Outcome) -> None:
        """Append a measurement."""
        self.timings.append(PlayTiming(moves, state.fingerprint, outcome))

    def latest(self, state: State) -> Outcome | None:
        """The last measurement of a program."""
        found = (t.outcome for t in reversed(self.timings) if t.fingerprint == state.fingerprint)
        return next(found, None)

    def gain(self, cost: float, plain: State) -> float | None:
        """The speed-up of a cost over the plain program's; None if that was not measured."""
        outcome = self.latest(plain)
        return None if outcome is None or cost_of(outcome) == inf else cost_of(outcome) / cost

    @property
    def costs(self) -> list[float]:
        """The times or cycles of successful measurements."""
        return [cost for t in self.timings if (cost := cost_of(t.outcome)) < inf]


def spell_time(outcome: Outcome | None) -> str:
    """A time, cycles, `failed`, or '' for None; at most nine characters."""
    match outcome:
        case None:
            return ""
        case Success():
            return spell_seconds(outcome.cost) if outcome.unit == "s" else spell_cycles(int(outcome.cost))
        case _:
            return "failed"


def spell_cycles(cycles: int) -> str:
    """A number of cycles: `318 cyc`, `123 kcyc`."""
    if cycles < 100_000:
        return f"{cycles} cyc"
    return f"{cycles / 1e3:.0f} kcyc" if cycles < 10_000_000 else f"{cycles / 1e6:.0f} Mcyc"


def spell_seconds(seconds: float) -> str:
    """A time with four digits, in the unit that fits: `0.123 us`, `12.34 ms`, `1.234 s`."""
    for unit, name in ((1e-6, "us"), (1e-3, "ms")):
        if seconds < 1000 * unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds:.4g} s"
