"""`pdojo-lib verify`: the proof of a library."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pdojo_tools.phases import loading, phase
from pdojo_tools.tuning.limits import many
from rich.console import Console

from pdojo.errors import MeasurementError
from pdojo.library.findings import Listener
from pdojo.library.schema import read_manifest


class _Reporter(Listener):
    """Shows steps as details of a phase, and collects notes."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.notes: list[str] = []

    def step(self, what: str) -> None:
        """Show a step."""
        self._tell(what)

    def note(self, what: str) -> None:
        """Keep a note for the end."""
        self.notes.append(what)


def prove(given: argparse.Namespace) -> None:
    """Run the command line; prints a line for each fault. Raises MeasurementError if there is a finding."""
    console = Console()
    manifest = read_manifest(given.library)
    with loading():
        from pdojo.library.verify import verify
    with phase(Console(stderr=True), "verifying") as tell:
        reporter = _Reporter(tell)
        findings = verify(given.library, reporter)
    for line in [*reporter.notes, *map(str, findings)]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if findings:
        raise MeasurementError(f"library '{manifest.name}' is not proved: {many(len(findings), 'fault')}")
    parts = [kernel for plan in manifest.models for kernel in plan.kernels]
    facts = (
        many(len(manifest.files), "file"),
        *([many(len(manifest.models), "model")] if manifest.models else []),
        f"{len(manifest.entries)} {'entry' if len(manifest.entries) == 1 else 'entries'}",
        many(sum(len(entry.variants) for entry in (*manifest.entries, *parts)), "program"),
    )
    console.print(
        f"library '{manifest.name}' {manifest.version} is proved: {', '.join(facts)}", highlight=False, soft_wrap=True
    )
