"""Whether buffers fit on the stack and in registers, and whether unrolled code is small enough to compile."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from pdojo.dialect.analysis.excerpts import bytes_in_memory
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Nest, Scope

LIMITED = (Memory.STACK, Memory.REGISTER)
"""Memories whose bytes per thread the machine's description limits."""


def overflow(program: Program, memory: Memory, needed: int = 0, present: Buffer | None = None) -> Reason | None:
    """Why the buffers of `memory` do not fit, with `needed` bytes in place of the buffer `present`; None if they do."""
    limit = _limit(program.machine, memory)
    if limit is None:
        return None
    # Buffers that nothing uses take no memory.
    used = {
        b: live.span
        for b, live in program.live_ranges.items()
        if b.memory is memory and b is not present and not is_in_grid(program.nest, b)
    }
    if memory is Memory.REGISTER:
        mine = program.live_ranges.get(present) if present is not None else None
        total = _peak(program, needed, None if mine is None else mine.span, used)
    else:
        # Buffers of a frame never share bytes.
        total = needed + sum(bytes_in_memory(program, b) for b in used)
    if total > limit:
        return Reason(f"{memory.value} buffers would take {total} bytes; {program.machine.name} allows {limit}")
    return None


def _peak(program: Program, needed: int, mine: tuple[int, int] | None, used: dict[Buffer, tuple[int, int]]) -> int:
    """The most bytes in use at one statement; a register is free again after its last use."""
    sizes = {b: bytes_in_memory(program, b) for b in used}

    def at(order: int) -> int:
        own = needed if mine is None or mine[0] <= order <= mine[1] else 0
        return own + sum(sizes[b] for b, (first, last) in used.items() if first <= order <= last)

    # The sum changes where a range begins.
    return max((at(first) for first, _ in (*used.values(), *([mine] if mine else []))), default=needed)


MOST_STATEMENTS = 1 << 14
"""Most statements of an unrolled kernel, and half of the most iterations; compilers take minutes for more."""


def unrolled(nest: Nest, most: int = MOST_STATEMENTS) -> Reason | None:
    """Why a kernel is too large once scopes `:u` and those of one iteration are unrolled; None if it is not."""

    def turns(scopes: Iterable[Scope]) -> int:
        return prod(s.extent for s in scopes if s.mapping is Mapping.UNROLL)

    statements = sum(turns(leaf.chain) for leaf in nest.leaves)
    iterations = sum(turns(s.chain) for s in nest.scopes if s.mapping is Mapping.UNROLL or s.extent == 1)
    for count, what, limit in ((statements, "statements", most), (iterations, "iterations", 2 * most)):
        if count > limit:
            return Reason(f"the kernel unrolls to {count} {what}, more than {limit}; unroll fewer scopes")
    return None


def is_crowded(program: Program) -> bool:
    """Whether room is so short that moves may run out of it that take none themselves.

    True if a memory is too small for all its buffers at once, or if the kernel would unroll to too much with twice
    the statements.
    """
    return program.once("crowded", lambda: _is_crowded(program))


def _is_crowded(program: Program) -> bool:
    if unrolled(program.nest, MOST_STATEMENTS // 2) is not None:
        return True
    for memory in LIMITED:
        total = sum(bytes_in_memory(program, b) for b in program.nest.buffers if b.memory is memory)
        if total and (limit := _limit(program.machine, memory)) is not None and total > limit:
            return True
    return False


def _limit(machine: Machine, memory: Memory) -> int | None:
    match memory:
        case Memory.STACK:
            return machine.stack_bytes
        case Memory.REGISTER:
            return machine.register_bytes
        case _:
            return None
