"""The result of a simulation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pdojo.snitch_sim.assembler.program import AssembledProgram
from pdojo.snitch_sim.simulator.causes import NAMES


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """An event in a cycle: an instruction issued or stalled for a `cause`, or a stream moved a word."""

    cycle: int
    unit: str
    """`core`, `fp` or `ssr`."""
    index: int
    """Index of the instruction in the program, or number of the stream."""
    cause: str
    """The cause of a stall, empty if the instruction issued; for a stream `read` or `write`."""


@dataclass(frozen=True)
class LineCounts:
    """Counts of one instruction of the program."""

    index: int
    count: int
    """Number of issues: FP instructions in the FP subsystem, others in the core."""
    stalls: dict[str, int]
    """Cycles that it stalled in its unit, keyed by cause."""
    offload_stalls: dict[str, int] = field(default_factory=dict[str, int])
    """Cycles that the core stalled before handing an FP instruction on, keyed by cause."""
    handed_on: int = 0
    """Number of times that the core handed it on to the FP subsystem; 0 for other instructions."""


@dataclass(frozen=True)
class Result:
    """Cycles, counts and stalls of a simulation."""

    program: AssembledProgram
    cycles: int
    """Cycles from the first instruction of the entry until all results are in registers and memory."""
    core_cycles: int
    """Cycles until the entry returns; the FP subsystem and the streams may be at work longer."""
    lines: tuple[LineCounts, ...]
    flops: int
    """Floating-point operations; a fused multiply-add counts as two."""
    fpu_operations: int
    """Instructions that the FPU executed, without loads, stores, and switching of streams."""
    fp_instructions: int
    """Instructions that the FP subsystem issued."""
    core_instructions: int
    """Instructions that the core issued, including offloaded ones."""
    fp_stalls: dict[str, int]
    core_stalls: dict[str, int]
    bank_conflicts: int
    """Requests that waited a cycle because another request had the bank or the port."""
    stream_elements: tuple[int, ...]
    """Words that each stream moved."""
    events: tuple[TraceEvent, ...] = ()
    """All events if a trace was requested."""

    @property
    def utilisation(self) -> float:
        """FPU utilisation: FPU instructions per cycle."""
        return self.fpu_operations / self.cycles if self.cycles else 0.0

    @property
    def instructions(self) -> int:
        """Instructions that both units executed; a hardware loop's count in every iteration."""
        offloaded = sum(line.handed_on for line in self.lines)
        return self.core_instructions - offloaded + self.fp_instructions

    @property
    def instructions_per_cycle(self) -> float:
        """Instructions of both units per cycle, at most 2."""
        return self.instructions / self.cycles if self.cycles else 0.0

    def fraction_of_peak(self, width: int) -> float:
        """Floating-point operations per cycle over the peak, a fused multiply-add per cycle on 64 bits of numbers of
        `width` bytes: 2 operations for f64, 4 for f32, 8 for f16.
        """
        return self.flops / (self.cycles * 16 / width) if self.cycles else 0.0


def by_cause(stalls: list[int]) -> dict[str, int]:
    """Stalled cycles, keyed by the name of their cause."""
    return {NAMES[cause]: cycles for cause, cycles in enumerate(stalls) if cycles}


def total(stalls: list[dict[str, int]]) -> dict[str, int]:
    """Sums by cause, largest first."""
    counter: Counter[str] = Counter()
    for each in stalls:
        counter.update(each)
    return dict(counter.most_common())
