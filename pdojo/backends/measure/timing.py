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
FEWEST_PAIRS = 5
"""Fewest turns of a race, however long they take: a sign test of fewer pairs decides nothing."""
BRIEF = 5
"""Most samples of a subject that is timed briefly (`Options.brief`)."""
LONG = 0.05
"""A call of so many seconds needs no other call before it: a processor is awake, and caches are warm, long before it
ends."""
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
    is_brief: bool = False
    """Whether its samples must not take longer than those of the others together."""
    is_long: bool = False
    """Whether no call precedes a sample, because a call takes `LONG`."""
    lasts: float = 0.0
    """Seconds of a sample with the untimed calls before it."""
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
            # The first call may be long because the system provides memory.
            seconds = self.sample(begin)
        self.is_long = seconds >= LONG
        # In races the first call of a program is like the others: they work on the same arrays.
        if not self.is_long and not (self.is_raced and seconds >= BRIEFLY):
            seconds = self.sample(begin)
        # At least doubles, because the first calls of a short kernel are far slower than the later ones.
        while seconds * self.repeat < options.sample_seconds and self.repeat < _MOST_CALLS:
            self.repeat = min(_MOST_CALLS, max(2 * self.repeat, ceil(options.sample_seconds / max(seconds, 1e-9))))
            seconds = self.sample(begin)
        # As many untimed calls precede a sample.
        self.lasts = seconds * self.repeat * (1 if self.is_long else 2)
        self._choose_wanted(options)

    def calibrate_steady(self, options: Options, begin: Callable[[], None]) -> None:
        """The same by a single warm-up. Warm-ups are long enough for the load of the processors to be known."""
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
        """Seconds per call, the mean of `repeat` calls, after a pause and untimed calls: a warm-up, or as many."""
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

    def caller(self, calls: Iterator[Run], begin: Callable[[], None]) -> Caller:
        """Makes these calls in batches."""
        return Caller(calls, self.repeat, self.prepare, begin, self.clock)

    def is_due(self, turn: int, turns: int) -> bool:
        """Whether this candidate takes a sample in this turn: its samples are spread over all turns."""
        return (turn + 1) * self.wanted // turns > turn * self.wanted // turns


def take_samples(candidates: Sequence[Timed], options: Options, begin: Callable[[int], None]) -> float | None:
    """Fill `samples` of all candidates; returns the processors that other processes kept busy meanwhile.

    `begin` is called with the candidate's index before each sample and warm-up. With a limit (`options.total`) the
    candidates whose calibration has not begun after half of it get no samples, and no turn but the first begins after
    its end; if it is no race, `FEWEST_PAIRS` turns may take as long again. Load changes nothing: whatever disturbs a
    turn disturbs all of its samples.
    """
    clock = candidates[0].clock
    start = clock()
    ready: list[tuple[int, Timed]] = []
    left = options.total
    # Those that are timed briefly come last: their calls do not use up the time of the others.
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
    """Fit the numbers of samples to the limit; in races, make them equal and spread them over `_LEAST`."""
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
    """Take samples in turns; no turn begins after the first moment of `ends`, or the second for the first few."""
    turns = max(candidate.wanted for _, candidate in candidates)
    for _, candidate in candidates:
        candidate.samples, candidate.turns, candidate.warm_ups, candidate.loop = [], [], [], None
    for turn in range(turns):
        if turn > 0 and ends is not None and candidates[0][1].clock() > ends[turn < FEWEST_PAIRS]:
            break
        # Every second turn goes backwards, so that no candidate always follows the same neighbour.
        for index, candidate in candidates if turn % 2 == 0 else reversed(candidates):
            if candidate.is_due(turn, turns):
                candidate.samples.append(candidate.sample(partial(begin, index)))
                candidate.turns.append(turn)
    for index, candidate in candidates:
        if candidate.is_steady and not candidate.is_brief:
            candidate.take_loop(partial(begin, index))
