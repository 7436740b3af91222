"""Timing candidates in turns, so that drift affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from math import ceil
from typing import TypeAlias

from pdojo.backends.measure.load import SHORTEST, LoadMeter
from pdojo.backends.measure.request import Options

Run: TypeAlias = Callable[[], None]
"""One call of a candidate on one set of arrays."""

_FEWEST = 3
"""Fewest samples, however long they take."""
_MOST_CALLS = 1 << 20
"""Most calls per sample."""

_SETTLE = 0.03
"""Seconds to wait before a sample: thread pools spin after a call and would slow the next candidate down."""
_BRIEFLY = 0.005
"""The same if all candidates are programs: they share one thread pool, which spins for about 1 ms."""
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
    """Seconds to wait before a sample."""
    repeat: int = 1
    wanted: int = _FEWEST
    """Samples to take."""
    samples: list[float] = field(default_factory=list[float])

    def calibrate(self, options: Options, begin: Callable[[], None], *, alone: bool = False) -> None:
        """Warm up: choose the calls per sample and the number of samples. `begin` is called before each sample.

        A candidate that is timed alone does not wait, except to spread very short samples over `_LEAST`.
        """

        def sample() -> float:
            begin()
            return self.sample()

        if options.even:
            self.settle = _BRIEFLY
        elif alone:
            self.settle = 0.0
        sample()
        self.repeat = 1
        seconds = sample()
        # At least doubles, because the first calls of a short kernel are far slower than the later ones.
        while seconds * self.repeat < options.sample_seconds and self.repeat < _MOST_CALLS:
            self.repeat = min(_MOST_CALLS, max(2 * self.repeat, ceil(options.sample_seconds / max(seconds, 1e-9))))
            seconds = sample()
        # As many untimed calls precede a sample.
        lasts = 2 * seconds * self.repeat
        self.wanted = min(options.samples, max(_FEWEST, int(options.budget / lasts)))
        if options.even:
            return
        if alone:
            self.settle = min(_SETTLE, max(0.0, _LEAST / self.wanted - lasts))
        self.wanted = max(self.wanted, ceil(_LEAST / (lasts + self.settle)))

    def sample(self) -> float:
        """Seconds per call, the mean of `repeat` calls, after as many untimed ones."""
        self.prepare()
        time.sleep(self.settle)
        calls = list(islice(cycle(self.runs), 2 * self.repeat))
        for run in calls[: self.repeat]:
            run()
        timed = calls[self.repeat :]
        start = time.perf_counter_ns()
        for run in timed:
            run()
        return (time.perf_counter_ns() - start) / self.repeat * 1e-9

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
    kept: list[list[float]] = []
    attempt = 0
    while attempt < options.attempts:
        attempt += 1
        meter = LoadMeter.start()
        _one_attempt(candidates, begin)
        load = Load(meter.foreign(), attempt)
        if best is None or _value(load) < _value(best):
            best, kept = load, [list(c.samples) for c in candidates]
        if _value(load) <= options.foreign_load:
            break
    assert best is not None
    for candidate, samples in zip(candidates, kept, strict=True):
        candidate.samples = samples
    return Load(best.foreign, attempt)


def _make_even(candidates: Sequence[Timed]) -> None:
    """Give all candidates the same number of turns, spread over `_LEAST`."""
    turns = min(candidate.wanted for candidate in candidates)
    for candidate in candidates:
        candidate.wanted = turns
        candidate.settle = max(_BRIEFLY, _LEAST / (turns * len(candidates)))


def _value(load: Load) -> float:
    return 0.0 if load.foreign is None else load.foreign


def _one_attempt(candidates: Sequence[Timed], begin: Callable[[int], None]) -> None:
    turns = max(candidate.wanted for candidate in candidates)
    for candidate in candidates:
        candidate.samples = []
    for turn in range(turns):
        order = list(enumerate(candidates))
        # Every second turn goes backwards, so that no candidate always follows the same neighbour.
        for index, candidate in order if turn % 2 == 0 else reversed(order):
            if candidate.is_due(turn, turns):
                begin(index)
                candidate.samples.append(candidate.sample())
