"""Slots: the number of cells that a dimension of a buffer takes, between one for all indices and one for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import (
    LIMITED,
    NONTEMPORAL,
    Access,
    Buffer,
    Dimension,
    Leaf,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Race,
    Reason,
    Scope,
    Transformation,
    accesses_of,
    common_depth,
    concurrent_around,
    describe_access,
    describe_scope,
    find_race,
    folded_lanes,
    lane_problem,
    register_problem,
    reuse_attr,
)
from pdojo.transforms.storage.location import callers_memory, fixed_memory, hinted, room, swizzled, temporaries

PROPOSED_SLOTS = (2, 4, 8)
"""Slot counts that `fold_dim` proposes in addition to the one from the distances of the accesses."""


def _with(slots: tuple[int, ...], index: int, count: int) -> tuple[int, ...]:
    return (*slots[:index], count, *slots[index + 1 :])


def _set_slots(site: Dimension, count: int, rewriter: PatternRewriter) -> None:
    buffer = site.array.buffer
    assert buffer.op is not None
    attribute = reuse_attr(_with(buffer.reuse, site.index, count))
    if attribute is None:
        buffer.op.properties.pop("reuse", None)
    else:
        buffer.op.properties["reuse"] = attribute
    rewriter.notify_op_modified(buffer.op)


def _restored(site: Dimension) -> Move:
    """The move that gives the dimension its present slots."""
    count = site.array.buffer.reuse[site.index]
    move = FoldDim(count) if count > 1 else ReuseDims() if count else MaterializeDims()
    return move.as_move(f"{site.array.name}:{site.index}")


def _lost(program: Program, site: Dimension, slots: tuple[int, ...]) -> Reason | None:
    """The reason why a value would be overwritten too early, or read too late, with these slots; or None."""
    return program.storage_violation(site.array.name, slots)


def _race(program: Program, buffer: Buffer, slots: tuple[int, ...]) -> Race | None:
    """A race of the program if the buffer has these slots; None if there is none."""
    scopes = concurrent_around(program, buffer)
    return find_race(program, program.uses_if(reuse={buffer: slots}, only={buffer}), {buffer}, scopes)


def _shared_slot(program: Program, buffer: Buffer, slots: tuple[int, ...]) -> Reason | None:
    """The reason why concurrent iterations would share a slot; None if they would not."""
    race = _race(program, buffer, slots)
    if race is None:
        return None
    return Reason(f"iterations of {describe_scope(race.scope)} would share a slot", str(race.conflict))


def _vector_accesses(program: Program, buffer: Buffer) -> Iterator[tuple[Leaf, Access, Scope]]:
    for leaf, access in accesses_of(program.nest, buffer):
        lanes = leaf.parent
        if lanes is not None and lanes.mapping is Mapping.VECTOR:
            yield leaf, access, lanes


def _vector_problem(program: Program, buffer: Buffer, slots: tuple[int, ...]) -> Reason | None:
    """The reason why vector accesses are impossible with other slots; None if they are possible."""
    for leaf, access, lanes in _vector_accesses(program, buffer):
        problem = lane_problem(access, leaf, lanes, program.machine, reuse=slots)
        if problem is not None:
            return problem
    return None


def _streamed(program: Program, buffer: Buffer) -> Reason | None:
    """The reason why slots must stay: a nontemporal store needs known alignment; None if there is no such store."""
    for leaf, access, _ in _vector_accesses(program, buffer):
        if access is leaf.output and NONTEMPORAL in access.hints.data:
            return Reason(
                f"{describe_access(access)} has the hint 'nontemporal', which needs whole dimensions; clear it"
            )
    return None


def _passes(uses: Sequence[tuple[Leaf, Access]], dimension: int) -> bool:
    """Whether a scope around both a write and a read of the buffer indexes the dimension in both."""
    writes = [(leaf, a.index[dimension].variables()) for leaf, a in uses if a is leaf.output]
    reads = [(leaf, a.index[dimension].variables()) for leaf, a in uses if a is not leaf.output]
    return any(
        depth < common_depth((writer, reader))
        for writer, written in writes
        for reader, read in reads
        for depth in written & read
    )


def _takes_part(site: Dimension) -> bool:
    """Whether the dimension is swizzled, or swizzles another one."""
    return any(site.index in (dimension, swizzle.by) for dimension, swizzle in site.array.buffer.swizzles.items())


@dataclass(frozen=True)
class ReuseDims(Transformation[Dimension]):
    """Give a dimension of a buffer one slot only (paper Figure 6).

    `reuse_dims@t:0`:

    t f32 [8, 4] heap  -->  t f32 [8:N, 4] heap

    Legal iff for every flow from the last write w to a read r, no other instance writes r's new cell in between, in
    whatever order the iterations of concurrent scopes run.
    """

    name: ClassVar[str] = "reuse_dims"
    finishes: ClassVar = True

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Dimensions of temporaries that are not reused yet."""
        for array in temporaries(program):
            for index, slots in enumerate(array.buffer.reuse):
                if slots != 1 and array.shape[index] > 1:
                    yield Dimension(array, index), cls()

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary's dimension that is not reused yet, and whose values survive."""
        if (refused := fixed_memory(site.array)) is not None:
            return refused
        buffer = site.array.buffer
        if _takes_part(site) and (fixed := swizzled(buffer)) is not None:
            return fixed
        if buffer.reuse[site.index] == 1:
            return Reason(f"dimension {site.index} of '{site.array.name}' is reused already")
        slots = _with(buffer.reuse, site.index, 1)
        return _streamed(program, buffer) or _lost(program, site, slots) or _shared_slot(program, buffer, slots)

    def argues(self, program: Program, site: Dimension) -> bool:
        """True if no thread or lane indexes the dimension: all indices take one slot. Hints are refused.

        The check asks about storage and races with one slot. Vectors and registers find fewer elements, in the same
        order.
        """
        buffer = site.array.buffer
        slots = _with(buffer.reuse, site.index, 1)
        ordered = all(
            leaf.chain[v].mapping in (Mapping.SEQUENTIAL, Mapping.UNROLL)
            for leaf, access in accesses_of(program.nest, buffer)
            for v in access.index[site.index].variables()
        )
        fit = hinted(program, buffer) is None and _vector_problem(program, buffer, slots) is None
        in_register = buffer.memory is Memory.REGISTER
        return ordered and fit and not (in_register and register_problem(program.nest, buffer, reuse=slots))

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        _set_slots(site, 1, rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return _restored(site)


@dataclass(frozen=True)
class FoldDim(Transformation[Dimension]):
    """Store a dimension in `slots` places, used in turn: index i lives in place i mod `slots` (a circular buffer).

    `fold_dim@t:0{slots=2}`:

    t f32 [9] heap                        t f32 [9:N2] heap
    t[0] = x[0]                           t[0] = x[0]
    8                                -->  8
    | t[{0}+1] = x[{0}+1]                 | t[{0}+1] = x[{0}+1]
    | y[{0}] = t[{0}] + t[{0}+1]          | y[{0}] = t[{0}] + t[{0}+1]

    Legal iff for every flow from the last write w to a read r, no other instance writes r's new cell in between, in
    whatever order the iterations of concurrent scopes run; vectors may not run through the dimension. A dimension that
    is reused or folded already may get more slots or fewer.
    """

    name: ClassVar[str] = "fold_dim"
    slots: int

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Dimensions with more slots that some scope around both a write and a read indexes."""
        for array in temporaries(program):
            uses = accesses_of(program.nest, array.buffer)
            for index, present in enumerate(array.buffer.reuse):
                most = (present or array.shape[index]) - 1
                if most < 2 or present == 1 or not _passes(uses, index):
                    continue
                constants = [access.index[index].constant for _, access in uses]
                distance = max(constants) - min(constants)
                for slots in sorted({*PROPOSED_SLOTS, distance + 1}):
                    if 2 <= slots <= most:
                        yield Dimension(array, index), cls(slots)

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary, a valid number of slots, and values that survive."""
        if (refused := fixed_memory(site.array)) is not None:
            return refused
        buffer, extent = site.array.buffer, site.array.shape[site.index]
        if _takes_part(site) and (fixed := swizzled(buffer)) is not None:
            return fixed
        if not 2 <= self.slots < extent:
            return Reason(f"'slots' must be at least 2 and less than {extent}, the extent")
        if buffer.reuse[site.index] == self.slots:
            return Reason(f"dimension {site.index} of '{site.array.name}' has {self.slots} slots already")
        slots = _with(buffer.reuse, site.index, self.slots)
        for _, access, lanes in _vector_accesses(program, buffer):
            if (problem := folded_lanes(access, lanes, slots)) is not None:
                return problem
        lost = _streamed(program, buffer) or _lost(program, site, slots) or _shared_slot(program, buffer, slots)
        return lost or room(program, replace(buffer, reuse=slots), buffer, buffer.memory)

    def grows(self, program: Program, site: Dimension) -> bool:
        """True if the memory is limited."""
        return site.array.buffer.memory in LIMITED

    promises: ClassVar = Promises(conditions=True, grows=grows, adds=0, is_local=True)

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        _set_slots(site, self.slots, rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return _restored(site)


@dataclass(frozen=True)
class MaterializeDims(Transformation[Dimension]):
    """Give every index of a reused or folded dimension its own memory again.

    `materialize_dims@t:0`:

    t f32 [8:N, 4] heap  -->  t f32 [8, 4] heap

    Legal iff no two different iterations of a concurrent scope with private copies conflict. Also refused if the memory
    is too small, or vectors and registers could not be indexed.
    """

    name: ClassVar[str] = "materialize_dims"
    undoes: ClassVar = True

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Reused and folded dimensions."""
        for array in temporaries(program):
            for index, slots in enumerate(array.buffer.reuse):
                if slots:
                    yield Dimension(array, index), cls()

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a reused dimension, and memory for the whole one."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer = site.array.buffer
        if not buffer.reuse[site.index]:
            return Reason(f"dimension {site.index} of '{site.array.name}' is neither reused nor folded")
        slots = _with(buffer.reuse, site.index, 0)
        return self._loss(program, site, slots) or self._fits(program, buffer, slots)

    @staticmethod
    def _loss(program: Program, site: Dimension, slots: tuple[int, ...]) -> Reason | None:
        """The reason why values pass from a thread's copy to common memory, or between threads; None if they do not."""
        if (lost := _lost(program, site, slots)) is not None:
            return lost
        buffer = site.array.buffer
        race = _race(program, buffer, slots)
        if race is None:
            return None
        return Reason(
            f"iterations of {describe_scope(race.scope)} share elements, each in its own copy", str(race.conflict)
        )

    @staticmethod
    def _fits(program: Program, buffer: Buffer, slots: Sequence[int]) -> Reason | None:
        """The reason why vector accesses are impossible, or memory is too small; None if neither."""
        wanted = replace(buffer, reuse=tuple(slots))
        problem = _vector_problem(program, buffer, wanted.reuse)
        return problem or room(program, wanted, buffer, buffer.memory)

    def grows(self, program: Program, site: Dimension) -> bool:
        """True if the memory is limited."""
        return site.array.buffer.memory in LIMITED

    promises: ClassVar = Promises(conditions=True, grows=grows, adds=0, is_local=True)

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        _set_slots(site, 0, rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return _restored(site)
