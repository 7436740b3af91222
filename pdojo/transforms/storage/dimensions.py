"""Dimensions of buffers: splitting one in two, joining two, padding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

from pdojo.transforms.api import (
    LIMITED,
    UNKNOWN,
    Access,
    Buffer,
    BufferOp,
    Dimension,
    Expr,
    Input,
    Mapping,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    accesses_of,
    bytes_in_memory,
    chain_ops,
    const,
    describe_access,
    floordiv,
    index_bounds,
    lane_problem,
    modulo,
    names_of,
    rebuilt,
    slot_index,
)
from pdojo.transforms.storage.location import callers_memory, hinted, swizzled, temporaries

Reindexed: TypeAlias = Callable[[Sequence[Expr], Sequence[int]], tuple[Expr, ...]]
"""A function from an access's index, and the extents of the scopes around it, to its new index."""


def redeclare(
    program: Program,
    buffer: Buffer,
    extents: Sequence[Expr],
    slots: Sequence[int],
    index: Reindexed,
    rewriter: PatternRewriter,
) -> None:
    """Declare a buffer with other dimensions and rewrite every access to it."""
    old = buffer.op
    assert old is not None
    names = names_of(old.array_names)
    new = BufferOp.of(names, buffer.dtype, extents, buffer.memory, slots, constant=buffer.constant)

    def reindexed(value: Input, extents: Sequence[int]) -> Input:
        if isinstance(value, Access) and value.array.buffer is buffer:
            return Access(value.array, index(value.index, extents), value.hints)
        return value

    for leaf in dict.fromkeys(leaf for leaf, _ in accesses_of(program.nest, buffer)):
        output = reindexed(leaf.output, leaf.extents)
        assert isinstance(output, Access)
        inputs = [reindexed(i, leaf.extents) for i in leaf.inputs]
        rewriter.replace(leaf.op, rebuilt(leaf, chain_ops(leaf), output.index, inputs))
    rewriter.replace(old, new)


def access_reason(
    program: Program, buffer: Buffer, shape: Sequence[int], slots: Sequence[int], index: Reindexed
) -> Reason | None:
    """The reason why an access is impossible in another layout: vectors, or hints for the present one; or None."""
    fixed = hints_reason(program, buffer)
    for leaf, access in accesses_of(program.nest, buffer) if fixed is None else ():
        lanes = leaf.parent
        if lanes is not None and lanes.mapping is Mapping.VECTOR:
            moved = Access(access.array, index(access.index, leaf.extents), access.hints)
            stored, flags, extents = access is leaf.output, tuple(slots), tuple(shape)
            problem = lane_problem(moved, leaf, lanes, program.machine, reuse=flags, extents=extents, is_store=stored)
            if problem is not None:
                return problem
    return fixed


def slots_reason(program: Program, buffer: Buffer, at: int, size: int, digits: Reindexed) -> Reason | None:
    """The reason why the slots of a folded or reused dimension do not match the slots of its two digits; or None.

    `digits` gives, for an access, its index in one dimension, followed by its two indices in two dimensions, the second
    with `size` values. Without vector lanes, there is one slot in both.
    """
    if buffer.reuse[at] > 1:
        return Reason(f"dimension {at} of '{buffer.names[0]}' is folded; materialize it first")
    for leaf, access in accesses_of(program.nest, buffer) if buffer.reuse[at] else ():
        whole, outer, inner = (slot_index(e, 1, leaf.chain) for e in digits(access.index, leaf.extents))
        if outer * size + inner != whole:
            return Reason(f"the lanes of {describe_access(access)} would be in other slots")
    return None


def hints_reason(program: Program, buffer: Buffer) -> Reason | None:
    """The reason why the layout must stay: its swizzle, or hints for it; None if it need not."""
    return swizzled(buffer) or hinted(program, buffer)


def _keeps_bytes(program: Program, site: Dimension, *, padded: bool = False) -> bool:
    """Whether splitting a dimension, or joining it to the next, certainly keeps the buffer's stack or register bytes.

    `padded` if the new dimensions have more elements.
    """
    buffer = site.array.buffer
    if buffer.memory not in LIMITED:
        return True
    # A reused dimension has as many slots as lanes index it.
    lanes = any(
        leaf.chain[v].mapping is Mapping.VECTOR
        for leaf, access in accesses_of(program.nest, buffer)
        for v in access.index[site.index].variables()
    )
    return not padded and not (buffer.reuse[site.index] and lanes)


