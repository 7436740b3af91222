"""Steady calls: a processor that rested is slower for some time, so a candidate is called until its time is steady.

After 30 ms of rest, calls of a few milliseconds took twice as long on an Intel processor as continuous ones: the sixth
call still did, the twentieth did not. This module knows neither programs nor processes; clocks are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import TypeAlias

Run: TypeAlias = Callable[[], None]
"""One call of a candidate on one set of arrays."""
Clock: TypeAlias = Callable[[], int]
"""Nanoseconds since some moment."""

WINDOW = 0.01
"""Least seconds of a window; a longer call is a window of its own."""
ALIKE = 0.03
"""Two windows agree if their times per call differ by at most this fraction."""
CALLS, LEAST, ENOUGH = 20, 0.1, 0.2
"""A warm-up has so many calls and takes so many seconds; after `ENOUGH` seconds the number of calls does not matter.
Without a least time, two windows would agree while the processor is still slow."""
SAMPLE = 1e-3
"""Least seconds of a sample, after a warm-up that takes a hundred times as long."""
LONGEST, WINDOWS = 0.4, 3
"""Seconds, and number of windows, after which a warm-up ends without agreement."""
LOOP_CALLS, LOOP_LEAST, LOOP_LONGEST, LOOP_FEWEST = 50, 0.1, 1.0, 3
"""A plain loop makes so many batches of calls and takes at least so long; past `LOOP_LONGEST`, fewer are enough,
and one if it takes so long itself. No pause precedes it, so the processor is awake."""
APART = 0.1
"""Seconds between two announcements that a candidate still runs: an announcement wakes another process."""


@dataclass(frozen=True)
class WarmUp:
    """The untimed calls before a sample. Times are seconds."""

    first: float
    """The first call."""
    seconds: float
    """All calls."""
    calls: int
    fastest: float
    """A call of the fastest window."""
    is_steady: bool
    """Whether the last two windows agree; False if the warm-up ended because it took too long."""


@dataclass
class Caller:
    """Calls a candidate in batches."""

    calls: Iterator[Run]
    """Endless calls, on one set of arrays after the other."""
    batch: int
    """Calls between two readings of the clock."""
    prepare: Run
    """Restores the arrays, untimed, before a window."""
    announce: Run
    """Says that the candidate runs, at most every `APART` seconds."""
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


def warm_up(caller: Caller) -> WarmUp:
    """Call a candidate until two successive windows agree and enough calls are made, or until it takes too long.

    A call that takes longer is a warm-up of its own.
    """
    start = caller.clock()
    first, done = caller.first(), 1
    if first > LONGEST:
        return WarmUp(first, first, done, first, is_steady=True)
    # A first call that is as long as a window is one.
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


def plain_loop(caller: Caller) -> float:
    """Median seconds per call of a plain loop, which waits for nothing."""
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
