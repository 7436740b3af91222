"""Steady calls: a processor that rested is slower for some time, so a candidate is called until its time is steady.

After 30 ms of rest, calls of a few milliseconds took twice as long on an Intel processor as continuous ones: the sixth
call still did, the twentieth did not. This module is independent of programs and processes; callers pass a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import TypeAlias

Run: TypeAlias = Callable[[], None]
"""A function that makes one call of a candidate on one set of arrays."""
Clock: TypeAlias = Callable[[], int]
"""A clock: nanoseconds since a fixed moment."""

WINDOW = 0.01
"""Least seconds of a window; a longer call is a window of its own."""
ALIKE = 0.03
"""Largest relative difference of two windows' times per call that counts as agreement."""
CALLS, LEAST, ENOUGH = 20, 0.1, 0.2
"""Limits of a warm-up: it makes at least `CALLS` calls in at least `LEAST` seconds; after `ENOUGH` seconds fewer calls
are enough. Without `LEAST`, two windows would agree while the processor is still slow."""
SAMPLE = 1e-3
"""Least seconds of a sample; its warm-up takes a hundred times as long."""
LONGEST, WINDOWS = 0.4, 3
"""Seconds and number of windows after which a warm-up ends without agreement, if both are reached."""
LOOP_CALLS, LOOP_LEAST, LOOP_LONGEST, LOOP_FEWEST = 50, 0.1, 1.0, 3
"""Limits of a plain loop: it makes at least `LOOP_CALLS` batches of calls in at least `LOOP_LEAST` seconds; after
`LOOP_LONGEST` seconds, `LOOP_FEWEST` are enough, and one batch is if it takes that long itself. No pause precedes
the loop, so the processor is awake."""
APART = 0.1
"""Seconds between two announcements that a candidate still runs: each announcement wakes another process."""


@dataclass(frozen=True)
class WarmUp:
    """The untimed calls before a sample. All times are in seconds."""

    first: float
    """Time of the first call."""
    seconds: float
    """Time of all calls."""
    calls: int
    fastest: float
    """Time per call in the fastest window."""
    is_steady: bool
    """Whether the last two windows agree; False if the warm-up reached its time limit."""


@dataclass
class BatchCaller:
    """Calls a candidate in batches."""

    calls: Iterator[Run]
    """An endless iterator of calls, which rotate over the sets of arrays."""
    batch: int
    """Number of calls between two readings of the clock."""
    prepare: Run
    """Restores the arrays before a window; not timed."""
    announce: Run
    """Reports that the candidate still runs; called at most every `APART` seconds."""
    clock: Clock

    def __post_init__(self) -> None:
        self._announced = self.clock()

    def window(self, seconds: float) -> tuple[float, int]:
        """Make batches of calls until they take `seconds` together; returns the seconds per call and the calls."""
        if (self.clock() - self._announced) * 1e-9 > APART:
            self.announce()
            self._announced = self.clock()
        self.prepare()
        calls = 0
        start = self.clock()
        while True:
            for run in islice(self.calls, self.batch):
                run()
            calls += self.batch
            passed = (self.clock() - start) * 1e-9
            if passed >= seconds:
                return passed / calls, calls

    def first(self) -> float:
        """Seconds of a single call."""
        start = self.clock()
        next(self.calls)()
        return (self.clock() - start) * 1e-9


def warm_up(caller: BatchCaller) -> WarmUp:
    """Call a candidate until two successive windows agree after enough calls, or until the time limit.

    A single call beyond the limit is a warm-up of its own.
    """
    start = caller.clock()
    first, done = caller.first(), 1
    if first > LONGEST:
        return WarmUp(first, first, done, first, is_steady=True)
    # A first call that lasts as long as a window counts as one.
    windows = [first] if first >= WINDOW else []
    while True:
        now, calls = caller.window(WINDOW)
        windows.append(now)
        done += calls
        seconds = (caller.clock() - start) * 1e-9
        if len(windows) < 2 or not _is_enough(done, seconds):
            continue
        is_steady = abs(now - windows[-2]) <= ALIKE * min(windows[-2:])
        if is_steady or (seconds >= LONGEST and len(windows) >= WINDOWS):
            return WarmUp(first, seconds, done, min(windows), is_steady)


def plain_loop(caller: BatchCaller) -> float:
    """Median seconds per call of a plain loop, without pauses."""
    times: list[float] = []
    start = caller.clock()
    while True:
        times.append(caller.window(0)[0])
        passed = (caller.clock() - start) * 1e-9
        many = len(times) >= (LOOP_CALLS if passed < LOOP_LONGEST else LOOP_FEWEST)
        if passed >= LOOP_LEAST and (many or times[0] >= LOOP_LONGEST):
            return median(times)


def _is_enough(calls: int, seconds: float) -> bool:
    return seconds >= LEAST and (calls >= CALLS or seconds >= ENOUGH)
