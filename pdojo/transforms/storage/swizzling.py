"""Swizzles: permuted addresses that put neighbours in a column into different banks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Buffer,
    Dimension,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Swizzle,
    Transformation,
    accesses_of,
    swizzle_attr,
    swizzle_problem,
    swizzled_lanes,
)
from pdojo.transforms.storage.location import fixed_memory, hinted, temporaries


def _set_swizzles(buffer: Buffer, swizzles: dict[int, Swizzle], rewriter: PatternRewriter) -> None:
    assert buffer.op is not None
    attribute = swizzle_attr(swizzles)
    if attribute is None:
        buffer.op.properties.pop("swizzle", None)
    else:
        buffer.op.properties["swizzle"] = attribute
    rewriter.notify_op_modified(buffer.op)


def _extents(buffer: Buffer) -> list[int]:
    """The extents; -1 where they depend on sizes."""
    return [extent.constant if extent.is_constant else -1 for extent in buffer.extents]


@dataclass(frozen=True)
class SwizzleDim(Transformation[Dimension]):
    """Permute the positions in a dimension by the index i in another one: granule q goes to the place of q xor i.

    `swizzle_dim@t:1{by=0}`:

    t f32 [8, 4] heap  -->  t f32 [8, 4^0] heap

    A granule is `granule` neighbouring elements, one by default; their number is a power of two. The permutation is a
    bijection for every i, so it is legal for any temporary with addresses. Refused if a vector's lanes would not stay
    in one granule.
    """

    name: ClassVar[str] = "swizzle_dim"
    promises: ClassVar = Promises(conditions=True, adds=0)
    by: int
    granule: int = 1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """The last dimensions of temporaries, swizzled by earlier ones, in granules of an element or of a vector."""
        for array in temporaries(program):
            buffer, last = array.buffer, len(array.shape) - 1
            if last < 1 or buffer.memory is Memory.REGISTER or buffer.swizzles:
                continue
            for granule in sorted({1, *program.machine.vector_lanes(array.dtype)}):
                if swizzle_problem(_extents(buffer), buffer.reuse, last, Swizzle(last - 1, granule)) is None:
                    yield Dimension(array, last), cls(last - 1, granule)

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary with addresses, two whole dimensions, fitting granules, and vectors within granules."""
        if (refused := fixed_memory(site.array)) is not None:
            return refused
        buffer, swizzle = site.array.buffer, Swizzle(self.by, self.granule)
        if buffer.memory is Memory.REGISTER:
            return Reason(f"'{site.array.name}' is in registers, which have no addresses")
        for dimension, present in buffer.swizzles.items():
            if {dimension, present.by} & {site.index} or dimension == self.by:
                return Reason(f"dimension {dimension} is swizzled by {present.by}; unswizzle_dim first")
        if (problem := swizzle_problem(_extents(buffer), buffer.reuse, site.index, swizzle)) is not None:
            return problem
        return self._lanes(program, site, swizzle) or hinted(program, buffer)

    @staticmethod
    def _lanes(program: Program, site: Dimension, swizzle: Swizzle) -> Reason | None:
        for leaf, access in accesses_of(program.nest, site.array.buffer):
            lanes = leaf.parent
            if lanes is not None and lanes.mapping is Mapping.VECTOR:
                problem = swizzled_lanes(access, lanes, {site.index: swizzle})
                if problem is not None:
                    return problem
        return None

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        buffer = site.array.buffer
        _set_swizzles(buffer, {**buffer.swizzles, site.index: Swizzle(self.by, self.granule)}, rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        return UnswizzleDim().as_move(f"{site.array.name}:{site.index}")


@dataclass(frozen=True)
class UnswizzleDim(Transformation[Dimension]):
    """Put the positions in a dimension back into row-major order.

    `unswizzle_dim@t:1`:

    t f32 [8, 4^0] heap  -->  t f32 [8, 4] heap

    Always legal, except for hints on accesses, which hold for the present layout.
    """

    name: ClassVar[str] = "unswizzle_dim"
    undoes: ClassVar = True
    promises: ClassVar = Promises(conditions=True, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Swizzled dimensions."""
        for array in temporaries(program):
            yield from ((Dimension(array, dimension), cls()) for dimension in array.buffer.swizzles)

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a swizzled dimension."""
        if site.index not in site.array.buffer.swizzles:
            return Reason(f"dimension {site.index} of '{site.array.name}' is not swizzled")
        return hinted(program, site.array.buffer)

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        buffer = site.array.buffer
        _set_swizzles(buffer, {d: s for d, s in buffer.swizzles.items() if d != site.index}, rewriter)

    def inverse(self, program: Program, site: Dimension) -> Move:
        swizzle = site.array.buffer.swizzles[site.index]
        return SwizzleDim(swizzle.by, swizzle.granule).as_move(f"{site.array.name}:{site.index}")
