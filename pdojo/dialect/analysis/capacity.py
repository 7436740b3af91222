"""Whether what lives on the stack, and in registers, fits there."""

from __future__ import annotations

from pdojo.dialect.analysis.lanes import physical_bytes
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.threads import is_in_grid
from pdojo.dialect.attributes import Memory
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import Buffer

LIMITED = (Memory.STACK, Memory.REGISTER)
"""Memories of which a thread has few bytes, as the machine's description says."""


def overflow(program: Program, memory: Memory, needed: int = 0, present: Buffer | None = None) -> str | None:
    """Why the buffers of a memory do not fit there, with `needed` bytes more, in place of the buffer `present`."""
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
        # A frame has room for each.
        total = needed + sum(physical_bytes(program.nest, b) for b in used)
    if total > limit:
        return f"{memory.value} buffers would take {total} bytes; {program.machine.name} allows {limit}"
    return None


def _peak(program: Program, needed: int, mine: tuple[int, int] | None, used: dict[Buffer, tuple[int, int]]) -> int:
    """The most bytes that are in use at one statement: registers are free again behind the last use."""
    sizes = {b: physical_bytes(program.nest, b) for b in used}

    def at(order: int) -> int:
        own = needed if mine is None or mine[0] <= order <= mine[1] else 0
        return own + sum(sizes[b] for b, (first, last) in used.items() if first <= order <= last)

    # The sum changes where a range begins.
    return max((at(first) for first, _ in (*used.values(), *([mine] if mine else []))), default=needed)


def is_crowded(program: Program) -> bool:
    """Whether a memory would be too small if all buffers there were in use at once: then the order of uses matters."""
    for memory in LIMITED:
        total = sum(physical_bytes(program.nest, b) for b in program.nest.buffers if b.memory is memory)
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
