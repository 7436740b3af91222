"""Thread pools of libraries, on the processors of the process."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def unbound() -> Generator[None]:
    """A context without this thread's binding, which an OpenMP runtime may have set and new threads would inherit."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _allowed())
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)


def _allowed() -> set[int]:
    """The processors of the process, read from any unbound thread."""
    found = set(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        found |= os.sched_getaffinity(int(thread))
    return found
