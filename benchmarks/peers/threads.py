"""Thread pools of libraries: on the processors that the process was given."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def unbound() -> Generator[None]:
    """Threads inherit the processors of the thread that makes them, and an OpenMP runtime may have bound this one."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _allowed())
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)


def _allowed() -> set[int]:
    """The processors that the process was given: those of any thread that is not bound."""
    found = set(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        found |= os.sched_getaffinity(int(thread))
    return found
