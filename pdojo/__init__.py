"""A game of legal moves that turns numerical kernels into fast ones."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdojo.backends.executable import Executable, compile
    from pdojo.dialect.machine import Machine, machine
    from pdojo.errors import (
        IllegalMove,
        InvalidKernel,
        LocationError,
        LoweringError,
        MeasurementError,
        NotationError,
        PdojoError,
        UsageError,
    )

_HOMES = {
    "Executable": "pdojo.backends.executable",
    "compile": "pdojo.backends.executable",
    "Machine": "pdojo.dialect.machine",
    "machine": "pdojo.dialect.machine",
    "IllegalMove": "pdojo.errors",
    "InvalidKernel": "pdojo.errors",
    "LocationError": "pdojo.errors",
    "LoweringError": "pdojo.errors",
    "MeasurementError": "pdojo.errors",
    "NotationError": "pdojo.errors",
    "PdojoError": "pdojo.errors",
    "UsageError": "pdojo.errors",
}

__all__ = [
    "Executable",
    "IllegalMove",
    "InvalidKernel",
    "LocationError",
    "LoweringError",
    "Machine",
    "MeasurementError",
    "NotationError",
    "PdojoError",
    "UsageError",
    "compile",
    "machine",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the tools start quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pdojo' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
