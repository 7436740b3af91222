"""The operator library: one notation file per kernel, in its plain form."""

from __future__ import annotations

from pathlib import Path

from pdojo.errors import UsageError

_FOLDER = Path(__file__).parent


def kernel_names() -> tuple[str, ...]:
    """The names of all library kernels, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.pdojo")))


def kernel_path(name: str) -> Path:
    """The notation file of a library kernel; raises UsageError for a name that is not known."""
    if name not in kernel_names():
        raise UsageError(f"unknown kernel '{name}'; known: {', '.join(kernel_names())}")
    return _FOLDER / f"{name}.pdojo"
