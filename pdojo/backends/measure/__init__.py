"""Measurement: programs are compiled, checked and timed in a worker process; failures are data.

See docs/measurement.md.
"""

from pdojo.backends.measure.outcome import (
    Check,
    CompileError,
    Crash,
    Deadlock,
    Ok,
    Outcome,
    OutOfMemory,
    Simulated,
    SimulatedOnSnitch,
    Steady,
    Success,
    Timeout,
    Trap,
    WrongResult,
    cost_of,
)
from pdojo.backends.measure.request import (
    Assembled,
    KernelReference,
    MeasuredProgram,
    NamedReference,
    Options,
    Peer,
    Request,
    Simulation,
    fingerprint,
)
from pdojo.backends.measure.worker import PhaseEvent, PhaseLimits, Worker

__all__ = [
    "Assembled",
    "Check",
    "CompileError",
    "Crash",
    "Deadlock",
    "KernelReference",
    "MeasuredProgram",
    "NamedReference",
    "Ok",
    "Options",
    "OutOfMemory",
    "Outcome",
    "Peer",
    "PhaseEvent",
    "PhaseLimits",
    "Request",
    "Simulated",
    "SimulatedOnSnitch",
    "Simulation",
    "Steady",
    "Success",
    "Timeout",
    "Trap",
    "Worker",
    "WrongResult",
    "cost_of",
    "fingerprint",
]
