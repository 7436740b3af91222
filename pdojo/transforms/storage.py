"""Storage: reusing dimensions of a buffer, giving memory back, choosing where a buffer lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.analysis.lanes import lane_problem, physical_bytes, register_problem
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.races import find_race
from pdojo.dialect.attributes import Mapping, Memory, MemoryAttr
from pdojo.dialect.functions import byte_width
from pdojo.dialect.nest import Array, Buffer
from pdojo.dialect.ops import reuse_attr
from pdojo.dialect.storage import accesses_of
from pdojo.dialect.verify import describe_scope
from pdojo.transforms.base import Dimension, Reason, Transformation
from pdojo.transforms.move import Move


def temporaries(program: Program) -> Iterator[Array]:
    """The first array of every buffer that is not the caller's."""
    for buffer in program.nest.buffers:
        if buffer.op is not None:
            yield program.nest.arrays[buffer.names[0]]


def callers_memory(array: Array) -> Reason | None:
    """The refusal for interface arrays, whose layout belongs to the caller."""
    if array.intent is None:
        return None
    return Reason(
        f"'{array.name}' is an interface array, its memory is the caller's; "
        "stage_in and stage_out make a copy to work on"
    )


def set_reuse(buffer: Buffer, flags: tuple[int, ...], rewriter: PatternRewriter) -> None:
    """Give a buffer other reuse flags."""
    assert buffer.op is not None
    attribute = reuse_attr(flags)
    if attribute is None:
        buffer.op.properties.pop("reuse", None)
    else:
        buffer.op.properties["reuse"] = attribute
    rewriter.notify_op_modified(buffer.op)


def _with(flags: tuple[int, ...], index: int, slots: int) -> tuple[int, ...]:
    return (*flags[:index], slots, *flags[index + 1 :])


