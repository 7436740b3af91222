"""The progress of a build: an estimate first, then a line for each program with the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from pdojo_tools.phases import phase
from pdojo_tools.tuning.limits import duration, many
from rich.console import Console

from pdojo.library.programs import BuildListener, Finished, Job


class BuildReporter(BuildListener):
    """Prints the progress; a context, which ends the display of the present phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ExitStack()
        self._tell: Callable[[str], None] = lambda _: None
        self._number = self._count = 0
        self.has_failures = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._phase.close()

    def planned(self, jobs: Sequence[Job], kept: int, measured: int, seconds: float) -> None:
        """Print the estimate."""
        self._phase.close()
        self._count = len(jobs)
        there = f", {kept} of them made before" if kept else ""
        timed = f", {measured} to be measured" if measured else ""
        self._say(f"{many(len(jobs), 'program')}{timed}{there}; about {duration(seconds)}, then the proof of all")

    def begins(self, job: Job) -> None:
        """Show the program that is made."""
        self._show(f"{job.name}: choosing moves")

    def made(self, finished: Finished) -> None:
        """Print a line for a program that was made now."""
        self._number += 1
        if finished.is_kept:
            return
        self._phase.close()
        facts = f"{many(finished.moves, 'move')} ({finished.how}), {duration(finished.seconds)}"
        left = f"; about {duration(finished.left)} left" if finished.left else ""
        self._say(f"{self._number} of {self._count}: {finished.job.name}: {facts}{left}")

    def step(self, what: str) -> None:
        """Show a step before or after the programs."""
        self._show(what)

    def left_out(self, reason: str) -> None:
        """Print the reason."""
        self._say(reason)

    def failed(self, reason: str) -> None:
        """Print the reason."""
        self.has_failures = True
        self._phase.close()
        self._say(f"failed: {reason}")

    def detail(self, what: str) -> None:
        """Show a part of the present step."""
        self._tell(what)

    def _show(self, what: str) -> None:
        self._phase.close()
        self._tell = self._phase.enter_context(phase(self._console, what))

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
