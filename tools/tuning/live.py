"""The live display of a search: a few lines that are redrawn, or plain lines without a terminal.

It has no thread: it redraws after a report of the search, at most once a second, and so never during a timing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import Self

from pdojo_tools.tuning.limits import budget_text, cost_text, duration, many, times_text
from rich.console import Console
from rich.live import Live
from rich.text import Text

from pdojo.budget import Budget
from pdojo.search.contract.progress import Progress
from pdojo.search.tuning.run import Baselines

REDRAW = 1.0
"""Least seconds between two redraws."""
QUIET = 30.0
"""Seconds between two plain lines without progress."""


def best_text(baselines: Baselines, progress: Progress, unit: str) -> str:
    """The incumbent's cost, and its speed-ups over the baselines.

    For timed programs it is a single speed-up, measured in turns.
    """
    if progress.best == inf:
        return "best -"
    if baselines.start:
        name = "plain" if baselines.start == "plain" else "the pass"
        if progress.root == inf:
            return f"best {cost_text(progress.best, unit)}; {name} could not be run"
        if not progress.is_measured:
            return f"best faster than {name}, by how much could not be measured"
        how = "" if progress.match is None else f", by the median of the pairs ({progress.match.verdict})"
        return f"best {times_text(progress.root, progress.best)} times as fast as {name}{how}"
    pairs = [("plain", baselines.plain), ("the pass", baselines.passed)]
    gains = [f"{times_text(cost, progress.best)} times as fast as {name}" for name, cost in pairs if cost < inf]
    return ", ".join([f"best {cost_text(progress.best, unit)}", *gains])


class Display:
    """A listener of searches that shows their progress."""

    def __init__(
        self,
        console: Console,
        title: str,
        budget: Budget,
        unit: str,
        baselines: Baselines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._title = title
        self._budget = budget
        self._unit = unit
        self._baselines = baselines
        self._clock = clock
        self._shown = -inf
        self._best = inf
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        else:
            self._shown = self._clock()
            self._print(f"{self._title}: {budget_text(self._budget)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show the progress, unless the last display is too recent."""
        now = self._clock()
        if self._live is not None:
            if now - self._shown >= REDRAW:
                self._shown = now
                self._live.update(self.picture(progress), refresh=True)
        elif progress.best < self._best or now - self._shown >= QUIET:
            self._shown, self._best = now, min(self._best, progress.best)
            self._print(self.line(progress))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def picture(self, progress: Progress) -> Text:
        """The progress on a few lines."""
        lines = [self._title, self._best_text(progress), self._pace(progress)]
        if progress.failures:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(progress.failures.items()))
            lines.append(f"failed: {kinds}")
        lines.append(f"now: {progress.doing or 'looking for candidates'}")
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")

    def line(self, progress: Progress) -> str:
        """The progress on one line."""
        failed = sum(progress.failures.values())
        stand = f"{many(progress.evaluations, 'evaluation')}, {duration(progress.seconds)}, {failed} failed"
        return f"{stand}: {self._best_text(progress)}"

    def _best_text(self, progress: Progress) -> str:
        return best_text(self._baselines, progress, self._unit)

    def _pace(self, progress: Progress) -> str:
        count = f"{progress.evaluations}"
        if self._budget.evaluations is not None:
            count += f" of {self._budget.evaluations}"
        # The root counts among the known programs, but not among the evaluations.
        remembered = min(progress.known, progress.evaluations)
        known = f" ({remembered} known before)" if remembered else ""
        left = seconds_left(progress, self._budget)
        rest = "" if left is None else f", about {duration(left)} left"
        return f"{count} evaluations{known}, {progress.rate:.1f} a second, {duration(progress.seconds)}{rest}"


def seconds_left(progress: Progress, budget: Budget) -> float | None:
    """Remaining seconds at the present rate; None if unknown."""
    left: list[float] = []
    if budget.seconds is not None:
        left.append(max(0.0, budget.seconds - progress.seconds))
    if budget.evaluations is not None and progress.rate > 0:
        left.append(max(0, budget.evaluations - progress.evaluations) / progress.rate)
    return min(left) if left else None
