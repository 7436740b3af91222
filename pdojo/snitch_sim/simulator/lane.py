"""A stream register: shadowed configuration, address generator, buffer (snitch_ssr.sv, snitch_ssr_addr_gen.sv)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from pdojo.snitch_sim.assembler.program import TCDM_BASE
from pdojo.snitch_sim.simulator.causes import INFINITE
from pdojo.snitch_sim.simulator.configuration import Configuration

if TYPE_CHECKING:
    from pdojo.snitch_sim.simulator.memory import SimulatedMemory

READ, WRITE = 0, 1
"""Directions of a stream in a trace."""
MOST_ELEMENTS = 1 << 22
"""Limit of a stream's elements; a longer stream is a mistake, as the memory has 2^14 words."""


class BadStream(Exception):
    """A wrong stream configuration; the message says what is wrong."""


class Lane:
    """One stream register, with a side for the memory (requests) and a side for the FP subsystem (elements)."""

    __slots__ = (
        "addresses",
        "bounds",
        "configuration",
        "fifo",
        "finished",
        "length",
        "line",
        "memory",
        "moved",
        "next",
        "number",
        "out",
        "pending",
        "position",
        "repeat",
        "seen",
        "shadow_repeat",
        "slot",
        "start",
        "strides",
        "turning",
        "unconfirmed",
        "words",
        "writes",
    )

    def __init__(self, number: int, configuration: Configuration, memory: SimulatedMemory) -> None:
        self.number = number
        self.slot = 32 + number
        """The index, among the FP subsystem's values, of an element that was taken."""
        self.configuration = configuration
        self.memory = memory
        self.words = memory.doubles
        self.fifo: deque[tuple[int, float]] = deque()
        """Elements read from memory, with the cycles from which they can be taken."""
        self.out: deque[tuple[int, float]] = deque()
        """Elements to write, with the cycles from which they can leave."""
        self.addresses: list[int] = []
        """The word indices (8 bytes each) of the running job; empty if no job runs."""
        self.position = self.length = self.next = 0
        self.start = INFINITE
        self.writes = False
        self.turning = False
        """Whether the job waits until all elements of an earlier job in the other direction are taken."""
        self.pending: tuple[list[int], bool, int] | None = None
        self.bounds = [1] * configuration.dimensions
        self.strides = [0] * configuration.dimensions
        self.repeat = self.shadow_repeat = self.seen = 0
        self.finished = -1
        """The cycle in which a job's last request was served."""
        self.line = 0
        """The source line of the instruction that started the job."""
        self.moved = 0
        self.unconfirmed = 0
        """The line of the latest write stream whose end has not been read from the status; 0 if there is none."""

    # Configuration

    def write(self, register: int, value: int, now: int, line: int) -> bool:
        """Write a configuration register; returns False if the core must wait. Raises BadStream."""
        if self.pending is not None:
            return False
        dimensions = self.configuration.dimensions
        if register == 1:
            self._set_repeat(value)
        elif 2 <= register < 2 + dimensions:
            if value >= 1 << self.configuration.bound_bits:
                raise BadStream(f"a bound of {value + 1} does not fit {self.configuration.bound_bits} bits")
            self.bounds[register - 2] = value + 1
        elif 6 <= register < 6 + dimensions:
            if value % 8:
                raise BadStream(f"a stride of {_signed(value)} bytes is no multiple of 8")
            self.strides[register - 6] = _signed(value)
        elif 24 <= register < 32 and (register & 3) < dimensions:
            self._start(value, (register & 3) + 1, now, line, writes=register >= 28)
        else:
            raise BadStream(f"stream register {register} is not modelled")
        return True

    def status(self, now: int) -> int:
        """The status register: bit 31 is set when all requests of the job are served, bit 30 for a write stream. Other
        bits are not modelled.

        Bit 31 belongs to the running job, so it is set for one cycle between two jobs.
        """
        done = self.finished < now and (not self.addresses or self.finished == now - 1)
        if done and not self.addresses:
            self.unconfirmed = 0
        return done << 31 | self.writes << 30

    def _set_repeat(self, value: int) -> None:
        most = self.configuration.repeats
        if value >= most:
            raise BadStream(f"an element is to be read {value + 1} times; the field has room for {most}")
        self.shadow_repeat = value
        if not self.addresses:
            self._load_repeat()

    def _load_repeat(self) -> None:
        """Set the number of reads per element, which changes not with a job but when the address generator is free."""
        if self.shadow_repeat != self.repeat and self.fifo:
            left = f"{len(self.fifo)} element{'s' if len(self.fifo) > 1 else ''}"
            raise BadStream(
                f"the number of reads changes from {self.repeat + 1} to {self.shadow_repeat + 1} while {left} of the "
                f"stream before (line {self.line}) are unread"
            )
        self.repeat = self.shadow_repeat

    def _start(self, pointer: int, dims: int, now: int, line: int, *, writes: bool) -> None:
        addresses = self._words(pointer, dims)
        if writes:
            self.unconfirmed = line
        elif self.unconfirmed:
            raise BadStream(
                f"set up to read before its write stream of line {self.unconfirmed} has reached memory: "
                "instructions would read garbage. Poll its status (scfgr) until bit 31 is set"
            )
        # `now` is one cycle after the instruction's issue.
        if self.addresses:
            self.pending = (addresses, writes, line)
            return
        self._run(addresses, line, now - 1 + self.configuration.timing.stream_start[self.number], writes=writes)

    def _words(self, pointer: int, dims: int) -> list[int]:
        """The addresses of a job, as indices of words. A stride counts from the last address of the inner loops."""
        if pointer % 8:
            raise BadStream(f"the pointer {pointer:#x} is no multiple of 8")
        count = 1
        for bound in self.bounds[:dims]:
            count *= bound
        if count > MOST_ELEMENTS:
            raise BadStream(f"a stream of {count} elements")
        steps: list[int] = []
        for k in range(dims):
            steps.append(self.strides[k] + sum(steps[j] * (self.bounds[j] - 1) for j in range(k)))
        offsets = np.zeros(1, np.int64)
        for k in range(dims):
            offsets = (np.arange(self.bounds[k], dtype=np.int64)[:, None] * steps[k] + offsets[None, :]).reshape(-1)
        low, high = pointer + int(offsets.min()), pointer + int(offsets.max())
        end = TCDM_BASE + self.configuration.memory_bytes
        if low < TCDM_BASE or high + 8 > end:
            raise BadStream(
                f"the stream reaches from {low:#x} to {high + 7:#x}, outside of {TCDM_BASE:#x} to {end - 1:#x}"
            )
        return ((offsets + (pointer - TCDM_BASE)) >> 3).tolist()

    def _run(self, addresses: list[int], line: int, start: int, *, writes: bool) -> None:
        self.addresses, self.length, self.position = addresses, len(addresses), 0
        self.next = addresses[0]
        self.line, self.start = line, start
        self.turning = writes != self.writes
        if self.turning and not self.fifo and not self.out:
            self.turn()
        self.memory.running.append(self)
        self.memory.running.sort(key=lambda lane: lane.number)

    def turn(self) -> None:
        """Change the direction; all elements of the earlier stream must have been taken."""
        self.turning = False
        self.writes = not self.writes

    # The side of the memory

    def ready(self, now: int) -> bool:
        """Whether a started job requests a word in this cycle."""
        if self.turning:
            if self.fifo or self.out:
                return False
            self.turn()
        if self.writes:
            return bool(self.out) and self.out[0][0] <= now
        return len(self.fifo) < self.configuration.stream_fifo

    def grant(self, now: int) -> None:
        """Serve the memory request; an element read can be taken two cycles later."""
        if self.writes:
            self.words[self.next] = self.out.popleft()[1]
        else:
            self.fifo.append((now + 2, self.words[self.next]))
        self.moved += 1
        if self.memory.trace is not None:
            self.memory.trace.append((now, "ssr", self.number, WRITE if self.writes else READ))
        position = self.position + 1
        if position < self.length:
            self.position = position
            self.next = self.addresses[position]
        else:
            self._finish(now)

    def _finish(self, now: int) -> None:
        self.memory.running.remove(self)
        self.addresses, self.start, self.finished = [], INFINITE, now
        self._load_repeat()
        if self.pending is not None:
            (addresses, writes, line), self.pending = self.pending, None
            self._run(addresses, line, now + self.configuration.timing.stream_restart[self.number], writes=writes)

    # The side of the FP subsystem

    @property
    def unread(self) -> int:
        """Number of elements of a read stream that no instruction has taken; only for a lane that does not write."""
        ahead = self.length - self.position if self.addresses and not self.turning else 0
        return ahead + len(self.fifo)

    def take(self) -> float:
        """Take the front element, which must exist; it stays until all its reads are done."""
        if self.repeat:
            if self.seen < self.repeat:
                self.seen += 1
                return self.fifo[0][1]
            self.seen = 0
        return self.fifo.popleft()[1]

    def left(self) -> str:
        """A message about elements that were never taken or stored; empty if there are none."""
        where = f"SSR{self.number} (line {self.line})"
        rest = (self.length - self.position if self.addresses else 0) + len(self.fifo)
        if self.out:
            return f"{where} holds {len(self.out)} elements that no stream writes to memory"
        if self.addresses and self.writes:
            return f"{where} is to write {rest} more elements"
        if rest:
            return f"{where} has {rest} elements that nobody read"
        return ""


def _signed(value: int) -> int:
    return (value + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