def _replaced(values: Sequence[Expr], at: int, count: int, by: Sequence[Expr]) -> tuple[Expr, ...]:
    return (*values[:at], *by, *values[at + count :])


def _depends_on_sizes(site: Dimension, at: int) -> Reason | None:
    """A Reason if the extent of a dimension depends on sizes; None if it is constant."""
    if site.array.buffer.extents[at].is_constant:
        return None
    return Reason(f"the extent of dimension {at} of '{site.array.name}' depends on sizes")


@dataclass(frozen=True)
class Redeclaration(Transformation[Dimension]):
    """Base of the moves that give a buffer other dimensions; every access follows."""

    keeps_statements: ClassVar = False

    @abstractmethod
    def extents(self, buffer: Buffer, at: int) -> tuple[Expr, ...]:
        """The new extents as expressions of sizes; `at` is the number of the site's dimension."""

    def slots(self, buffer: Buffer, at: int) -> tuple[int, ...]:  # for subclasses
        """The new numbers of slots."""
        return buffer.reuse

    def index(self, buffer: Buffer, at: int) -> Reindexed:  # for subclasses
        """The new index of an access."""
        return lambda index, _: tuple(index)

    def access_reason(self, program: Program, site: Dimension) -> Reason | None:
        """The reason why an access would be impossible; None if all remain possible."""
        buffer, at = site.array.buffer, site.index
        greatest = [extent.bounds(())[1] for extent in self.extents(buffer, at)]
        return access_reason(program, buffer, greatest, self.slots(buffer, at), self.index(buffer, at))

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        """Redeclare the buffer and rewrite every access to it."""
        buffer, at = site.array.buffer, site.index
        extents, slots, index = self.extents(buffer, at), self.slots(buffer, at), self.index(buffer, at)
        redeclare(program, buffer, extents, slots, index, rewriter)


