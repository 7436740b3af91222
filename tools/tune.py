"""`pdojo-tune`: tune kernels by an expert pass and by search, verify them, and measure what that gained."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pdojo_tools.command import run_tool
from pdojo_tools.tables import print_trace
from pdojo_tools.tuning.arguments import parse
from pdojo_tools.tuning.subject import subject_of
from rich.console import Console

WIDTH = 140
"""Of tables of comparisons that go into a file."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _run(args: Sequence[str] | None) -> None:
    command = list(sys.argv[1:] if args is None else args)
    given = parse(command)
    console = Console()
    if given.compare:
        if not console.is_terminal:
            console = Console(width=WIDTH)
        from pdojo_tools.tuning.comparing import compare

        compare(console, given)
        return
    from pdojo_tools.tuning.session import Session
    from pdojo_tools.tuning.targets import Targets

    with console.status("expert pass", refresh_per_second=1):
        subjects = [subject_of(title, given) for title in given.programs]
    for name, threads in dict.fromkeys((each.machine.name, each.machine.threads) for each in subjects):
        console.print(f"machine {name}, {threads} threads; callers align arrays to {given.align} bytes")
    if given.explain:
        for subject in subjects:
            print_trace(console, "why" if len(subjects) == 1 else f"{subject.title}: why", subject.passed)
        return
    targets = Targets.of(given.output, given.emit, given.report, subjects)
    Session(console, given, command, targets).run(subjects)


if __name__ == "__main__":
    sys.exit(main())
