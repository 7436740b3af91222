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
from pdojo.backends.measure.steady import SAMPLE, BatchCaller, Clock, Run, WarmUp, plain_loop, warm_up

_FEWEST = 3
"""Fewest samples of a candidate, however long they take."""
FEWEST_PAIRS = 5
"""Fewest turns of a race, however long they take: a sign test of fewer pairs is never significant."""
BRIEF = 5
"""Most samples of a contender that is timed briefly (`Options.brief`)."""
LONG = 0.05
"""Seconds of a call beyond which no untimed call precedes it: the processor is awake, and caches are warm, long before
the call ends."""
_MOST_CALLS = 1 << 20
"""Most calls per sample."""

_SETTLE = 0.03
"""Seconds to wait before a sample: after a call, thread pools spin and would slow down the next candidate."""
BRIEFLY = 0.005
"""Seconds of untimed calls before a sample of a race. A race has no pauses: its programs share one thread pool, which
spins for about 1 ms, and a processor that never rests stays fast."""
_LEAST = 1.2 * SHORTEST
"""Least seconds of a measurement in which the load of the processors can be determined."""


@dataclass
class Timed:
    """A candidate that is being timed."""

    runs: Sequence[Run]
    """One callable per set of arrays."""
    prepare: Run
    """Restores the arrays before a sample, untimed."""
    settle: float = _SETTLE
    """Seconds to wait before a sample; in a race, seconds to call the candidate."""
    repeat: int = 1
    wanted: int = _FEWEST
    """Number of samples to take."""
    is_steady: bool = False
    """Whether each sample follows a warm-up to a steady time."""
    is_raced: bool = False
    """Whether untimed calls, instead of a pause, precede a sample."""
    is_brief: bool = False
    """Whether its samples must not take longer than the samples of the others together."""
    is_long: bool = False
    """Whether no untimed call precedes a sample, because a call takes at least `LONG` seconds."""
    lasts: float = 0.0
    """Seconds of a sample including the untimed calls before it."""
    clock: Clock = time.perf_counter_ns
    sleep: Callable[[float], None] = time.sleep
    samples: list[float] = field(default_factory=list[float])
    turns: list[int] = field(default_factory=list[int])
    """The turn of each sample."""
    warm_ups: list[WarmUp] = field(default_factory=list[WarmUp])
    """The warm-up of each sample; empty unless `is_steady`."""
    loop: float | None = None
    """Seconds per call of a plain loop; None unless `is_steady`."""

    def calibrate(self, options: Options, begin: Callable[[], None], *, alone: bool = False) -> None:
        """Warm up, and choose the calls per sample and the number of samples. `begin` is called before each sample.

        A candidate that is timed alone does not wait, except to spread very short samples over `_LEAST`. A candidate
        with steady samples always waits; in a race there is no waiting.
        """
        if options.steady:
            self.calibrate_steady(options, begin)
            return
        self.is_raced = options.even
        if options.even:
            self.settle = BRIEFLY
        elif alone:
            self.settle = 0.0
        self.choose_repeat(options, begin)
        if options.even:
            return
        if alone:
            self.settle = min(_SETTLE, max(0.0, _LEAST / self.wanted - self.lasts))
        self.wanted = max(self.wanted, ceil(_LEAST / (self.lasts + self.settle)))

    def choose_repeat(self, options: Options, begin: Callable[[], None]) -> None:
        """Choose the calls per sample, and the number of samples by the budget."""
        self.repeat, self.is_long = 1, True
        seconds = self.sample(begin)
        if LONG <= seconds < 10 * LONG:
            # The first call may take long because the system provides memory.
            seconds = self.sample(begin)
        self.is_long = seconds >= LONG
        # In a race the first call of a program is like the others: all programs use the same arrays.
        if not self.is_long and not (self.is_raced and seconds >= BRIEFLY):
            seconds = self.sample(begin)
        # At least double the number, because the first calls of a short kernel are far slower than later ones.
        while seconds * self.repeat < options.sample_seconds and self.repeat < _MOST_CALLS:
            self.repeat = min(_MOST_CALLS, max(2 * self.repeat, ceil(options.sample_seconds / max(seconds, 1e-9))))
            seconds = self.sample(begin)
        # The untimed calls before a sample are as many as its timed ones.
        self.lasts = seconds * self.repeat * (1 if self.is_long else 2)
        self._choose_wanted(options)

    def calibrate_steady(self, options: Options, begin: Callable[[], None]) -> None:
        """Like `calibrate`, with a single warm-up, which is long enough to determine the load of the processors."""
        self.is_steady, self.repeat = True, 1
        self.sample(begin)
        found = self.warm_ups[-1]
        least = max(SAMPLE, options.sample_seconds)
        self.repeat = min(_MOST_CALLS, ceil(least / max(found.fastest, 1e-9)))
        self.lasts = found.seconds + found.fastest * self.repeat
        self._choose_wanted(options)

    def _choose_wanted(self, options: Options) -> None:
        fewest = FEWEST_PAIRS if options.even else _FEWEST
        self.wanted = min(options.samples, max(fewest, int(options.budget / self.lasts)))

    def sample(self, begin: Callable[[], None]) -> float:
        """Mean seconds per call of `repeat` calls, after a pause and untimed calls: a warm-up, or `repeat` calls."""
        begin()
        self.prepare()
        calls = cycle(self.runs)
        if not self.is_raced:
            self.sleep(self.settle)
        if self.is_long:
            pass
        elif self.is_raced:
            self.caller(calls, begin).window(self.settle)
        elif self.is_steady:
            self.warm_ups.append(warm_up(self.caller(calls, begin)))
        else:
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

    def caller(self, calls: Iterator[Run], begin: Callable[[], None]) -> BatchCaller:
        """A `BatchCaller` of batches of these calls."""
        return BatchCaller(calls, self.repeat, self.prepare, begin, self.clock)

    def is_due(self, turn: int, turns: int) -> bool:
        """Whether this candidate takes a sample in this turn; its samples are spread evenly over all turns."""
        return (turn + 1) * self.wanted // turns > turn * self.wanted // turns


