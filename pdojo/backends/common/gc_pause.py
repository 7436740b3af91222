"""Less frequent garbage collection than Python's default, for pdojo's own processes."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 100_000
"""New objects between two collections of the youngest generation."""


def collect_rarely() -> None:
    """Collect after `OBJECTS` new objects; for command-line tools and worker processes, not for libraries.

    Programs are trees with references to parents, so only the collector frees them. Collecting after every 700 new
    objects, Python's default, takes up to a fifth of the time of proposing and lowering. Uncollected programs take some
    tens of megabytes; in a long search old ones take up to two gigabytes and half a minute to free, still less time in
    all than frequent collections.
    """
    gc.set_threshold(OBJECTS, 20, 20)


@contextmanager
def uncollected() -> Generator[None]:
    """A context without collections, for seconds of work that leave some tens of megabytes; libraries may use it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_now() -> None:
    """Free the programs of a finished search (up to gigabytes) that `collect_rarely` left uncollected."""
    gc.collect()
