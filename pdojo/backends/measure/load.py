"""The load of the processors by other processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STAT = Path("/proc/stat")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of /proc/stat that count work: user, nice, system, irq, softirq, steal (proc(5))."""
SHORTEST = 0.05
"""Shortest meaningful interval in seconds, as the counters tick every 10 ms."""


@dataclass(frozen=True)
class LoadMeter:
    """The counters of processor time at one moment."""

    wall: float
    busy: float | None
    """Seconds of processor time that all processes used; None if the system does not report it."""
    own: float
    """Seconds of processor time that this process used."""

    @staticmethod
    def start() -> LoadMeter:
        """Read the counters."""
        return LoadMeter(time.perf_counter(), _busy_seconds(), time.process_time())

    def foreign(self) -> float | None:
        """Average number of processors that other processes have used since `start`; None if unknown."""
        now = LoadMeter.start()
        if self.busy is None or now.busy is None or now.wall - self.wall < SHORTEST:
            return None
        return max(0.0, (now.busy - self.busy) - (now.own - self.own)) / (now.wall - self.wall)


@cache
def processors() -> frozenset[int]:
    """The processors that this process may run on, determined at the first call.

    Call this before anything runs in parallel: OpenMP binds its calling thread to one processor.
    """
    return frozenset(os.sched_getaffinity(0))


def _busy_seconds() -> float | None:
    """Busy seconds, by all processes, of the processors that this process may use; None if not reported."""
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return None
    mine = {f"cpu{n}" for n in processors()}
    rows = [line.split() for line in lines if line.split(maxsplit=1)[0] in mine]
    ticks = sum(int(row[1 + column]) for row in rows for column in _BUSY if len(row) > 1 + column)
    return ticks / os.sysconf("SC_CLK_TCK") if rows else None
