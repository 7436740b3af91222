"""The FREP sequencer: a ring of instructions and a nest of loops over it (snitch_sequencer.sv)."""

from __future__ import annotations

from collections import deque

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator.configuration import Configuration
from pdojo.snitch_sim.simulator.operation import Decoder, FloatOperation

Entry = tuple[FloatOperation, int]
"""An operation, with the address or integer operand from the core."""


class HardwareLoop:
    """A hardware loop. Positions count all instructions ever written to the ring."""

    __slots__ = ("base", "count", "end", "inner", "instruction", "iteration", "last", "mask", "maximum", "shift")

    def __init__(self, instruction: Instruction, base: int, trips: int) -> None:
        self.instruction = instruction
        self.base = base
        self.count = instruction.imm
        self.end = base + instruction.imm - 1
        self.last = trips - 1
        self.iteration = 0
        self.inner = instruction.name == "frep.i"
        self.mask, self.maximum = instruction.stagger_mask, instruction.stagger_max
        self.shift = 0


class Sequencer:
    """The ring of instructions, the loops over it, and the next instruction."""

    __slots__ = (
        "_configuration",
        "_decoder",
        "_ended",
        "_freed",
        "_freed_at",
        "_freed_before",
        "_level",
        "_ring",
        "_size",
        "_waiting",
        "active",
        "first",
        "head",
        "loops",
        "read",
        "written",
    )

    def __init__(self, configuration: Configuration, decoder: Decoder) -> None:
        self._configuration = configuration
        self._decoder = decoder
        self._size = configuration.ring
        self._ring: list[Entry | None] = [None] * configuration.ring
        self.read = self.written = 0
        self.head: Entry | None = None
        """The next instruction to issue; None if it has not arrived."""
        self.first = True
        """Whether the head issues for the first time."""
        self.loops: list[HardwareLoop] = []
        """The nest of loops that runs, or will run after earlier instructions."""
        self.active = False
        self._level = 0
        self._waiting: deque[HardwareLoop] = deque()
        self._ended = -1
        self._freed = self._freed_before = 0
        self._freed_at = -1

    # The side of the core

    def full(self, now: int) -> bool:
        """Whether the ring is full; places freed in this cycle do not count as free."""
        freed = self._freed_before if self._freed_at == now else self._freed
        return self.written - freed >= self._size

    @property
    def filled(self) -> HardwareLoop | None:
        """The loop that the next arriving instruction belongs to, or None."""
        last = self._waiting[-1] if self._waiting else self.loops[0] if self.loops else None
        return last if last is not None and self.written <= last.end else None

    def write(self, operation: FloatOperation, argument: int) -> None:
        """Accept an instruction, which can issue in the next cycle."""
        self._ring[self.written % self._size] = (operation, argument)
        self.written += 1
        if self.head is None:
            self._look()

    def accept(self, instruction: Instruction, trips: int, now: int) -> bool:
        """Accept a loop over the next instructions; False if the core must wait. Raises SimulationError."""
        self._check(instruction, trips)
        loop = HardwareLoop(instruction, self.written, trips)
        if not self.loops:
            if self._ended == now and not self._configuration.waiting_loops:
                return False
            self.loops.append(loop)
        elif self._configuration.waiting_loops:
            if self.written <= (self._waiting or self.loops)[-1].end:
                raise self._decoder.trap(instruction, "the sequencer can have no loop inside another")
            if len(self._waiting) + 1 >= self._configuration.waiting_loops:
                return False
            self._waiting.append(loop)
        else:
            outer = self.loops[0]
            if self.written > outer.end:
                return False
            self._nest(outer, loop)
        self._enter()
        return True

    def _check(self, instruction: Instruction, trips: int) -> None:
        size = self._size
        if instruction.imm > size:
            message = (
                f"a loop of {instruction.imm} instructions; the sequencer holds {size}, and would cut off the rest"
            )
            raise self._decoder.trap(instruction, message)
        if trips > self._configuration.trips:
            message = f"{trips} iterations; the counter goes to {self._configuration.trips}"
            raise self._decoder.trap(instruction, message)
        if instruction.name == "frep.i" and not self._configuration.inner_repetition:
            raise self._decoder.trap(instruction, f"'{self._configuration.name}' has no frep.i, only frep.o")

    def _nest(self, outer: HardwareLoop, loop: HardwareLoop) -> None:
        nesting = self._configuration.nesting
        trap = self._decoder.trap
        if len(self.loops) >= nesting:
            raise trap(loop.instruction, f"the sequencer can have {nesting} loops inside each other")
        if loop.end > outer.end:
            raise trap(loop.instruction, "the inner loop is longer than what is left of the outer one")
        if loop.base == outer.base and loop.end == outer.end:
            raise trap(
                loop.instruction,
                "the inner loop is the whole body of the outer one, and would run only once: use one loop, with the "
                "product of the trips",
            )
        if outer.mask:
            raise trap(outer.instruction, "staggering is defined for the innermost loop only")
        self.loops.append(loop)

    # The side of the FP subsystem

    def advance(self, now: int) -> None:
        """Move on after the head has issued."""
        if not self.active:
            self._free(1, now)
            self.read += 1
            self.first = True
            if self.loops:
                self._enter()
        else:
            loop = self.loops[self._level]
            if loop.inner:
                self._repeat(loop, now)
            elif self.read == loop.end:
                self._iterate(loop, now)
            else:
                self.read += 1
                if self._level + 1 < len(self.loops):
                    self._enter()
        self._look()

    def _repeat(self, loop: HardwareLoop, now: int) -> None:
        """frep.i: repeat the same instruction until its iterations are done."""
        self._stagger(loop)
        if loop.iteration < loop.last:
            loop.iteration += 1
            self.first = False
            return
        loop.iteration = 0
        self.first = True
        if self.read == loop.end:
            self._end(now)
        else:
            self.read += 1

    def _iterate(self, loop: HardwareLoop, now: int) -> None:
        if loop.iteration < loop.last:
            loop.iteration += 1
            self._stagger(loop)
            self.read = loop.base
            self.first = False
            if self._level + 1 < len(self.loops):
                self._enter()
        elif self._level == 0:
            self._end(now)
        else:
            loop.iteration = loop.shift = 0
            self._level -= 1
            outer = self.loops[self._level]
            if self.read == outer.end:
                self._iterate(outer, now)
            else:
                self.read += 1
                self.first = outer.iteration == 0

    @staticmethod
    def _stagger(loop: HardwareLoop) -> None:
        if loop.mask:
            loop.shift = 0 if loop.shift == loop.maximum else loop.shift + 1

    def _end(self, now: int) -> None:
        loop = self.loops[0]
        self._free(loop.count, now)
        self.read = loop.end + 1
        self.loops.clear()
        self.active, self._level, self.first = False, 0, True
        self._ended = now
        if self._waiting:
            self.loops.append(self._waiting.popleft())
            self._enter()

    def _free(self, count: int, now: int) -> None:
        if self._freed_at != now:
            self._freed_before, self._freed_at = self._freed, now
        self._freed += count

    def _enter(self) -> None:
        """Begin loops that start at the next instruction."""
        loops = self.loops
        if not self.active:
            if loops[0].base != self.read:
                return
            self.active, self._level = True, 0
        if self._level + 1 < len(loops) and loops[self._level + 1].base == self.read:
            self._level += 1

    def _look(self) -> None:
        """Find the next instruction to issue."""
        if self.read >= self.written:
            self.head = None
            return
        entry = self._ring[self.read % self._size]
        if entry is not None and self.active:
            loop = self.loops[self._level]
            if loop.shift:
                entry = (self._decoder.staggered(entry[0], loop.mask, loop.shift), entry[1])
        self.head = entry
