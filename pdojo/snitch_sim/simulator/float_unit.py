"""The FP subsystem: issue, FPU, register file, loads and stores (snitch_fp_ss.sv)."""

from __future__ import annotations

from typing import TypeAlias

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.core import Core
from pdojo.snitch_sim.simulator.fpu import INNER, OUTER, Block, FpuPipeline
from pdojo.snitch_sim.simulator.lane import Lane
from pdojo.snitch_sim.simulator.memory import MemoryRequest, Response, SimulatedMemory
from pdojo.snitch_sim.simulator.operation import (
    COMPUTE,
    LOAD,
    SPARE,
    STORE,
    TO_INTEGER,
    FloatOperation,
    OperandView,
)
from pdojo.snitch_sim.simulator.rounding import CANONICAL

CORE_RESPONSES = 2
"""Capacity of the register for the memory's responses to the core (reqrsp_iso.sv, a spill register)."""
Result: TypeAlias = tuple[int, int, float, FpuPipeline]
"""A result in the FPU: the earliest cycle in which it can leave, destination, value, pipeline."""
Choice: TypeAlias = tuple[int, int, int]
"""A choice of the arbiters: a result's position in the pipe, and the next turns of the arbiters of FPU and block."""


class FloatUnit:
    """Executes floating-point operations in order, one per cycle."""

    __slots__ = (
        "_answer",
        "_depth",
        "_division",
        "_freed",
        "_in_flight",
        "_limit",
        "_turn",
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
        self.pipe: list[Result] = []
        """Results in the FPU, by the cycle in which they can leave; without the divider's input register."""
        self.streaming = False
        self.issued = 0
        """Number of operations that the FPU has executed: arithmetic, comparisons, conversions and moves."""
        self.trace: list[tuple[int, str, int, int]] | None = None
        self._turn = 0
        """The FPU block whose turn it is at the arbiter."""
        self._in_flight = 0
        self._freed = -1
        self._limit = configuration.outstanding
        self._depth = configuration.stream_fifo
        self._answer = configuration.timing.answer
        self._division = configuration.timing.division

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
        pipeline = operation.pipeline
        if operation.packed and pipeline.dividing:
            self._refuse_packed_division(operation, pipeline)
        if pipeline.count >= pipeline.stages:
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
        if operation.iterations is not None:
            self._divide(pipeline, operation.iterations(values[view.a], values[view.b]), (destination, result), now)
            pipeline.dividing.append(operation.instruction)
        else:
            self._enter((now + pipeline.stages, destination, result, pipeline))
        pipeline.count += 1
        if destination < 32:
            self.ready[destination] = causes.INFINITE
        self.issued += 1
        operation.count += 1
        if self.trace is not None:
            self.trace.append((now, "fp", operation.index, 0))
        return 0

    def _refuse_packed_division(self, operation: FloatOperation, pipeline: FpuPipeline) -> None:
        """Raise SimulationError if a packed division or root comes while a scalar one is in the divider.

        The dividers of the upper lanes, which do not see the scalar operation, take packed operands again in each cycle
        in which the lowest lane is not ready (fpnew_opgroup_multifmt_slice.sv: `in_ready_o` belongs to lane 0), and a
        lane that has computed before keeps them until all lanes are ready (fpnew_divsqrt_th_64_multi.sv; m).
        """
        scalar = next((i for i in pipeline.dividing if not i.name.startswith("v")), None)
        if scalar is not None:
            raise self.core.trap(operation.instruction, divides_behind(scalar))

    def _divide(self, pipeline: FpuPipeline, iterations: int, result: tuple[int, float], now: int) -> None:
        """Start a division or root: a destination and a value; or let it wait in the input register."""
        # From the input register's cycle to the one in which the result can leave.
        cycles = self._division - 2 + iterations
        if pipeline.count:
            pipeline.waiting = cycles, *result
        else:
            self._enter((now + 1 + cycles, *result, pipeline))

    def _enter(self, result: Result) -> None:
        pipe = self.pipe
        if not pipe or pipe[-1][0] <= result[0]:
            pipe.append(result)
            return
        at = len(pipe) - 1
        while at and pipe[at - 1][0] > result[0]:
            at -= 1
        pipe.insert(at, result)

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
            at, turn, inner = self._chosen(now)
            _, destination, value, pipeline = pipe[at]
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
            elif self.core.accepts(now):
                self.core.respond(now + self._answer, destination - TO_INTEGER, int(value))
                moved = True
            if moved:
                del pipe[at]
                pipeline.count -= 1
                if pipeline.dividing:
                    pipeline.dividing.popleft()
                self._turn, pipeline.block.turn = turn, inner
                if pipeline.waiting is not None:
                    self._start(pipeline, now)
        responses = self.memory.responses
        if responses and responses[0].time <= now and self._passes(responses[0], port=port):
            self._respond(responses.popleft(), now)
            moved = True
        return moved

    def _passes(self, response: Response, *, port: bool) -> bool:
        """Whether the memory's next response is taken; `port`: the FP registers' write port is in use."""
        if response.floating:
            return response.store or not port
        return len(self.memory.core_responses) < CORE_RESPONSES

    def _respond(self, response: Response, now: int) -> None:
        """Take the memory's response to a load or store; the core's goes through a register."""
        if not response.floating:
            self.memory.core_responses.append(response._replace(time=now + 1))
            return
        if not response.store:
            self.values[response.register] = response.value
            self.ready[response.register] = now + 1
        self._in_flight -= 1
        self._freed = now
        if response.first:
            self.core.retire_float_access()

    def _start(self, pipeline: FpuPipeline, now: int) -> None:
        """Start the division in the input register."""
        assert pipeline.waiting is not None
        cycles, destination, value = pipeline.waiting
        pipeline.waiting = None
        self._enter((now + cycles, destination, value, pipeline))

    def _chosen(self, now: int) -> Choice:
        """The result that the arbiters let leave; at least one can."""
        pipe = self.pipe
        if len(pipe) == 1 or pipe[1][0] > now:
            pipeline = pipe[0][3]
            return 0, pipeline.block.number, pipeline.number
        finished = [result[3] for result in pipe if result[0] <= now]
        blocks = 0
        for pipeline in finished:
            blocks |= pipeline.block.bit
        number, turn = OUTER[self._turn][blocks]
        block, asking = _asking(finished, number)
        first, inner = INNER[block.turn][asking]
        # The results of a pipeline leave in order.
        return finished.index(block.pipelines[first]), turn, inner

    @property
    def busy(self) -> bool:
        """Whether any result or memory access is in flight."""
        return bool(self.pipe or self._in_flight)


def _asking(finished: list[FpuPipeline], number: int) -> tuple[Block, int]:
    """The block with a number, and the mask of its pipelines with finished results."""
    pipelines = [pipeline for pipeline in finished if pipeline.block.number == number]
    asking = 0
    for pipeline in pipelines:
        asking |= pipeline.bit
    return pipelines[0].block, asking


def reads_a_writer(lane: Lane) -> str:
    """The error for reading a stream that is configured for writing; the hardware would not wait."""
    return f"reads SSR{lane.number}, whose stream of line {lane.line} writes: hardware does not wait, but gives garbage"


def divides_behind(scalar: Instruction) -> str:
    """The error for a packed division or root after a scalar one; the hardware mixes up the upper lanes."""
    return (
        f"divides lanes while the scalar '{scalar.text}' of line {scalar.line} is in the divider: hardware may repeat "
        "the upper lanes of another quotient. Read its result first"
    )


def writes_a_reader(lane: Lane) -> str:
    """The error for writing a stream that is configured for reading."""
    elements = "1 element is" if lane.unread == 1 else f"{lane.unread} elements are"
    return (
        f"writes to SSR{lane.number}, of whose read stream {elements} still to be read: hardware takes the result "
        "for a read, and loses both"
    )
