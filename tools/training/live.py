"""The live display of a training: a line for each kernel, or plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pdojo_tools.tuning.limits import cost_text, duration
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pdojo.perfllm.training.trainer import EpisodeRow

QUIET = 30.0
"""Seconds between two lines without a terminal."""
RECENT = 50
"""Number of episodes for means."""


class TrainingDisplay:
    """Shows the progress of a training."""

    def __init__(
        self, console: Console, kernels: Sequence[str], unit: str, episodes: int, rows: Sequence[EpisodeRow]
    ) -> None:
        self._console = console
        self._kernels, self._unit, self._episodes = kernels, unit, episodes
        self._rows = list(rows)
        self._first, self._began = len(rows), time.monotonic()
        self._shown = self._began
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, row: EpisodeRow) -> None:
        """Show an episode."""
        self._rows.append(row)
        now = time.monotonic()
        if self._live is not None:
            self._live.update(Group(self.table(), Text(self.line())), refresh=True)
        elif now - self._shown > QUIET:
            self._shown = now
            self._console.print(self.line(), highlight=False, soft_wrap=True)

    def line(self) -> str:
        """Progress on one line."""
        last, recent = self._rows[-1], self._rows[-RECENT:]
        spent = time.monotonic() - self._began
        left = spent / max(1, len(self._rows) - self._first) * (self._episodes - len(self._rows))
        means = [sum(getattr(row, name) for row in recent) / len(recent) for name in ("loss", "predicted", "came")]
        return (
            f"episode {len(self._rows)} of {self._episodes}, {duration(left)} left; epsilon {last.epsilon:.2f}, loss"
            f" {means[0]:.3g}, values {means[1]:.3g} (came {means[2]:.3g}); {last.kernel} {last.best:.2f} times plain"
        )

    def table(self) -> Table:
        """The kernels and their best programs so far."""
        table = Table(box=None)
        for heading in ("kernel", "episodes", "programs", "best", "times plain", "lately"):
            table.add_column(heading, justify="left" if heading == "kernel" else "right")
        for kernel in self._kernels:
            own = [row for row in self._rows if row.kernel == kernel]
            if own:
                lately = own[-RECENT // len(self._kernels) - 1 :]
                mean = sum(row.speedup for row in lately) / len(lately)
                cells = (str(len(own)), str(own[-1].programs), cost_text(own[-1].cost, self._unit))
                table.add_row(kernel, *cells, f"{own[-1].best:.2f}", f"{mean:.2f}")
        return table
