"""The simulation of a program on one core complex, cycle by cycle; cycles without events are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.errors import CycleLimit, Deadlock, SimulationError, UsageError
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.program import TCDM_BASE, AssembledProgram
from pdojo.snitch_sim.assembler.registers import INTEGER
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.core import Core, CoreStep
from pdojo.snitch_sim.simulator.deadlock import explain
from pdojo.snitch_sim.simulator.float_unit import FloatUnit
from pdojo.snitch_sim.simulator.integer import MASK
from pdojo.snitch_sim.simulator.lane import WRITE, BadStream, Lane
from pdojo.snitch_sim.simulator.memory import SimulatedMemory
from pdojo.snitch_sim.simulator.operation import Decoder, FloatOperation
from pdojo.snitch_sim.simulator.result import LineCounts, Result, TraceEvent, by_cause, total
from pdojo.snitch_sim.simulator.sequencer import Sequencer
from pdojo.snitch_sim.simulator.steps import END, StepDecoder

CYCLES = 10_000_000
"""Default limit in cycles, above which a program counts as hanging."""


class Complex:
    """A core complex with a loaded program."""

    def __init__(
        self, program: AssembledProgram, configuration: Configuration, memory: bytearray, *, trace: bool
    ) -> None:
        self.program, self.configuration = program, configuration
        self.memory = SimulatedMemory(configuration, memory)
        self.core = Core(configuration, self.memory, program.source)
        self.lanes = [Lane(number, configuration, self.memory) for number in range(configuration.lanes)]
        self.core.lanes = self.lanes
        decoder = Decoder(configuration, self.lanes, program.source)
        self.floats = FloatUnit(configuration, self.memory, self.lanes, self.core)
        self.core.issue_float = self.floats.issue
        self.sequencer = self.core.sequencer = Sequencer(configuration, decoder)
        self.steps = StepDecoder(self.core, decoder, configuration, program)
        self.core.steps.extend(
            _decoded(self.steps, i, instruction) for i, instruction in enumerate(program.instructions)
        )
        self.trace: list[tuple[int, str, int, int]] | None = [] if trace else None
        self.core.trace = self.floats.trace = self.memory.trace = self.trace
        self.fp_stalls = [0] * causes.COUNT
        self._waiting: tuple[FloatOperation, int] | None = None
        """The operation that the FP subsystem could not issue in this cycle, and the cause."""
        self.core_cycles = 0

    def run(self, limit: int) -> int:
        """Run to the end; returns the number of cycles. Raises SimulationError."""
        now = last = 0
        while now < limit:
            if self._cycle(now):
                last = now
                now += 1
            elif self._finished():
                return last + 1
            else:
                now = self._skip(now)
        raise CycleLimit(f"{self.program.source}: no end after {limit} cycles; {self._explanation(now)}")

    def _explanation(self, now: int) -> str:
        return explain(self.core, self.sequencer, self.floats, now)

    def _cycle(self, now: int) -> bool:
        """Run one cycle of the units, in the order in which signals pass; returns whether anything happened."""
        memory, sequencer, core = self.memory, self.sequencer, self.core
        moved = self.floats.output(now)
        if (memory.running or memory.core_requests or memory.float_requests) and memory.step(now):
            moved = True
        self._waiting = None
        head = sequencer.head
        if head is not None:
            cause = self.floats.issue(head[0], head[1], sequencer.first, now)
            if cause:
                self._stalled(head[0], cause, now)
            else:
                sequencer.advance(now)
                moved = True
        if core.offload and self._dispatch(now, empty=head is None):
            moved = True
        if core.step is not None or core.responses or memory.core_responses:
            moved = core.issue(now) or moved
            if core.step is None and not self.core_cycles:
                self.core_cycles = now + 1
        return moved

    def _dispatch(self, now: int, *, empty: bool) -> bool:
        """Dispatch the first offloaded instruction; `empty`: the FP subsystem's ring was empty."""
        core = self.core
        item = core.offload[0]
        core.blocked = 0
        core.crowded = len(core.offload) >= self.configuration.offload
        if core.dispatch(now, direct=empty):
            return True
        if core.refused:
            assert item.operation is not None
            self._stalled(item.operation, core.blocked, now)
        return False

    def _stalled(self, operation: FloatOperation, cause: int, now: int) -> None:
        self._waiting = (operation, cause)
        operation.stalls[cause] += 1
        self.fp_stalls[cause] += 1
        if self.trace is not None:
            self.trace.append((now, "fp", operation.index, cause))

    def _finished(self) -> bool:
        core, memory = self.core, self.memory
        idle = core.step is None and not core.offload and not core.responses and not core.in_flight
        if not idle or self.sequencer.head is not None or self.sequencer.loops or self.floats.busy:
            return False
        return not any(lane.writes and lane.out for lane in memory.running)

    def _skip(self, now: int) -> int:
        """The next cycle in which something can happen. Raises Deadlock if there is none."""
        following = min(self._times(now), default=0)
        if not following:
            raise Deadlock(f"{self.program.source}: deadlock in cycle {now}: {self._explanation(now)}")
        skipped = following - now - 1
        if skipped:
            if self._waiting is not None:
                operation, cause = self._waiting
                operation.stalls[cause] += skipped
                self.fp_stalls[cause] += skipped
            if self.core.step is not None and self.core.stall:
                self.core.step.stalls[self.core.stall] += skipped
        return following

    def _times(self, now: int) -> list[int]:
        """The later cycles in which things in flight become ready."""
        core, memory, floats = self.core, self.memory, self.floats
        times = [lane.start for lane in memory.running]
        times += [queue[0][0] for lane in self.lanes for queue in (lane.fifo, lane.out) if queue]
        times += [queue[0].time for queue in (memory.core_requests, memory.float_requests) if queue]
        times += [queue[0].time for queue in (memory.core_responses, memory.responses) if queue]
        times += [result[0] for result in floats.pipe]
        if core.responses:
            times.append(core.responses[0][0])
        if core.step is not None:
            times += [core.ready[r] for r in core.step.waits]
        head = self.sequencer.head
        operation = head[0] if head is not None else core.offload[0].operation if core.offload else None
        if operation is not None:
            times += [floats.ready[r] for r in operation.plain.registers]
        if core.offload:
            times.append(core.divider_free)
        return [time for time in times if now < time < causes.INFINITE]


