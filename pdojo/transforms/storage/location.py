"""Locations: the memory of a buffer, and common checks of moves on memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Array,
    Buffer,
    Memory,
    MemoryAttr,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    accesses_of,
    byte_width,
    describe_access,
    frame_problem,
    is_in_grid,
    overflow,
    physical_bytes,
    register_problem,
)


def temporaries(program: Program) -> Iterator[Array]:
    """The first array of every buffer that is not the caller's."""
    for buffer in program.nest.buffers:
        if buffer.op is not None:
            yield program.nest.arrays[buffer.names[0]]


def callers_memory(array: Array) -> Reason | None:
    """The refusal for arrays in the caller's memory, whose layout belongs to the caller; None for other arrays."""
    if array.buffer.op is not None:
        return None
    kind, remedy = "is an interface array", "stage_in and stage_out make a copy to work on"
    if array.intent is None:
        kind, remedy = (
            f"lives in interface array '{array.buffer.names[0]}'",
            "unshare_buffer gives it memory of its own",
        )
    return Reason(f"'{array.name}' {kind}, its memory is the caller's; {remedy}")


def fixed_memory(array: Array) -> Reason | None:
    """The refusal of moves that change the memory of a constant, or of the caller's array; or None."""
    if array.buffer.constant and array.buffer.op is not None:
        return Reason(f"'{array.name}' is constant: it is kept in memory of its own; unbind_array first")
    return callers_memory(array)


def hinted(program: Program, buffer: Buffer) -> Reason | None:
    """The reason why the layout must stay: hints for it; None if there are none."""
    for _, access in accesses_of(program.nest, buffer):
        if access.hints.data:
            return Reason(f"{describe_access(access)} has hints for the layout that it has; clear them first")
    return None


def swizzled(buffer: Buffer) -> Reason | None:
    """The reason why dimensions cannot be changed: they take part in a swizzle; None if they do not."""
    return Reason(f"'{buffer.names[0]}' is swizzled; unswizzle_dim first") if buffer.swizzles else None


@dataclass(frozen=True)
class SetLocation(Transformation[Array]):
    """Choose the memory of a buffer.

    `set_location@t{location=stack}`:

    t f32 [8:N, 4] heap  -->  t f32 [8:N, 4] stack

    Keeps every value; refused if the buffer does not fit or, for registers, if an index is not constant. Inside a
    grid, registers and stack belong to one thread and shared memory to one block: only one grid may use the buffer, no
    value may pass between its iterations, and other threads may not access a thread's cells (docs/mappings.md).
    """

    name: ClassVar[str] = "set_location"
    finishes: ClassVar = True
    location: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """The other memories of the machine."""
        for array in temporaries(program):
            for memory in Memory:
                if memory is Memory.SHARED and not program.machine.gpu.shared_bytes:
                    continue
                if memory is not array.buffer.memory:
                    yield array, cls(memory.value)

    def check(self, program: Program, site: Array) -> Reason | None:
        """Requires a temporary, a memory that the machine has, and room in it."""
        if (refused := fixed_memory(site)) is not None:
            return refused
        known = [m.value for m in Memory]
        if self.location not in known:
            return Reason(f"'{self.location}' is no memory; known are {', '.join(known)}")
        memory = Memory(self.location)
        if memory is site.buffer.memory:
            return Reason(f"'{site.name}' lives there already")
        if any(leaf.asynchronous for leaf, _ in accesses_of(program.nest, site.buffer)):
            return Reason("asynchronous copies are between heap and shared memory only; sync_copy first")
        if memory is Memory.REGISTER and (fixed := swizzled(site.buffer)) is not None:
            return fixed
        if memory is Memory.SHARED and not program.machine.gpu.shared_bytes:
            return Reason(f"{program.machine.name} has no shared memory")
        return room(program, site.buffer, site.buffer, memory)

    def argues(self, program: Program, site: Array) -> bool:
        """False for shared memory, which belongs to a block.

        True for registers if all statements run in the function that has them; `check` tests the rest.
        """
        if self.location != Memory.REGISTER.value:
            return self.location != Memory.SHARED.value
        nest, buffer = program.nest, site.buffer
        return not is_in_grid(nest, buffer) and frame_problem(nest, buffer, Memory.REGISTER) is None

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        assert site.buffer.op is not None
        site.buffer.op.properties["memory"] = MemoryAttr(Memory(self.location))
        rewriter.notify_op_modified(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        return SetLocation(site.buffer.memory.value).as_move(site.name)


def room(program: Program, wanted: Buffer, present: Buffer, memory: Memory) -> Reason | None:
    """The reason why the buffer `present`, changed to `wanted`, does not fit into `memory`; None if it does."""
    nest = program.nest
    if is_in_grid(nest, present):
        return None  # limits of a grid's threads are checked on the program after the move
    if memory is Memory.REGISTER and (problem := register_problem(nest, present, reuse=wanted.reuse)) is not None:
        return problem
    return overflow(program, memory, _bytes(program, wanted, present), present)


def _bytes(program: Program, wanted: Buffer, present: Buffer) -> int:
    if wanted is present:
        return physical_bytes(program.nest, present)
    size = byte_width(wanted.dtype)
    for extent, slots in zip(wanted.shape, wanted.reuse, strict=True):
        size *= slots or extent
    return size