def take_samples(candidates: Sequence[Timed], options: Options, begin: Callable[[int], None]) -> float | None:
    """Fill `samples` of all candidates; returns the average number of processors that other processes used.

    `begin` is called with the candidate's index before each sample and warm-up. With a limit (`options.total`),
    candidates whose calibration has not begun after half of it get no samples, and no turn but the first begins after
    its end; outside races, the first `FEWEST_PAIRS` turns may take twice the limit. Samples under foreign load are
    kept, as the load affects all samples of a turn.
    """
    clock = candidates[0].clock
    start = clock()
    ready: list[tuple[int, Timed]] = []
    left = options.total
    # Brief candidates come last, so that their calls do not use up the time of the others.
    for index, candidate in sorted(enumerate(candidates), key=lambda each: each[1].is_brief):
        if candidate.is_brief or len(ready) < 2 or left is None or options.total is None or left > options.total / 2:
            candidate.calibrate(options, partial(begin, index), alone=len(candidates) == 1)
            ready.append((index, candidate))
        if options.total is not None and not candidate.is_brief:
            left = options.total - (clock() - start) * 1e-9
    ready.sort(key=lambda each: each[0])
    _choose_turns([candidate for _, candidate in ready], options, left)
    meter = LoadMeter.start()
    ends: tuple[float, float] | None = None
    if options.total is not None and left is not None:
        end = clock() + left * 1e9
        ends = end, end if options.even else end + options.total * 1e9
    _take_turns(ready, begin, ends)
    return meter.foreign()


def _choose_turns(candidates: Sequence[Timed], options: Options, left: float | None) -> None:
    """Reduce the numbers of samples to the time `left`; in races they are equal, and fill `_LEAST` seconds."""
    others = [each for each in candidates if not each.is_brief] or candidates
    if left is not None:
        fewest = 1 if options.even else _FEWEST if len(candidates) == 1 else FEWEST_PAIRS
        turns = max(fewest, int(left / sum(each.lasts + each.settle for each in others)))
        for each in others:
            each.wanted = min(each.wanted, turns)
    seconds = sum(each.wanted * (each.lasts + each.settle) for each in others)
    for each in candidates:
        if each.is_brief and len(others) < len(candidates):
            each.wanted = max(1, min(BRIEF, each.wanted, int(seconds / (each.lasts + each.settle))))
    if options.even:
        turns = min(candidate.wanted for candidate in candidates)
        for candidate in candidates:
            candidate.wanted = turns
            candidate.settle = max(BRIEFLY, _LEAST / (turns * len(candidates)))


def _take_turns(
    candidates: Sequence[tuple[int, Timed]], begin: Callable[[int], None], ends: tuple[float, float] | None
) -> None:
    """Take samples in turns, which begin before `ends[0]`; the first `FEWEST_PAIRS` turns begin before `ends[1]`."""
    turns = max(candidate.wanted for _, candidate in candidates)
    for _, candidate in candidates:
        candidate.samples, candidate.turns, candidate.warm_ups, candidate.loop = [], [], [], None
    for turn in range(turns):
        if turn > 0 and ends is not None and candidates[0][1].clock() > ends[turn < FEWEST_PAIRS]:
            break
        # Every second turn runs in reverse order, so that no candidate always follows the same neighbour.
        for index, candidate in candidates if turn % 2 == 0 else reversed(candidates):
            if candidate.is_due(turn, turns):
                candidate.samples.append(candidate.sample(partial(begin, index)))
                candidate.turns.append(turn)
    for index, candidate in candidates:
        if candidate.is_steady and not candidate.is_brief:
            candidate.take_loop(partial(begin, index))
