"""Mappings of a Snitch core: streams of memory (SSR) and hardware loops (FREP) (docs/mappings.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pdojo.transforms.api import (
    Machine,
    Mapping,
    Numerics,
    Program,
    Reason,
    Scope,
    has_extremum,
    loop_limits,
    region_limits,
)
from pdojo.transforms.mapping.scope import MapScope


@dataclass(frozen=True)
class Stream(MapScope):
    """Let stream registers access the memory of a scope.

    `stream@y:0`:

    N y[{0}] = x[{0}]  -->  N:s y[{0}] = x[{0}]

    Reads run ahead, as early as the entry of the scope; writes arrive late, at the latest at its end. Legal iff no
    read inside follows a write of the same element (not exists w < r: write(w) conflicts with read(r)), and no two
    statements write one cell. Each access to the heap needs a stream. The machine limits the number of streams;
    indices are linear in at most as many scopes as an address generator counts, in words of 8 bytes, without guards.
    If the machine has too few streams, reads of one array by several statements share a stream, provided that one nest
    of loops goes through all their elements.
    """

    name: ClassVar[str] = "stream"
    finishes: ClassVar = True
    mapping: ClassVar = Mapping.STREAM
    example_machine: ClassVar = "toy-snitch"

    @classmethod
    def missing(cls, machine: Machine) -> str:
        """Stream registers."""
        return "" if machine.snitch.stream_registers else "stream registers"

    def limits(self, program: Program, mapped: Scope) -> Iterator[Reason]:
        """Limits of the address generators that the streams exceed."""
        return region_limits(program, mapped)


@dataclass(frozen=True)
class Frep(MapScope):
    """Repeat the instructions of a scope by a hardware loop.

    `frep@y:1`:

    1:s 8 y[{1}] = x[{1}]  -->  1:s 8:f y[{1}] = x[{1}]

    Keeps the meaning, except that a maximum or minimum of NaN and a number may be the number, if the kernel permits it.
    The scope contains statements of one floating-point instruction each, unrolled scopes, at most one other hardware
    loop directly inside, and no guards; operands are streams of a scope around it, constants, or registers that
    constants index. The loop has no more instructions and iterations than a hardware loop of the machine can have.
    """

    name: ClassVar[str] = "frep"
    finishes: ClassVar = True
    mapping: ClassVar = Mapping.FREP
    example_machine: ClassVar = "toy-snitch"

    @classmethod
    def missing(cls, machine: Machine) -> str:
        """Hardware loops."""
        return "" if machine.snitch.frep_instructions else "hardware loops"

    def limits(self, program: Program, mapped: Scope) -> Iterator[Reason]:
        """Statements and limits that prevent a hardware loop."""
        return loop_limits(program, mapped)

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """The class of a maximum or minimum whose instruction returns the number if one operand is NaN."""
        return Numerics.NUMBERS if has_extremum(site) else Numerics.EXACT
