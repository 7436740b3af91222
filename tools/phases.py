"""Progress of a tool's long phases, on a terminal and without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

SILENT = 2.0
"""Seconds after which a phase shows itself without a terminal."""
AGAIN = 30.0
"""Seconds between two further lines."""


@contextmanager
def phase(console: Console, what: str) -> Generator[Callable[[str], None]]:
    """Show the phase `what` while the block runs; the yielded function receives details.

    On a terminal it is a line, redrawn once a second. Otherwise it is a line with the latest detail on standard error
    after `SILENT` seconds, and then every `AGAIN` seconds.
    """
    if console.is_terminal:
        with console.status(what, refresh_per_second=1) as status:
            yield status.update
        return
    with _lines(what) as tell:
        yield tell


def loading() -> AbstractContextManager[object]:
    """Show that a tool's modules are loaded, in lines on standard error: the display of terminals is loaded too."""
    return _lines("loading")


@contextmanager
def _lines(what: str) -> Generator[Callable[[str], None]]:
    latest, ended = [what], Event()

    def tell(detail: str) -> None:
        latest[0] = f"{what}: {detail}"

    def watch() -> None:
        if ended.wait(SILENT):
            return
        sys.stderr.write(f"{latest[0]} ...\n")
        while not ended.wait(AGAIN):
            sys.stderr.write(f"{latest[0]} ...\n")

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield tell
    finally:
        ended.set()
        watcher.join()
