"""Output during a pass and its verification."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from pdojo_tools.phases import phase
from pdojo_tools.tables import print_program, print_trace
from rich.console import Console

from pdojo.backends.common.binding import binding_note
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.task import TuningTask
from pdojo.passes.tuned import PassListener
from pdojo.passes.verification.verify import Verification


class PassReporter(PassListener):
    """Prints the progress of a pass on a kernel."""

    def __init__(self, console: Console, task: TuningTask) -> None:
        self._console = console
        self._task = task

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def doing(self, what: str) -> AbstractContextManager[Callable[[str], None]]:
        """Show the current step."""
        return phase(self._console, what)

    def chosen(self, tuning: ScheduledKernel, note: str) -> None:
        """Print the programs before and after, and the trace."""
        if note:
            self.say(note)
        print_program(self._console, "before", tuning.before)
        print_program(self._console, "after", tuning.after)
        print_trace(self._console, "trace", tuning)
        if note := binding_note(nest_of(tuning.after), self._task.machine):
            self.say(note)

    def verified(self, decision: Verification) -> None:
        """Print the verification."""
        self._console.print(decision.said, highlight=False, markup=False, soft_wrap=True)
