"""The memory of each buffer of a kernel on a CPU: the caller's memory, workspace, or a function's stack frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from pdojo.backends.common.addresses import BufferLayout, layout_of
from pdojo.dialect.attributes import Memory
from pdojo.dialect.rules.frames import frame_owners, frame_problem
from pdojo.dialect.view.nest import Buffer, Nest, Scope
from pdojo.dialect.view.storage import private_scope
from pdojo.errors import LoweringError

ALIGNMENT = 64
"""Alignment in bytes of all memory that pdojo allocates: a cache line, and the widest vector."""
FRAME_LIMIT = 1 << 20
"""Most bytes of arrays in one stack frame; threads may have stacks of 2 MiB."""


class MemoryClass(Enum):
    """The kind of memory that a buffer takes."""

    ARGUMENT = auto()
    """The caller's array."""
    WORKSPACE = auto()
    """Memory passed with the call and shared by all threads."""
    THREAD = auto()
    """Memory passed with the call, one part per thread."""
    FRAME = auto()
    """The stack frame of a function; LLVM keeps it in registers if all indices of the buffer are constants."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The memory class and position of one buffer."""

    home: MemoryClass
    layout: BufferLayout
    alignment: int
    """Alignment in bytes of the first element's address."""
    position: int = 0
    """Number of the argument, or offset in bytes."""
    owners: tuple[Scope | None, ...] = ()
    """The parallel scopes whose functions have a copy in their frame; None is the kernel's own function."""


@dataclass(frozen=True)
class MemoryPlan:
    """The placements of all buffers, and the size of the workspace that a call needs."""

    placements: dict[Buffer, Placement]
    shared_bytes: int
    thread_bytes: int
    """Bytes of each thread's part; these parts follow the shared part."""


def plan_memory(nest: Nest) -> MemoryPlan:
    """Choose the memory of every buffer.

    Raises LoweringError for kinds of memory that a CPU lacks, for frames that are too large, and for values that one
    parallel scope would pass to another through a thread's private copy.
    """
    placements: dict[Buffer, Placement] = {}
    shared = thread = arguments = 0
    frames: dict[Scope | None, int] = {}
    for buffer in nest.buffers:
        layout = layout_of(nest, buffer)
        if buffer.op is None:
            placements[buffer] = Placement(MemoryClass.ARGUMENT, layout, buffer.alignment, arguments)
            arguments += 1
            continue
        private = private_scope(nest, buffer) is not None
        if (problem := frame_problem(nest, buffer)) is not None:
            raise LoweringError(str(problem))
        if buffer.memory is Memory.SHARED:
            raise LoweringError(f"buffer '{buffer.names[0]}': a CPU has no shared memory; use heap or stack")
        if buffer.memory is not Memory.HEAP or all(slots == 1 for slots in buffer.reuse):
            owners = frame_owners(nest, buffer)
            placements[buffer] = Placement(MemoryClass.FRAME, layout, ALIGNMENT, 0, owners)
            for owner in owners:
                frames[owner] = frames.get(owner, 0) + layout.size_bytes
        elif private:
            placements[buffer] = Placement(MemoryClass.THREAD, layout, ALIGNMENT, thread)
            thread += rounded(layout.size_bytes)
        else:
            placements[buffer] = Placement(MemoryClass.WORKSPACE, layout, ALIGNMENT, shared)
            shared += rounded(layout.size_bytes)
    for total in frames.values():
        if total > FRAME_LIMIT:
            raise LoweringError(_too_large(total, placements))
    # A cache line of padding: the prefetcher of one thread does not touch the lines of the next thread's copies.
    return MemoryPlan(placements, shared, thread + ALIGNMENT if thread else 0)


def rounded(size: int, unit: int = ALIGNMENT) -> int:
    """`size`, rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def _too_large(total: int, placements: dict[Buffer, Placement]) -> str:
    framed = ((b, p) for b, p in placements.items() if p.home is MemoryClass.FRAME)
    listed = ", ".join(f"{b.names[0]} ({p.layout.size_bytes} bytes)" for b, p in framed)
    return f"a stack frame would take {total} bytes, more than {FRAME_LIMIT}: {listed}; move the largest to the heap"