def _decoded(decoder: StepDecoder, index: int, instruction: Instruction) -> CoreStep:
    """The step of an instruction; for an unmodelled one, running the step raises SimulationError."""
    try:
        return decoder.decode(index, instruction)
    except SimulationError as error:
        step, message = CoreStep(index, instruction), str(error)

        def fail(now: int) -> int:
            raise SimulationError(message)

        step.run = fail
        return step


def simulate(
    program: AssembledProgram,
    configuration: Configuration | None = None,
    *,
    entry: str = "",
    arguments: Sequence[int] | Mapping[str, int] = (),
    memory: bytearray | None = None,
    limit: int = CYCLES,
    trace: bool = False,
) -> Result:
    """Call a function of a program and run it to its end.

    `entry` is a label, by default the first function. `arguments` are a0, a1, ... or registers by name. `memory` is the
    TCDM, which begins at `TCDM_BASE`; the program's data are copied to its beginning, and the program changes it.
    Raises SimulationError for operations that the hardware lacks, Deadlock, and CycleLimit above `limit` cycles.
    """
    configuration = configuration or Configuration()
    if memory is None:
        memory = bytearray(configuration.memory_bytes)
    if len(memory) != configuration.memory_bytes:
        raise UsageError(f"the memory has {len(memory)} bytes; '{configuration.name}' has {configuration.memory_bytes}")
    if len(program.data) > len(memory):
        raise UsageError(f"{program.source}: {len(program.data)} bytes of data do not fit the memory of {len(memory)}")
    memory[: len(program.data)] = program.data
    machine = Complex(program, configuration, memory, trace=trace)
    registers = machine.core.registers
    registers[INTEGER["ra"]] = END
    registers[INTEGER["sp"]] = TCDM_BASE + configuration.memory_bytes
    for register, value in _registers(arguments).items():
        registers[register] = value & MASK
    if not entry and not program.functions:
        raise UsageError(f"{program.source}: no function to call")
    machine.core.step = machine.core.steps[program.index(entry or program.functions[0])]
    try:
        cycles = machine.run(limit)
    except BadStream as error:
        raise SimulationError(f"{program.source}: {error}") from None
    for lane in machine.lanes:
        if left := lane.left():
            raise SimulationError(
                f"{program.source}: at the end, {left}; the next job of the stream would hang or mix them up"
            )
    return _result(machine, cycles)


def _registers(arguments: Sequence[int] | Mapping[str, int]) -> dict[int, int]:
    if isinstance(arguments, Mapping):
        unknown = [name for name in arguments if name not in INTEGER]
        if unknown:
            raise UsageError(f"'{unknown[0]}' is no integer register")
        return {INTEGER[name]: value for name, value in arguments.items()}
    if len(arguments) > 8:
        raise UsageError(f"{len(arguments)} arguments; registers a0 to a7 take 8")
    return {INTEGER[f"a{k}"]: value for k, value in enumerate(arguments)}


def _event(cycle: int, unit: str, index: int, code: int) -> TraceEvent:
    if unit == "ssr":
        return TraceEvent(cycle, unit, index, "write" if code == WRITE else "read")
    return TraceEvent(cycle, unit, index, causes.NAMES[code])


def _result(machine: Complex, cycles: int) -> Result:
    core, floats = machine.core, machine.floats
    operations: dict[int, list[FloatOperation]] = {}
    for operation in machine.steps.operations:
        operations.setdefault(operation.index, []).extend((operation, *operation.variants.values()))
    lines: list[LineCounts] = []
    flops = issued = 0
    for step in core.steps:
        mine = operations.get(step.index)
        stalls = by_cause(step.stalls)
        if mine is None:
            lines.append(LineCounts(step.index, step.count, stalls))
            continue
        count = sum(o.count for o in mine)
        issued += count
        flops += sum(o.count * o.flops for o in mine)
        lines.append(LineCounts(step.index, count, by_cause(mine[0].stalls), stalls, step.count))
    return Result(
        program=machine.program,
        cycles=cycles,
        core_cycles=machine.core_cycles,
        lines=tuple(lines),
        flops=flops,
        fpu_operations=floats.issued,
        fp_instructions=issued,
        core_instructions=sum(step.count for step in core.steps),
        fp_stalls=by_cause(machine.fp_stalls),
        core_stalls=total([by_cause(step.stalls) for step in core.steps]),
        bank_conflicts=machine.memory.conflicts,
        stream_elements=tuple(lane.moved for lane in machine.lanes),
        events=tuple(_event(*event) for event in machine.trace or ()),
    )