@dataclass(frozen=True)
class TileDim(Redeclaration):
    """Split a dimension of a buffer in two: the number of the tile, and the place in the tile; every access follows.

    `tile_dim@t:0{size=4}`:

    t f32 [8] heap              t f32 [2, 4] heap
    8 t[{0}] = x[{0}]      -->  8 t[{0}//4,{0}%4] = x[{0}]
    8 y[{0}] = t[{0}]           8 y[{0}] = t[{0}//4,{0}%4]

    Legal for temporaries: e -> (e floordiv size, e mod size) is a bijection. A last, partial tile is padded. The parts
    of a reused dimension are reused, if the slots of its lanes stay apart. Refused for folded dimensions, for vector
    accesses that become impossible, and for padding that does not fit.
    """

    name: ClassVar[str] = "tile_dim"
    size: int

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Powers of two and vector lengths of the machine; only divisors, if the extent has some among them."""
        for array in temporaries(program):
            sizes = sorted({2, 4, 8, 16, 32, *program.machine.vector_lanes(array.dtype)})
            for dimension, extent in enumerate(array.shape):
                fitting = [s for s in sizes if s < extent]
                dividing = [s for s in fitting if extent % s == 0]
                yield from ((Dimension(array, dimension), cls(size)) for size in dividing or fitting)

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary's dimension that is not folded, a size within it, and accesses that remain possible."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer, at = site.array.buffer, site.index
        extent = buffer.shape[at]
        if not 1 <= self.size <= extent:
            return Reason(f"'size' must be between 1 and {extent}, the extent")
        digits = self.index(buffer, at)
        lost = None
        if buffer.reuse[at]:
            lost = slots_reason(
                program, buffer, at, self.size, lambda a, extents: (a[at], *digits(a, extents)[at : at + 2])
            )
        return lost or self.access_reason(program, site)

    def extents(self, buffer: Buffer, at: int) -> tuple[Expr, ...]:
        """Two dimensions: tiles, and places in a tile."""
        tiles = floordiv(buffer.extents[at] + (self.size - 1), self.size, ())
        return _replaced(buffer.extents, at, 1, (tiles, const(self.size)))

    def slots(self, buffer: Buffer, at: int) -> tuple[int, ...]:
        """Equal slots for both parts."""
        return (*buffer.reuse[:at], buffer.reuse[at], *buffer.reuse[at:])

    def index(self, buffer: Buffer, at: int) -> Reindexed:
        """Each index e becomes e floordiv size, e mod size."""

        def digits(index: Sequence[Expr], extents: Sequence[int]) -> tuple[Expr, ...]:
            e = index[at]
            parts = floordiv(e, self.size, extents), modulo(e, self.size, extents)
            return (*index[:at], *parts, *index[at + 1 :])

        return digits

    def grows(self, program: Program, site: Dimension) -> bool:
        """False if the tiles are full, and lanes do not index the dimension."""
        return not _keeps_bytes(program, site, padded=site.array.shape[site.index] % self.size != 0)

    def adds(self, program: Program, site: Dimension) -> int:
        """`UNKNOWN` if the buffer may grow, else 0."""
        return UNKNOWN if self.grows(program, site) else 0

    promises: ClassVar = Promises(conditions=True, grows=grows, adds=adds, is_local=True)

    def inverse(self, program: Program, site: Dimension) -> Move:
        extent = site.array.buffer.extents[site.index]
        is_whole = floordiv(extent, self.size, ()) * self.size == extent
        restored = -1 if is_whole else site.array.shape[site.index]
        return CollapseDims(restored).as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class CollapseDims(Redeclaration):
    """Merge two consecutive dimensions of a buffer; every access follows.

    `collapse_dims@t:0`:

    t f32 [8, 4] heap                 t f32 [32] heap
    8 4 t[{0},{1}] = x[{0},{1}]  -->  8 4 t[{0}*4+{1}] = x[{0},{1}]
    8 4 y[{0},{1}] = t[{0},{1}]       8 4 y[{0},{1}] = t[{0}*4+{1}]

    Legal for temporaries: (a, b) -> a * size + b is a bijection, and keeps every address. With `extent`, padding at the
    end of the last tile is cut off, if no index reaches it.
    """

    name: ClassVar[str] = "collapse_dims"
    extent: int = -1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Dimensions of temporaries that have a next one."""
        for array in temporaries(program):
            yield from ((Dimension(array, index), cls()) for index in range(len(array.shape) - 1))

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary with a next dimension of the same kind, and an extent that contains all indices."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer, at = site.array.buffer, site.index
        if at + 1 >= len(buffer.shape):
            return Reason(f"dimension {at} is the last of '{site.array.name}'")
        if buffer.reuse[at] != buffer.reuse[at + 1]:
            return Reason(f"dimensions {at} and {at + 1} of '{site.array.name}' have different numbers of slots")
        if (sized := _depends_on_sizes(site, at + 1)) is not None:
            return sized
        if self.extent != -1 and (sized := _depends_on_sizes(site, at)) is not None:
            return sized
        total, size = buffer.shape[at] * buffer.shape[at + 1], buffer.shape[at + 1]
        if self.extent != -1 and not total - size < self.extent <= total:
            return Reason(f"'extent' must be between {total - size + 1} and {total}, within the last tile")
        joined = self.index(buffer, at)
        return (
            self._beyond(program, buffer, at)
            or slots_reason(program, buffer, at, size, lambda a, extents: (joined(a, extents)[at], a[at], a[at + 1]))
            or self.access_reason(program, site)
        )

    def _beyond(self, program: Program, buffer: Buffer, at: int) -> Reason | None:
        """A Reason with an access in the padding to be cut off; None if there is none."""
        joined = self.index(buffer, at)
        for leaf, access in accesses_of(program.nest, buffer) if self.extent != -1 else ():
            e = joined(access.index, leaf.extents)[at]
            if index_bounds(leaf, e, self.extent)[1] >= self.extent:
                return Reason(f"{describe_access(access)} goes beyond the extent {self.extent}")
        return None

    def extents(self, buffer: Buffer, at: int) -> tuple[Expr, ...]:
        """One dimension, without padding at its end if `extent` is given."""
        total = buffer.extents[at] * buffer.shape[at + 1] if self.extent == -1 else const(self.extent)
        return _replaced(buffer.extents, at, 2, (total,))

    def slots(self, buffer: Buffer, at: int) -> tuple[int, ...]:
        """The slots of the joint dimension."""
        return (*buffer.reuse[:at], *buffer.reuse[at + 1 :])

    def index(self, buffer: Buffer, at: int) -> Reindexed:
        """Each pair of indices a, b becomes a * size + b."""
        size = buffer.shape[at + 1]

        def joined(index: Sequence[Expr], _: Sequence[int]) -> tuple[Expr, ...]:
            return (*index[:at], index[at] * size + index[at + 1], *index[at + 2 :])

        return joined

    def grows(self, program: Program, site: Dimension) -> bool:
        """False if lanes do not index the dimensions: the elements stay."""
        return not _keeps_bytes(program, site)

    def adds(self, program: Program, site: Dimension) -> int:
        """`UNKNOWN` if lanes may need other slots, else 0."""
        return UNKNOWN if self.grows(program, site) else 0

    promises: ClassVar = Promises(conditions=True, grows=grows, adds=adds, is_local=True)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return TileDim(site.array.shape[site.index + 1]).as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class Resizing(Redeclaration):
    """Base of the moves that give a dimension another extent; the accesses stay."""

    to: int

    def extents(self, buffer: Buffer, at: int) -> tuple[Expr, ...]:
        """The new extent at its place."""
        return _replaced(buffer.extents, at, 1, (const(self.to),))


