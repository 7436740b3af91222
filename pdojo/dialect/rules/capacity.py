"""Capacity: do buffers fit on the stack and in registers, and is unrolled code small enough to compile?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.lanes import bytes_in_memory
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Leaf, Nest, Node, Scope

UNKNOWN = 1 << 62
"""Byte count of a buffer of unknown size: more than any memory has."""
LIMITED = (Memory.STACK, Memory.REGISTER)
"""Memories with a limit of bytes per thread in the machine description."""


def overflow(program: Program, memory: Memory, needed: int = 0, present: Buffer | None = None) -> Reason | None:
    """The reason why the buffers of `memory` do not fit, with `needed` bytes for `present`; None if they fit."""
    limit = limit_of(program.machine, memory)
    if limit is None:
        return None
    # Unused buffers take no memory.
    used = {
        b: live.span
        for b, live in program.live_ranges.items()
        if b.memory is memory and b is not present and not is_in_grid(program.nest, b)
    }
    if memory is Memory.REGISTER:
        mine = program.live_ranges.get(present) if present is not None else None
        total = _peak(program, needed, None if mine is None else mine.span, used)
    else:
        # Buffers in a stack frame never share bytes.
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

    # The sum changes only at the start of a range.
    return max((at(first) for first, _ in (*used.values(), *([mine] if mine else []))), default=needed)


MOST_STATEMENTS = 1 << 14
"""Most statements of an unrolled kernel, and half of the most iterations; beyond them, compilers take minutes."""


def unrolled(nest: Nest, most: int = MOST_STATEMENTS, also: Scope | None = None) -> Reason | None:
    """The reason why a kernel is too large once unrolled (scopes `:u` and those of one iteration); None if it is not.

    `also` is a scope to be treated as `:u`.
    """
    statements, iterations = _unrolled_counts(nest, also)
    for count, what, limit in ((statements, "statements", most), (iterations, "iterations", 2 * most)):
        if count > limit:
            return Reason(f"the kernel unrolls to {count} {what}, more than {limit}; unroll fewer scopes")
    return None


def _unrolled_counts(nest: Nest, also: Scope | None = None) -> tuple[int, int]:
    """Statements and iterations of the unrolled kernel."""
    around = () if also is None else also.chain
    counts = [_counts_inside(node, around) for node in nest.children]
    return sum(statements for statements, _ in counts), sum(iterations for _, iterations in counts)


def _counts_inside(node: Node, around: Sequence[Scope]) -> tuple[int, int]:
    """Statements and iterations of a subtree; the last scope of `around` is treated as unrolled."""
    if isinstance(node, Leaf):
        return 1, 0
    if node in around:
        return _counted(node, around, is_unrolled=node is around[-1] or node.mapping is Mapping.UNROLL)
    known = cast("tuple[int, int] | None", node.facts.get("unrolled"))
    if known is None:
        known = node.facts["unrolled"] = _counted(node, (), is_unrolled=node.mapping is Mapping.UNROLL)
    return known


def _counted(scope: Scope, around: Sequence[Scope], *, is_unrolled: bool) -> tuple[int, int]:
    turns = scope.extent if is_unrolled else 1
    statements = iterations = 0
    for child in scope.children:
        inside = _counts_inside(child, around)
        statements, iterations = statements + inside[0], iterations + inside[1]
    own = turns if is_unrolled or scope.extent == 1 else 0
    return turns * statements, own + turns * iterations


def is_long(program: Program) -> bool:
    """Whether the unrolled kernel would be too large with twice its statements."""
    load = load_of(program)
    return load.statements > MOST_STATEMENTS // 2 or load.iterations > MOST_STATEMENTS


def is_full(program: Program, added: int = 0, only: Memory | None = None) -> bool:
    """Whether a memory is too small for all its buffers and `added` bytes at once, so that moves may exceed it.

    `only` is the memory that gets the bytes (None: any).
    """
    load = load_of(program)
    return any(
        total + added and (limit := limit_of(program.machine, memory)) is not None and total + added > limit
        for memory, total in ((Memory.STACK, load.stack), (Memory.REGISTER, load.registers))
        if only in (None, memory)
    )


@dataclass(frozen=True, slots=True)
class Load:
    """A program's use of every limited resource, summed over its declarations and its statements."""

    stack: int
    """Bytes, including buffers that nothing uses."""
    registers: int
    """Bytes, including buffers that nothing uses."""
    statements: int
    iterations: int

    def __sub__(self, other: Load) -> Load:
        return self + Load(-other.stack, -other.registers, -other.statements, -other.iterations)

    def __add__(self, other: Load) -> Load:
        return Load(
            self.stack + other.stack,
            self.registers + other.registers,
            self.statements + other.statements,
            self.iterations + other.iterations,
        )


def load_of(program: Program) -> Load:
    """The load of a program."""
    return program.memoised("load", lambda: _load(program))


def _load(program: Program) -> Load:
    sizes = [(b.memory, bytes_in_memory(program, b)) for b in program.nest.buffers if b.memory in LIMITED]
    stack, registers = (sum(size for place, size in sizes if place is memory) for memory in LIMITED)
    return Load(stack, registers, *_unrolled_counts(program.nest))


@dataclass(frozen=True, slots=True)
class Growth:
    """Change of memory and code size by a local move; it holds in every program that contains the excerpt."""

    added: Load
    peak: int
    """The most register bytes in use at once in the excerpt after the move."""
    spread: bool
    """Whether registers, or the top-level nodes that use them, differ after the move."""


def growth_of(before: Program, after: Program) -> Growth:
    """The growth from an excerpt before a move to the excerpt after it."""
    peak = _peak(after, 0, None, register_spans(after))
    return Growth(load_of(after) - load_of(before), peak, _reach(before) != _reach(after))


def register_spans(program: Program) -> dict[Buffer, tuple[int, int]]:
    """The live ranges of the buffers in registers, as orders of statements."""
    return {b: r.span for b, r in program.live_ranges.items() if b.memory is Memory.REGISTER}


def _reach(program: Program) -> tuple[object, ...]:
    """The number of top-level nodes; the registers with their size, and the first and last node that use them."""
    ranges = [(b, r) for b, r in program.live_ranges.items() if b.memory is Memory.REGISTER]
    used = [(b.names[0], bytes_in_memory(program, b), r.first.path[0], r.last.path[0]) for b, r in ranges]
    return len(program.nest.children), sorted(used)


def limit_of(machine: Machine, memory: Memory) -> int | None:
    """The bytes of a memory that a thread has; None if the memory is unlimited."""
    match memory:
        case Memory.STACK:
            return machine.stack_bytes
        case Memory.REGISTER:
            return machine.register_bytes
        case _:
            return None
