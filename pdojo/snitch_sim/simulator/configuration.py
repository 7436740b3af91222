"""The configuration of the simulated core complex: sizes and latencies, each with its source.

`m` marks values measured on a Verilator model of one core complex; other values are from snitch_cluster's RTL.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CROSSINGS = frozenset(("flt.d", "fmv.x.w", "fcvt.w.d", "fcvt.wu.d", "fmv.w.x", "fcvt.d.w", "fcvt.d.wu"))
"""Moves between integer and FP registers that go through the sequencer's ring, as arithmetic does (snitch_sequencer.sv;
m). All others wait for an empty ring."""


@dataclass(frozen=True)
class Timing:
    """Latencies in cycles, from an instruction's issue to the earliest issue of an instruction that uses its result."""

    fma: int = 4
    """Addition, multiplication, fused and packed operations, vfsum, vfdotpex (m)."""
    simple: int = 2
    """Minimum, maximum, sign injection, comparison, classification (m)."""
    conversion: int = 3
    """fcvt and vfcpka (m)."""
    division: int = 8
    """A division or root whose result needs no iteration: zero, infinity, NaN, out of range (m)."""
    double_iterations: int = 13
    """Most iterations of fdiv.d and fsqrt.d; each finds 4 bits and adds a cycle (m)."""
    single_iterations: int = 6
    """Most iterations of fdiv.s, fsqrt.s, and packed ones (m)."""
    half_iterations: int = 3
    """Most iterations of fdiv.h, fsqrt.h, and packed ones (ct_vfdsu_ctrl.v)."""
    answer: int = 1
    """Cycles of a result for the core in the register between FPU and core (m)."""
    load: int = 4
    """lw (m): request register, TCDM, response register, register file."""
    float_load: int = 3
    """fld (m): no response register."""
    multiply: int = 4
    """mul, pipelined (m)."""
    divide: int = 4
    """div, minus the number of quotient bits (m)."""
    stream_start: tuple[int, int, int] = (3, 3, 2)
    """Cycles from the issue of the pointer write in the core to a lane's first request. Lanes 0 and 1, which support
    indirection, have a register after the address generator; the first datum comes 2 cycles later, 5 in all (m)."""
    stream_restart: tuple[int, int, int] = (3, 3, 2)
    """Cycles from a job's last request to the first request of a waiting job (snitch_ssr_addr_gen.sv)."""

    def iterations(self, letter: str) -> int:
        """Most iterations of a division or root in the format `d`, `s` or `h`."""
        return {"d": self.double_iterations, "s": self.single_iterations, "h": self.half_iterations}[letter]

    def divided(self, letter: str) -> int:
        """Latency of a division or root with all its iterations."""
        return self.division + self.iterations(letter)


@dataclass(frozen=True)
class Configuration:
    """Sizes and features of a core complex."""

    name: str = "snitch"
    ring: int = 32
    """Capacity of the sequencer's ring buffer in instructions (m)."""
    nesting: int = 2
    """Largest nesting depth of hardware loops."""
    waiting_loops: int = 0
    """Number of loops that can be configured while another runs. Before June 2025 they queued (fifo_v3, depth 8); since
    then the core waits until the nest ends (m)."""
    crossings: frozenset[str] = CROSSINGS
    """Moves between integer and FP registers that go through the ring; all others wait until it is empty. Before June
    2025 all of them waited."""
    inner_repetition: bool = False
    """Whether the core has `frep.i`, which repeats each instruction by itself."""
    trips: int = 1 << 16
    """Most iterations of a hardware loop (a 16-bit counter)."""
    lanes: int = 3
    dimensions: int = 4
    repeats: int = 16
    """Most reads of one stream element (a 4-bit field)."""
    bound_bits: int = 17
    """Bits of a stream's bounds and pointers."""
    stream_fifo: int = 4
    """Number of elements that a lane buffers, and of its requests in flight."""
    offload: int = 2
    """Capacity of the register between core and FP subsystem; the core can be 34 = 32 + 2 instructions ahead (m)."""
    outstanding: int = 4
    """Memory accesses in flight, of the core and of the FP subsystem each (m)."""
    consistency_queue: int = 8
    """Number of FP loads and stores whose addresses the core remembers."""
    banks: int = 32
    memory_bytes: int = 128 << 10
    division: bool = True
    """Whether the FPU has division and square root: `Xdiv_sqrt`, which the default cluster lacks."""
    timing: Timing = field(default_factory=Timing)
