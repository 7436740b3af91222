"""Layout moves, which rewrite only a buffer, its declaration and the accesses to it: the data they depend on.

Most rules of a state are about one buffer each; exceptions are memory capacity and the rules of streams, hardware loops
and instructions. So the rules of all other buffers stay satisfied. A program with only the statements that access the
buffer shows whether the buffer's own rules do.
"""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.content import Content, chain_content, content, content_of, uses_content
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.remembered import Verdicts
from pdojo.dialect.rules.capacity import LIMITED, limit_of, load_of
from pdojo.dialect.rules.lanes import bytes_in_memory
from pdojo.dialect.rules.threads import thread_bytes
from pdojo.dialect.view.copying import copy_nest
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Leaf
from pdojo.dialect.view.storage import accesses_of

_ORDINARY = (
    Mapping.SEQUENTIAL,
    Mapping.UNROLL,
    Mapping.PARALLEL,
    Mapping.VECTOR,
    Mapping.GRID,
    Mapping.BLOCK,
    Mapping.WARP,
)
"""Mappings without rules beyond those about one buffer and about capacity."""


def has_patterns(program: Program) -> bool:
    """Whether a scope has rules about all accesses inside: a stream, a hardware loop, an instruction."""
    return program.memoised(
        "patterns", lambda: any(s.mapping not in _ORDINARY or s.intrinsic for s in program.nest.scopes)
    )


def accesses_content(program: Program, buffer: Buffer) -> Content:
    """The content of a buffer, the statements that access it, and the scopes around them."""
    return program.memoised(("accesses", buffer), lambda: _accesses_content(program, buffer))


def _accesses_content(program: Program, buffer: Buffer) -> Content:
    users = _users(program, buffer)
    return content(uses_content(program.nest, buffer), *((chain_content(leaf), content_of(leaf)) for leaf in users))


def _users(program: Program, buffer: Buffer) -> list[Leaf]:
    """The statements that access a buffer; if there are none, any statement, because a kernel cannot be empty."""
    return list(dict.fromkeys(leaf for leaf, _ in accesses_of(program.nest, buffer))) or program.nest.leaves[:1]


def accesses_alone(program: Program, buffer: Buffer) -> tuple[Program, Verdicts]:
    """A program with only the statements that access a buffer, and the verdicts on it, once per content."""

    def cut_out() -> Program:
        users = set(_users(program, buffer))
        buffers = {buffer, *(access.array.buffer for leaf in users for access in leaf.accesses)}
        nest = copy_nest(program.nest, leaves=users, buffers=buffers)
        return program.successor(nest.kernel, nest)

    part = program.known.remembered.part(accesses_content(program, buffer))
    return part.alone(cut_out), part.verdicts


@dataclass(frozen=True, slots=True)
class Footprint:
    """A buffer's memory use."""

    memory: Memory
    size: int
    """Bytes of one copy; of one thread's part if it is on a stack or in registers in a grid."""
    in_grid: bool


def footprint_of(program: Program, buffer: Buffer) -> Footprint:
    """The footprint of a buffer, by the statements that access it."""
    in_grid = is_in_grid(program.nest, buffer)
    threaded = in_grid and buffer.memory in LIMITED
    size = thread_bytes(program, buffer) if threaded else bytes_in_memory(program, buffer)
    return Footprint(buffer.memory, size, in_grid)


def has_room_for(program: Program, before: Footprint, after: Footprint) -> bool:
    """Whether a program within all limits certainly stays so if a buffer's footprint changes (not complete)."""
    stays = after.memory is before.memory
    if after.memory is Memory.HEAP or (stays and after.size <= before.size):
        return True
    limit = limit_of(program.machine, after.memory)
    if after.in_grid or after.memory not in LIMITED or limit is None:
        return after.memory in LIMITED and not after.in_grid
    load = load_of(program)
    taken = load.stack if after.memory is Memory.STACK else load.registers
    return taken + after.size - (before.size if stays else 0) <= limit