@dataclass(frozen=True)
class ReuseDims(Transformation[Dimension]):
    """Let a dimension of a buffer take one slot only (paper Figure 6).

    `reuse_dims@t:0`:

    t f32 [8, 4] heap  -->  t f32 [8:N, 4] heap

    Legal iff for every flow from the last write w to a read r, no other instance writes r's new cell in between, in
    whatever order the iterations of concurrent scopes run.
    """

    name: ClassVar[str] = "reuse_dims"
    site: ClassVar = Dimension

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Dimensions of temporaries that are not reused yet."""
        for array in temporaries(program):
            for index, reused in enumerate(array.buffer.reuse):
                if not reused and array.shape[index] > 1:
                    yield Dimension(array, index), cls()

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """A temporary, not reused yet, whose values survive."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        flags = site.array.buffer.reuse
        if flags[site.index]:
            return Reason(f"dimension {site.index} of '{site.array.name}' is reused already")
        buffer, wanted = site.array.buffer, _with(flags, site.index, 1)
        violation = program.storage_violation(site.array.name, wanted)
        if violation is not None:
            return Reason(violation.reason, violation.detail)
        race = find_race(program, program.touches_if(reuse={buffer: wanted}), {buffer})
        if race is not None:
            return Reason(f"iterations of {describe_scope(race.scope)} would share a slot", str(race.conflict))
        return None

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        """Set the flag."""
        set_reuse(site.array.buffer, _with(site.array.buffer.reuse, site.index, 1), rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        """Give the memory back."""
        return MaterializeDims().as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class MaterializeDims(Transformation[Dimension]):
    """Give every index of a reused dimension its own memory again.

    `materialize_dims@t:0`:

    t f32 [8:N, 4] heap  -->  t f32 [8, 4] heap

    Legal iff no two different iterations of a concurrent scope conflict where they had private copies before; refused
    also where the memory is too small, or vectors and registers could not be indexed.
    """

    name: ClassVar[str] = "materialize_dims"
    site: ClassVar = Dimension

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Reused dimensions."""
        for array in temporaries(program):
            for index, reused in enumerate(array.buffer.reuse):
                if reused:
                    yield Dimension(array, index), cls()

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """A reused dimension, and room for the whole one."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        if not site.array.buffer.reuse[site.index]:
            return Reason(f"dimension {site.index} of '{site.array.name}' is not reused")
        buffer = site.array.buffer
        flags = _with(buffer.reuse, site.index, 0)
        if (violation := program.storage_violation(site.array.name, flags)) is not None:
            return Reason(violation.reason, violation.detail)
        race = find_race(program, program.touches_if(reuse={buffer: flags}), {buffer})
        if race is not None:
            return Reason(
                f"iterations of {describe_scope(race.scope)} share elements, each in its own copy", str(race.conflict)
            )
        return self._lanes(program, buffer, flags) or room(program, _reflagged(buffer, flags), buffer, buffer.memory)

    @staticmethod
    def _lanes(program: Program, buffer: Buffer, flags: tuple[int, ...]) -> Reason | None:
        """Vectors can still access the buffer."""
        for leaf, access in accesses_of(program.nest, buffer):
            lanes = leaf.parent
            if lanes is not None and lanes.mapping is Mapping.VECTOR:
                problem = lane_problem(access, leaf, lanes, program.machine, reuse=flags)
                if problem is not None:
                    return Reason(problem)
        return None

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        """Clear the flag."""
        set_reuse(site.array.buffer, _with(site.array.buffer.reuse, site.index, 0), rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        """Reuse the dimension again."""
        return ReuseDims().as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class SetLocation(Transformation[Array]):
    """Choose the memory of a buffer.

    `set_location@t{location=stack}`:

    t f32 [8:N, 4] heap  -->  t f32 [8:N, 4] stack

    Keeps every value; refused where the buffer does not fit or, for registers, where other than constants index it.
    """

    name: ClassVar[str] = "set_location"
    site: ClassVar = Array
    location: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Array, Self]]:
        """The other memories of a CPU."""
        for array in temporaries(program):
            for memory in (Memory.HEAP, Memory.STACK, Memory.REGISTER):
                if memory is not array.buffer.memory:
                    yield array, cls(memory.value)

    def check(self, program: Program, site: Array) -> Reason | None:
        """A temporary, a memory that the machine has, and room in it."""
        if (refused := callers_memory(site)) is not None:
            return refused
        known = [m.value for m in Memory]
        if self.location not in known:
            return Reason(f"'{self.location}' is no memory; known are {', '.join(known)}")
        memory = Memory(self.location)
        if memory is site.buffer.memory:
            return Reason(f"'{site.name}' lives there already")
        if any(leaf.asynchronous for leaf, _ in accesses_of(program.nest, site.buffer)):
            return Reason("copies run on their own between heap and shared memory only; sync_copy first")
        if memory is Memory.SHARED:
            return Reason(f"{program.machine.name} has no shared memory")
        return room(program, site.buffer, site.buffer, memory)

    def rewrite(self, program: Program, site: Array, rewriter: PatternRewriter) -> None:
        """Set the attribute."""
        assert site.buffer.op is not None
        site.buffer.op.properties["memory"] = MemoryAttr(Memory(self.location))
        rewriter.notify_op_modified(site.buffer.op)

    def inverse(self, program: Program, site: Array) -> Move:
        """Back to where it was."""
        return SetLocation(site.buffer.memory.value).as_move(site.name)


def _reflagged(buffer: Buffer, flags: tuple[int, ...]) -> Buffer:
    """The buffer as it would be with other reuse flags."""
    return replace(buffer, reuse=flags)


def room(program: Program, wanted: Buffer, present: Buffer, memory: Memory) -> Reason | None:
    """Whether the buffer `present`, changed to `wanted`, fits into a memory beside the others there."""
    nest = program.nest
    if memory is Memory.REGISTER and (problem := register_problem(nest, present, reuse=wanted.reuse)) is not None:
        return Reason(problem)
    return capacity(program, _bytes(program, wanted, present), present, memory)


def capacity(program: Program, needed: int, present: Buffer | None, memory: Memory) -> Reason | None:
    """Whether `needed` bytes, in place of the buffer `present`, fit into a memory beside the other buffers there."""
    limits = {Memory.STACK: program.machine.stack_bytes, Memory.REGISTER: program.machine.register_bytes}
    if memory not in limits:
        return None
    # Buffers that nothing uses take no memory.
    used = (b for b in program.live_ranges if b.memory is memory and b is not present)
    total = needed + sum(physical_bytes(program.nest, b) for b in used)
    if total > limits[memory]:
        return Reason(
            f"{memory.value} buffers would take {total} bytes; {program.machine.name} allows {limits[memory]}"
        )
    return None


def _bytes(program: Program, wanted: Buffer, present: Buffer) -> int:
    if wanted is present:
        return physical_bytes(program.nest, present)
    size = byte_width(wanted.dtype)
    for extent, slots in zip(wanted.shape, wanted.reuse, strict=True):
        size *= slots or extent
    return size
