"""What a simulation gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pdojo.backends.snitch.assembler.program import Program
from pdojo.backends.snitch.simulator.causes import NAMES


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a cycle: an instruction issued, or (`cause`) waited; a stream moved a word."""

    cycle: int
    unit: str
    """`core`, `fp` or `ssr`."""
    index: int
    """Which instruction of the program; which stream."""
    cause: str
    """Why it waited, empty where it issued; `read` or `write` of a stream."""


@dataclass(frozen=True)
class Line:
    """What an instruction of the program did."""

    index: int
    count: int
    """How often it issued: in the core, or in the FP subsystem where it is an FP instruction."""
    stalls: dict[str, int]
    """Cycles that it waited in the unit that issues it, by cause."""
    offload_stalls: dict[str, int] = field(default_factory=dict[str, int])
    """Cycles that the core waited before it could hand an FP instruction on."""
    handed_on: int = 0
    """How often the core handed it on to the FP subsystem, where it is an FP instruction."""


@dataclass(frozen=True)
class Result:
    """Cycles, counts, and where they went."""

    program: Program
    cycles: int
    """From the first instruction of the entry to the end of the last activity: all results in registers and memory."""
    core_cycles: int
    """To the return of the entry; the FP subsystem and the streams may still be at work then."""
    lines: tuple[Line, ...]
    flops: int
    """Floating-point operations, a fused multiply-add being two."""
    fpu_operations: int
    """Instructions that the FPU took: no loads, stores, or switching of streams."""
    fp_instructions: int
    """Instructions that the FP subsystem issued."""
    core_instructions: int
    """Instructions that the core issued, offloaded ones included."""
    fp_stalls: dict[str, int]
    core_stalls: dict[str, int]
    bank_conflicts: int
    """Requests that waited a cycle because another had the bank or the port."""
    stream_elements: tuple[int, ...]
    """Words that each stream moved."""
    events: tuple[Event, ...] = ()
    """All that happened, where a trace was asked for."""

    @property
    def utilisation(self) -> float:
        """FPU utilisation: instructions that the FPU took for each cycle."""
        return self.fpu_operations / self.cycles if self.cycles else 0.0

    @property
    def instructions(self) -> int:
        """Instructions of both units, each where it executes, those of a hardware loop as often as they ran."""
        offloaded = sum(line.handed_on for line in self.lines)
        return self.core_instructions - offloaded + self.fp_instructions

    @property
    def instructions_per_cycle(self) -> float:
        """Instructions of both units for each cycle; up to 2."""
        return self.instructions / self.cycles if self.cycles else 0.0

    def fraction_of_peak(self, width: int) -> float:
        """Floating-point operations for each cycle over the most there can be: a fused multiply-add of 64 bits of
        numbers of `width` bytes, which is 2 for f64, 4 for f32, 8 for f16."""
        return self.flops / (self.cycles * 16 / width) if self.cycles else 0.0


def by_cause(stalls: list[int]) -> dict[str, int]:
    """Stalled cycles by the name of their cause."""
    return {NAMES[cause]: cycles for cause, cycles in enumerate(stalls) if cycles}


def total(stalls: list[dict[str, int]]) -> dict[str, int]:
    """Sums by cause, largest first."""
    counter: Counter[str] = Counter()
    for each in stalls:
        counter.update(each)
    return dict(counter.most_common())
