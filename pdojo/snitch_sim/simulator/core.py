"""The integer core: one stage, in order, a scoreboard, one write port (snitch.sv). Behind it, one register feeds FP
subsystem, stream configuration, multiplier and divider in order (snitch_cc.sv).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator import causes
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.integer import DIVIDE, MULTIPLY, quotient_bits
from pdojo.snitch_sim.simulator.lane import BadStream, Lane
from pdojo.snitch_sim.simulator.memory import SimulatedMemory
from pdojo.snitch_sim.simulator.operation import FloatOperation, trap
from pdojo.snitch_sim.simulator.sequencer import HardwareLoop, Sequencer

BUFFERED, DIRECT, LOOP, STREAM, MULTIPLIER, DIVIDER = range(6)


class Offloaded(NamedTuple):
    """An instruction that the core has handed to another unit."""

    kind: int
    instruction: Instruction
    operation: FloatOperation | None
    first: int
    """The value of rs1, or an address."""
    second: int


class CoreStep:
    """A decoded instruction of the core."""

    __slots__ = ("count", "index", "instruction", "port", "run", "stalls", "waits")

    def __init__(self, index: int, instruction: Instruction) -> None:
        self.index = index
        self.instruction = instruction
        self.waits: tuple[int, ...] = ()
        """Registers that must hold their final value."""
        self.port = False
        """Whether it needs the register write port at issue."""
        self.run: Callable[[int], int] = _never
        """Executes it in a cycle; returns the index of the next instruction, or the negated cause of a wait."""
        self.count = 0
        self.stalls = [0] * causes.COUNT


def _never(now: int) -> int:
    raise AssertionError(now)


class Core:
    """Registers, scoreboard and instructions in flight."""

    __slots__ = (
        "_configuration",
        "_divider_free",
        "_retiring",
        "blocked",
        "crowded",
        "in_flight",
        "issue_float",
        "lanes",
        "memory",
        "offload",
        "pending_floats",
        "program",
        "ready",
        "refused",
        "registers",
        "responses",
        "sequencer",
        "source",
        "stall",
        "step",
        "steps",
        "trace",
    )

    def __init__(self, configuration: Configuration, memory: SimulatedMemory, source: str) -> None:
        self._configuration = configuration
        self.memory = memory
        self.source = source
        self.registers = [0] * 32
        self.ready = [0] * 32
        self.steps: list[CoreStep] = []
        self.step: CoreStep | None = None
        """The next instruction to issue; None after the end."""
        self.offload: deque[Offloaded] = deque()
        self.responses: list[tuple[int, int, int]] = []
        """Results of multiplier, divider and FP subsystem, as (arrival time, register, value)."""
        self.pending_floats: deque[tuple[int, bool]] = deque()
        """The words of FP loads and stores in flight, and whether each is a store."""
        self.in_flight = 0
        self.blocked = 0
        """The cause for which the first offloaded instruction waits."""
        self.refused = False
        """Whether the first offloaded instruction waits because the FP subsystem could not issue it."""
        self.crowded = False
        """Whether the register between core and FP subsystem was full at the start of the cycle."""
        self.stall = 0
        self.trace: list[tuple[int, str, int, int]] | None = None
        self._divider_free = 0
        self._retiring = 0
        self.issue_float: Callable[[FloatOperation, int, bool, int], int]
        self.sequencer: Sequencer
        self.lanes: list[Lane] = []

    # One cycle

    def issue(self, now: int) -> bool:
        """Issue an instruction and write back results; returns whether anything happened."""
        step = self.step
        port = issued = False
        retiring, self._retiring = self._retiring, 0
        if step is not None:
            ready = self.ready
            self.stall = 0
            for register in step.waits:
                if ready[register] > now:
                    self.stall = causes.OPERAND
                    step.stalls[causes.OPERAND] += 1
                    break
            else:
                following = step.run(now)
                if following >= 0:
                    step.count += 1
                    issued, port = True, step.port
                    self.step = self.steps[following] if following < len(self.steps) else None
                    if self.trace is not None:
                        self.trace.append((now, "core", step.index, 0))
                else:
                    self.stall = -following
                    step.stalls[-following] += 1
            if self.stall and self.trace is not None:
                self.trace.append((now, "core", step.index, self.stall))
        for _ in range(retiring):
            self.pending_floats.popleft()
        if not port and (self.responses or self.memory.core_responses):
            return self._write_back(now) or issued
        if port and self.memory.core_responses:
            return self._stores(now) or issued
        return issued

    def _write_back(self, now: int) -> bool:
        """Write back a load, or else another unit's result; returns whether anything happened."""
        arrived = self.memory.core_responses
        if arrived and arrived[0].time <= now:
            response = arrived.popleft()
            self.in_flight -= 1
            if not response.store:
                self._write(response.register, int(response.value), now)
                return True
            # A store's response needs no write port.
            if not self.responses or self.responses[0][0] > now:
                return True
        if self.responses and self.responses[0][0] <= now:
            _, register, value = self.responses.pop(0)
            self._write(register, value, now)
            return True
        return False

    def _stores(self, now: int) -> bool:
        arrived = self.memory.core_responses
        if arrived[0].time <= now and arrived[0].store:
            arrived.popleft()
            self.in_flight -= 1
            return True
        return False

    def _write(self, register: int, value: int, now: int) -> None:
        if register:
            self.registers[register] = value
            self.ready[register] = now + 1

    def respond(self, time: int, register: int, value: int) -> None:
        """Accept another unit's result, which arrives at `time`."""
        insort(self.responses, (time, register, value))

    def accepts(self, now: int) -> bool:
        """Whether the register between FPU and core, of two entries, takes a result in this cycle."""
        responses = self.responses
        return len(responses) < 2 or responses[1][0] > now

    def retire_float_access(self) -> None:
        """Record the end of an FP load or store, which the core sees in the next cycle."""
        self._retiring += 1

    # Offloaded instructions

    def dispatch(self, now: int, *, direct: bool) -> bool:
        """Dispatch the first offloaded instruction if possible; `direct`: the FP subsystem's ring was empty."""
        item = self.offload[0]
        self.refused = False
        if item.kind == BUFFERED:
            gone = self._buffer(item, now)
        elif item.kind == DIRECT:
            gone = self._direct(item, now, empty=direct)
        elif item.kind == LOOP:
            gone = self.sequencer.accept(item.instruction, (item.first & 0xFFFFFFFF) + 1, now)
            self.blocked = causes.LOOP
        elif item.kind == STREAM:
            gone = self._configure(item, now)
            self.blocked = causes.CONFIGURED
        else:
            gone = self._compute(item, now)
        if gone:
            self.offload.popleft()
        return gone

    def _buffer(self, item: Offloaded, now: int) -> bool:
        assert item.operation is not None
        if self.sequencer.full(now):
            self.blocked = causes.QUEUE
            return False
        if item.operation.crosses:
            self._refuse_repetition(item.instruction, self.sequencer.filled)
        self.sequencer.write(item.operation, item.first)
        return True

    def _direct(self, item: Offloaded, now: int, *, empty: bool) -> bool:
        operation = item.operation
        assert operation is not None
        if not empty:
            self.blocked = causes.ORDER
            return False
        self._refuse_repetition(item.instruction, self.sequencer.loops[0] if self.sequencer.active else None)
        cause = self.issue_float(operation, item.first, True, now)
        if cause:
            self.blocked, self.refused = cause, True
            return False
        return True

    def _refuse_repetition(self, instruction: Instruction, loop: HardwareLoop | None) -> None:
        """Raise SimulationError if a hardware loop contains an instruction that uses integer registers."""
        if loop is not None:
            line = loop.instruction.line
            raise self.trap(instruction, f"inside of the hardware loop of line {line}, where it cannot be repeated")

    def _configure(self, item: Offloaded, now: int) -> bool:
        code = item.instruction.imm if item.instruction.name == "scfgwi" else item.second
        number, register = code & 31, code >> 5 & 0x7F
        if item.instruction.name == "scfgr":
            if register or number >= len(self.lanes):
                raise self.trap(item.instruction, f"register {register} of stream {number} cannot be read; status is 0")
            # Read in this cycle; the value reaches the core's registers as late as a product does.
            self.respond(
                now + self._configuration.timing.multiply - 2, item.instruction.rd, self.lanes[number].status(now)
            )
            return True
        if number != 31 and number >= len(self.lanes):
            raise self.trap(item.instruction, f"there is no stream {number}; there are {len(self.lanes)}")
        chosen = self.lanes if number == 31 else [self.lanes[number]]
        if any(lane.pending is not None for lane in chosen):
            return False
        try:
            for lane in chosen:
                lane.write(register, item.first, now, item.instruction.line)
        except BadStream as error:
            raise self.trap(item.instruction, f"SSR{chosen[0].number}: {error}") from None
        return True

    def _compute(self, item: Offloaded, now: int) -> bool:
        """Multiply or divide. `now` is one cycle after the issue; results can be read a cycle after their writing."""
        name, timing = item.instruction.name, self._configuration.timing
        if item.kind == MULTIPLIER:
            arrives, value = now + timing.multiply - 2, MULTIPLY[name](item.first, item.second)
        elif self._divider_free > now:
            self.blocked = causes.DIVIDER
            return False
        else:
            steps = quotient_bits(item.first, item.second, is_signed=not name.endswith("u"))
            arrives, value = now + timing.divide - 2 + steps, DIVIDE[name](item.first, item.second)
            self._divider_free = now + steps + 2
        self.respond(arrives, item.instruction.rd, value)
        return True

    # Methods for instructions

    def trap(self, instruction: Instruction, message: str) -> Exception:
        """An error at an instruction."""
        return trap(self.source, instruction, message)

    @property
    def divider_free(self) -> int:
        """The cycle from which the divider accepts another division."""
        return self._divider_free
