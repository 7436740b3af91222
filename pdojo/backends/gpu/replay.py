"""Timing on a GPU: events around replays of a graph that contains a sample's calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from math import ceil
from typing import NoReturn

from pdojo.backends.gpu.driver import DriverError, GpuContext, Graph, Stream
from pdojo.backends.gpu.executable import DeviceCall
from pdojo.backends.measure.request import Options
from pdojo.backends.measure.steady import BatchCaller, Run, warm_up
from pdojo.backends.measure.timing import BRIEFLY, Timed

MOST_NODES = 1024
"""Most launches in a graph, unless one call on each set of arrays has more. A device runs a graph without the host,
which needs a few microseconds per launch."""


@dataclass
class Calls(BatchCaller):
    """Replays of a graph that has `each` calls of the candidate."""

    each: int = 1

    def window(self, seconds: float) -> tuple[float, int]:
        """Like the base method, with the times and numbers of calls, not of replays."""
        passed, replays = super().window(seconds)
        return passed / self.each, replays * self.each

    def first(self) -> float:
        """Seconds of a call in the first replay, on average."""
        return super().first() / self.each


@dataclass(frozen=True)
class _Sample:
    """The graph of a sample: it has `each` calls and is replayed `replays` times."""

    graph: Graph
    each: int
    replays: int


class Replayed(Timed):
    """A candidate on a GPU.

    A sample replays a graph between two events, after as many untimed replays. There is no pause before a sample unless
    samples are steady, as neither thread pools nor other work of the processor disturb a device. The graph rotates over
    all sets of arrays, so that no cold call has its arrays in the cache.
    """

    def __init__(
        self,
        gpu: GpuContext,
        stream: Stream,
        calls: Sequence[DeviceCall],
        prepare: Run,
        fail: Callable[[DriverError], NoReturn],
    ) -> None:
        """`calls` has one call per set of arrays; `fail` receives the driver's errors while samples are taken."""
        super().__init__([], prepare, clock=partial(_wait_and_look, stream))
        self._stream = stream
        self._calls = calls
        self._fail = fail
        self._start, self._end = gpu.event(), gpu.event()
        self._built: tuple[int, _Sample] | None = None

    def calibrate(self, options: Options, begin: Callable[[], None], *, alone: bool = False) -> None:
        """Choose the calls per sample and the number of samples."""
        if options.steady:
            self.calibrate_steady(options, begin)
            return
        self.is_raced = options.even
        self.settle = BRIEFLY if options.even else 0.0
        self.choose_repeat(options, begin)

    def sample(self, begin: Callable[[], None]) -> float:
        """Mean seconds per call."""
        try:
            return self._sample(begin)
        except DriverError as error:
            self._fail(error)

    def take_loop(self, begin: Callable[[], None]) -> None:
        """Time replays by the processor's clock, as an independent check of the events."""
        try:
            super().take_loop(begin)
        except DriverError as error:
            self._fail(error)

    def caller(self, calls: Iterator[Run], begin: Callable[[], None]) -> BatchCaller:
        """A `BatchCaller` that replays the graph of a sample and uses the processor's clock."""
        built = self._build()

        def replay() -> None:
            built.graph.launch(self._stream.handle)

        return Calls(cycle([replay]), built.replays, self.prepare, begin, self.clock, built.each)

    def _sample(self, begin: Callable[[], None]) -> float:
        begin()
        self.prepare()
        built = self._build()
        if self.is_raced:
            self.caller(iter(()), begin).window(self.settle)
        elif self.is_steady:
            self.sleep(self.settle)
            self.warm_ups.append(warm_up(self.caller(iter(()), begin)))
        else:
            self._replay(built)
        self._start.record(self._stream.handle)
        self._replay(built)
        self._end.record(self._stream.handle)
        self._end.synchronize()
        return self._end.seconds_since(self._start) / self.repeat

    def _replay(self, built: _Sample) -> None:
        for _ in range(built.replays):
            built.graph.launch(self._stream.handle)

    def _build(self) -> _Sample:
        """The graph and its replays for at least `repeat` calls; `repeat` becomes the exact number."""
        if self._built is None or self._built[0] != self.repeat:
            sets = len(self._calls)
            most = max(1, MOST_NODES // max(1, self._calls[0].launches * sets))
            rounds = ceil(self.repeat / sets)
            replays = ceil(rounds / most)
            each = ceil(rounds / replays)

            def record(stream: int) -> None:
                for _ in range(each):
                    for call in self._calls:
                        call(stream)

            self._built = None
            self.repeat = replays * each * sets
            self._built = (self.repeat, _Sample(self._stream.capture(record), each * sets, replays))
        return self._built[1]


def _wait_and_look(stream: Stream) -> int:
    """The processor's clock, in nanoseconds, after all work in the stream is done."""
    stream.synchronize()
    return time.perf_counter_ns()
