"""Findings of the verification of a generated library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.errors import MeasurementError


class Listener:
    """Receives the progress of a verification; all methods do nothing by default."""

    def step(self, what: str) -> None:
        """Called before each step."""

    def note(self, what: str) -> None:
        """Called with a fact about the extent of the proof."""


@dataclass(frozen=True)
class Finding:
    """A fault of a generated library."""

    what: str
    """The fault, in a sentence."""
    entry: str = ""
    """The name of the entry; empty for a fault of the whole library."""
    variant: str = ""
    """The symbol of the variant; empty for a fault of all variants."""
    file: str = ""
    """The file, relative to the library's folder; empty if it is no fault of one file."""

    def __str__(self) -> str:
        place = ", ".join(
            f"{word} {name}"
            for word, name in (("entry", self.entry), ("variant", self.variant), ("file", self.file))
            if name
        )
        return f"{place}: {self.what}" if place else self.what


class UnprovedError(MeasurementError):
    """The faults of a library."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(["the library is not proved:", *map(str, findings)]))
        self.findings = findings
