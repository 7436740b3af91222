"""The FP subsystem: issue, FPU, register file, loads and stores (snitch_fp_ss.sv)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from pdojo.backends.snitch.simulator import causes
from pdojo.backends.snitch.simulator.configuration import Configuration
from pdojo.backends.snitch.simulator.lane import Lane
from pdojo.backends.snitch.simulator.memory import MemoryRequest, SimulatedMemory
from pdojo.backends.snitch.simulator.operation import (
    COMPUTE,
    LOAD,
    SPARE,
    STORE,
    TO_INTEGER,
    FloatOperation,
    FpuPipeline,
    OperandView,
)
from pdojo.backends.snitch.simulator.rounding import CANONICAL

if TYPE_CHECKING:
    from pdojo.backends.snitch.simulator.core import Core

Result: TypeAlias = tuple[int, int, float, FpuPipeline, int]
"""A result in the FPU: time of leaving, destination, value, pipeline, and extra cycles on the way to the core."""


class FloatUnit:
    """Executes floating-point operations in order, one per cycle."""

    __slots__ = (
        "_depth",
        "_freed",
        "_in_flight",
        "_limit",
        "core",
        "issued",
        "lanes",
        "memory",
        "pipe",
        "ready",
        "streaming",
        "trace",
        "values",
    )

    def __init__(self, configuration: Configuration, memory: SimulatedMemory, lanes: list[Lane], core: Core) -> None:
        self.memory, self.lanes, self.core = memory, lanes, core
        self.values: list[float] = [CANONICAL] * 64
        """Contents of FP registers (0 to 31), stream elements (from 32), and spare places."""
        self.ready = [0] * 64
        """The cycle from which each register can be read."""
        self.pipe: deque[Result] = deque()
        """Results in the FPU, in the order in which they will leave."""
        self.streaming = False
        self.issued = 0
        """Number of operations that the FPU has executed: arithmetic, comparisons, conversions and moves."""
        self.trace: list[tuple[int, str, int, int]] | None = None
        self._in_flight = 0
        self._freed = -1
        self._limit = configuration.outstanding
        self._depth = configuration.stream_fifo

    def issue(self, operation: FloatOperation, argument: int, first: bool, now: int) -> int:
        """Issue an operation; returns `causes.NONE`, or the cause of a wait."""
        view = operation.streaming if self.streaming else operation.plain
        ready = self.ready
        for register in view.registers:
            if ready[register] > now:
                return causes.OPERAND
        for lane in view.lanes:
            fifo = lane.fifo
            if not fifo or fifo[0][0] > now:
                if lane.writes:
                    raise self.core.trap(operation.instruction, reads_a_writer(lane))
                return causes.STREAM
        if operation.kind != COMPUTE:
            return self._other(operation, view, argument, first, now)
        return self._compute(operation, view, argument, now)

    def _compute(self, operation: FloatOperation, view: OperandView, argument: int, now: int) -> int:
        """Start an operation whose operands are ready; returns like `issue`."""
        group = operation.group
        if group.count >= group.stages or group.free > now:
            return causes.BUSY
        values = self.values
        for lane in view.lanes:
            values[lane.slot] = lane.take()
        if operation.takes_integer:
            values[SPARE + 1] = argument
        destination = view.destination
        if 32 <= destination < SPARE:
            lane = self.lanes[destination - 32]
            if not lane.writes and lane.unread:
                raise self.core.trap(operation.instruction, writes_a_reader(lane))
        result = operation.function(values[view.a], values[view.b], values[view.c])
        leaves = now + operation.latency
        pipe = self.pipe
        if pipe and pipe[-1][0] >= leaves:
            self._insert((leaves, destination, result, group, operation.order))
        else:
            pipe.append((leaves, destination, result, group, operation.order))
        group.count += 1
        if operation.interval:
            group.free = now + operation.interval
        if destination < 32:
            self.ready[destination] = causes.INFINITE
        self.issued += 1
        operation.count += 1
        if self.trace is not None:
            self.trace.append((now, "fp", operation.index, 0))
        return 0

    def _insert(self, result: Result) -> None:
        """Add a result. Only one leaves the FPU per cycle, so it takes the next free cycle."""
        pipe = list(self.pipe)
        leaves = result[0]
        times = {entry[0] for entry in pipe}
        while leaves in times:
            leaves += 1
        at = sum(entry[0] < leaves for entry in pipe)
        pipe.insert(at, (leaves, *result[1:]))
        self.pipe = deque(pipe)

    def _other(self, operation: FloatOperation, view: OperandView, argument: int, first: bool, now: int) -> int:
        """Issue a load or store, or switch streams on or off; returns like `issue`."""
        memory = self.memory
        if operation.kind in (LOAD, STORE):
            waiting = len(memory.float_requests) + (memory.float_taken == now)
            if self._in_flight + (self._freed == now) >= self._limit or waiting >= 2:
                return causes.MEMORY
            for lane in view.lanes:
                self.values[lane.slot] = lane.take()
            store = operation.kind == STORE
            value = self.values[view.a] if store else 0.0
            register = operation.instruction.rd
            memory.float_requests.append(
                MemoryRequest(now + 1, argument, operation.size, store, value, register, False, first)
            )
            self._in_flight += 1
            if not store:
                self.ready[register] = causes.INFINITE
        else:
            self.streaming = operation.switch
        operation.count += 1
        if self.trace is not None:
            self.trace.append((now, "fp", operation.index, 0))
        return 0

    def output(self, now: int) -> bool:
        """Move results and loads to the registers through their only write port; returns whether anything moved."""
        pipe = self.pipe
        port = False
        moved = False
        if pipe and pipe[0][0] <= now:
            _, destination, value, group, order = pipe[0]
            if destination < 32:
                self.values[destination] = value
                self.ready[destination] = now + 1
                port = moved = True
            elif destination < TO_INTEGER:
                port = True
                lane = self.lanes[destination - 32] if destination < SPARE else None
                if lane is not None and lane.writes and len(lane.out) < self._depth:
                    lane.out.append((now + 1, value))
                    moved = True
            else:
                self.core.respond(now + order, destination - TO_INTEGER, int(value))
                moved = True
            if moved:
                pipe.popleft()
                group.count -= 1
        responses = self.memory.float_responses
        if responses and responses[0].time <= now and (responses[0].store or not port):
            response = responses.popleft()
            if not response.store:
                self.values[response.register] = response.value
                self.ready[response.register] = now + 1
            self._in_flight -= 1
            self._freed = now
            if response.first:
                self.core.retire_float_access()
            moved = True
        return moved

    @property
    def busy(self) -> bool:
        """Whether any result or memory access is in flight."""
        return bool(self.pipe or self._in_flight)


def reads_a_writer(lane: Lane) -> str:
    """The error for reading a stream that is configured for writing; the hardware would not wait."""
    return f"reads SSR{lane.number}, whose stream of line {lane.line} writes: hardware does not wait, but gives garbage"


def writes_a_reader(lane: Lane) -> str:
    """The error for writing a stream that is configured for reading."""
    elements = "1 element is" if lane.unread == 1 else f"{lane.unread} elements are"
    return (
        f"writes to SSR{lane.number}, of whose read stream {elements} still to be read: hardware takes the result "
        "for a read, and loses both"
    )
