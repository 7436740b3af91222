"""Progress of compiling, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer
from typing import TextIO

SILENT = 2.0
"""Seconds before progress is shown."""


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[], None]]:
    """A context that shows how many of `total` are done, and the seconds; the yielded function counts one more.

    A line on standard error is redrawn after `SILENT` seconds, and removed at the end. Nothing is shown if there
    is nothing to do, or if standard error is no terminal.
    """
    stream: TextIO | None = sys.stderr
    if not total or stream is None or not stream.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=stream)
    shown = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    task = shown.add_task(what, total=total)
    timer = Timer(SILENT, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: shown.advance(task)
    finally:
        timer.cancel()
        timer.join()
        if shown.live.is_started:
            shown.stop()
