"""Measurement: programs are compiled, checked and timed in a worker process; what goes wrong there is data.

See docs/measurement.md.
"""

from pdojo.backends.measure.outcome import (
    Check,
    CompileError,
    Crash,
    Ok,
    Outcome,
    OutOfMemory,
    Timeout,
    WrongResult,
)
from pdojo.backends.measure.request import (
    Assembled,
    KernelReference,
    NamedReference,
    Options,
    Peer,
    Program,
    Request,
    fingerprint,
)
from pdojo.backends.measure.worker import Event, Limits, Worker

__all__ = [
    "Assembled",
    "Check",
    "CompileError",
    "Crash",
    "Event",
    "KernelReference",
    "Limits",
    "NamedReference",
    "Ok",
    "Options",
    "OutOfMemory",
    "Outcome",
    "Peer",
    "Program",
    "Request",
    "Timeout",
    "Worker",
    "WrongResult",
    "fingerprint",
]
