"""Timing candidates in turns, so that drift affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from math import ceil

from pdojo.backends.measure.load import SHORTEST, LoadMeter
from pdojo.backends.measure.request import Options
from pdojo.backends.measure.steady import SAMPLE, Caller, Clock, Run, WarmUp, plain_loop, warm_up

_FEWEST = 3
"""Fewest samples, however long they take."""
_MOST_CALLS = 1 << 20
"""Most calls per sample."""

_SETTLE = 0.03
"""Seconds to wait before a sample: thread pools spin after a call and would slow the next candidate down."""
BRIEFLY = 0.005
"""Seconds of calls before a sample of a race, which has no pauses: programs share one thread pool, which spins for
about 1 ms, and a processor that never rests stays fast."""
_LEAST = 1.2 * SHORTEST
"""Shortest attempt in seconds, so that the load of the processors is known."""


@dataclass
class Timed:
    """A candidate that is being timed."""

    runs: Sequence[Run]
    """One call for each set of arrays."""
    prepare: Run
    """Restores the arrays before a sample, untimed."""
    settle: float = _SETTLE
    """Seconds to wait before a sample; of a race, to call the candidate instead."""
    repeat: int = 1
    wanted: int = _FEWEST
    """Samples to take."""
    is_steady: bool = False
    """Whether a sample waits until the calls before it are steady."""
    is_raced: bool = False
    """Whether calls precede a sample instead of a pause."""
    clock: Clock = time.perf_counter_ns
    sleep: Callable[[float], None] = time.sleep
    samples: list[float] = field(default_factory=list[float])
    warm_ups: list[WarmUp] = field(default_factory=list[WarmUp])
    """The warm-up of each sample; empty unless `is_steady`."""
    loop: float | None = None
    """Seconds per call of a plain loop; None unless `is_steady`."""

    def calibrate(self, options: Options, begin: Callable[[], None], *, alone: bool = False) -> None:
        """Warm up: choose the calls per sample and the number of samples. `begin` is called before each sample.

        A candidate that is timed alone does not wait, except to spread very short samples over `_LEAST`. One whose
        samples are steady waits, alone or not; one that races never does.
        """
        if options.steady:
            self.calibrate_steady(options, begin)
            return
        self.is_raced = options.even
        if options.even:
            self.settle = BRIEFLY
        elif alone:
            self.settle = 0.0
        lasts = self.choose_repeat(options, begin)
        if options.even:
            return
        if alone:
            self.settle = min(_SETTLE, max(0.0, _LEAST / self.wanted - lasts))
        self.wanted = max(self.wanted, ceil(_LEAST / (lasts + self.settle)))

    def choose_repeat(self, options: Options, begin: Callable[[], None]) -> float:
        """Choose the calls per sample, and the number of samples by the budget; gives the seconds of a sample."""
        self.sample(begin)
        self.repeat = 1
        seconds = self.sample(begin)
        # At least doubles, because the first calls of a short kernel are far slower than the later ones.
        while seconds * self.repeat < options.sample_seconds and self.repeat < _MOST_CALLS:
            self.repeat = min(_MOST_CALLS, max(2 * self.repeat, ceil(options.sample_seconds / max(seconds, 1e-9))))
            seconds = self.sample(begin)
        # As many untimed calls precede a sample.
        lasts = 2 * seconds * self.repeat
        self.wanted = min(options.samples, max(_FEWEST, int(options.budget / lasts)))
        return lasts

    def calibrate_steady(self, options: Options, begin: Callable[[], None]) -> None:
        """The same by a single warm-up. Warm-ups are long enough for the load of the processors to be known."""
        self.is_steady, self.repeat = True, 1
        self.sample(begin)
        found = self.warm_ups[-1]
        least = max(SAMPLE, options.sample_seconds)
        self.repeat = min(_MOST_CALLS, ceil(least / max(found.fastest, 1e-9)))
        lasts = found.seconds + found.fastest * self.repeat
        self.wanted = min(options.samples, max(_FEWEST, int(options.budget / lasts)))

    def sample(self, begin: Callable[[], None]) -> float:
        """Seconds per call, the mean of `repeat` calls, after a pause and untimed calls: a warm-up, or as many."""
        begin()
        self.prepare()
        calls = cycle(self.runs)
        if self.is_raced:
            self.caller(calls, begin).window(self.settle)
        elif self.is_steady:
            self.sleep(self.settle)
            self.warm_ups.append(warm_up(self.caller(calls, begin)))
        else:
            self.sleep(self.settle)
            for run in list(islice(calls, self.repeat)):
                run()
        timed = list(islice(calls, self.repeat))
        start = self.clock()
        for run in timed:
            run()
        return (self.clock() - start) / self.repeat * 1e-9

    def take_loop(self, begin: Callable[[], None]) -> None:
        """Time a plain loop, without a pause before it."""
        begin()
        self.loop = plain_loop(self.caller(cycle(self.runs), begin))

    def caller(self, calls: Iterator[Run], begin: Callable[[], None]) -> Caller:
        """Makes these calls in batches."""
        return Caller(calls, self.repeat, self.prepare, begin, self.clock)

    def is_due(self, turn: int, turns: int) -> bool:
        """Whether this candidate takes a sample in this turn: its samples are spread over all turns."""
        return (turn + 1) * self.wanted // turns > turn * self.wanted // turns


@dataclass(frozen=True)
class Load:
    """The load by other processes while the samples were taken, and the number of attempts."""

    foreign: float | None
    attempts: int


def take_samples(candidates: Sequence[Timed], options: Options, begin: Callable[[int], None]) -> Load:
    """Fill `samples` of all candidates; call `begin` with the candidate's index before each sample and warm-up.

    If other processes keep the processors busy, everything is sampled again, and the attempt with the least load
    counts.
    """
    for index, candidate in enumerate(candidates):
        candidate.calibrate(options, partial(begin, index), alone=len(candidates) == 1)
    if options.even:
        _make_even(candidates)
    best: Load | None = None
    kept: list[tuple[list[float], list[WarmUp], float | None]] = []
    attempt = 0
    while attempt < options.attempts:
        attempt += 1
        meter = LoadMeter.start()
        _one_attempt(candidates, begin)
        load = Load(meter.foreign(), attempt)
        if best is None or _value(load) < _value(best):
            best, kept = load, [(each.samples, each.warm_ups, each.loop) for each in candidates]
        if _value(load) <= options.foreign_load:
            break
    assert best is not None
    for candidate, taken in zip(candidates, kept, strict=True):
        candidate.samples, candidate.warm_ups, candidate.loop = taken
    return Load(best.foreign, attempt)


def _make_even(candidates: Sequence[Timed]) -> None:
    """Give all candidates the same number of turns, spread over `_LEAST`."""
    turns = min(candidate.wanted for candidate in candidates)
    for candidate in candidates:
        candidate.wanted = turns
        candidate.settle = max(BRIEFLY, _LEAST / (turns * len(candidates)))


def _value(load: Load) -> float:
    return 0.0 if load.foreign is None else load.foreign


def _one_attempt(candidates: Sequence[Timed], begin: Callable[[int], None]) -> None:
    turns = max(candidate.wanted for candidate in candidates)
    for candidate in candidates:
        candidate.samples, candidate.warm_ups, candidate.loop = [], [], None
    for turn in range(turns):
        order = list(enumerate(candidates))
        # Every second turn goes backwards, so that no candidate always follows the same neighbour.
        for index, candidate in order if turn % 2 == 0 else reversed(order):
            if candidate.is_due(turn, turns):
                candidate.samples.append(candidate.sample(partial(begin, index)))
    for index, candidate in enumerate(candidates):
        if candidate.is_steady:
            candidate.take_loop(partial(begin, index))