@dataclass(frozen=True)
class PadDim(Resizing):
    """Make a dimension of a buffer longer; no access uses the padding.

    `pad_dim@t:1{to=8}`:

    t f32 [8, 4] heap  -->  t f32 [8, 8] heap

    Legal for temporaries: elements keep their indices. Refused for reused and folded dimensions, whose extent takes no
    memory, and if the padding does not fit.
    """

    name: ClassVar[str] = "pad_dim"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Extents of whole vectors for the last dimension, and one more element, against conflicts of banks or sets."""
        for array in temporaries(program):
            if not array.shape:
                continue
            last, extent = len(array.shape) - 1, array.shape[-1]
            wanted = {-(-extent // lanes) * lanes for lanes in program.machine.vector_lanes(array.dtype)}
            if last and not extent % 4:
                wanted.add(extent + 1)
            yield from ((Dimension(array, last), cls(to)) for to in sorted(wanted - {extent}))

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary's whole dimension, and a larger extent; capacity is checked after the move."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer, extent = site.array.buffer, site.array.shape[site.index]
        if buffer.reuse[site.index]:
            return Reason(f"dimension {site.index} of '{site.array.name}' is reused or folded, so it cannot be padded")
        if (sized := _depends_on_sizes(site, site.index)) is not None:
            return sized
        if self.to <= extent:
            return Reason(f"'to' must be more than {extent}, the extent")
        return self.access_reason(program, site)

    def grows(self, program: Program, site: Dimension) -> bool:
        """True if the memory is limited."""
        return site.array.buffer.memory in LIMITED

    def adds(self, program: Program, site: Dimension) -> int:
        """Bytes of the padding."""
        extent = site.array.shape[site.index]
        return -(-bytes_in_memory(program, site.array.buffer) * (self.to - extent) // extent)

    promises: ClassVar = Promises(conditions=True, grows=grows, adds=adds, is_local=True)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return UnpadDim(site.array.shape[site.index]).as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class UnpadDim(Resizing):
    """Cut off the end of a dimension of a buffer, which no access uses.

    `unpad_dim@t:0{to=8}`:

    t f32 [10] heap         t f32 [8] heap
    8 t[{0}] = x[{0}]  -->  8 t[{0}] = x[{0}]
    8 y[{0}] = t[{0}]       8 y[{0}] = t[{0}]

    Legal iff every index of every access is below `to`.
    """

    name: ClassVar[str] = "unpad_dim"
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, grows=False, is_local=True)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """The extent down to the largest index, if only scopes bound it."""
        for array in temporaries(program):
            used = accesses_of(program.nest, array.buffer)
            for at, extent in enumerate(array.shape):
                least = max((a.index[at].bounds(leaf.extents)[1] + 1 for leaf, a in used), default=extent)
                if 1 <= least < extent and not array.buffer.reuse[at]:
                    yield Dimension(array, at), cls(least)

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary's whole dimension, and no access beyond the new extent."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer, at = site.array.buffer, site.index
        if buffer.reuse[at]:
            return Reason(f"dimension {at} of '{site.array.name}' is reused or folded, so it has no padding")
        if (sized := _depends_on_sizes(site, at)) is not None:
            return sized
        if not 1 <= self.to < buffer.shape[at]:
            return Reason(f"'to' must be between 1 and {buffer.shape[at] - 1}, less than the extent")
        for leaf, access in accesses_of(program.nest, buffer):
            greatest = index_bounds(leaf, access.index[at], self.to)[1]
            if greatest >= self.to:
                return Reason(f"{describe_access(access)} goes up to index {greatest}")
        return self.access_reason(program, site)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return PadDim(site.array.shape[site.index]).as_move(f"{site.array.name}:{site.index}")
