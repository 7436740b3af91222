"""Layout: the order of dimensions in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Buffer,
    Dimension,
    Expr,
    Mapping,
    Memory,
    Move,
    Program,
    Promises,
    Reason,
    accesses_of,
    lane_problem,
    register_problem,
)
from pdojo.transforms.storage.dimensions import Redeclaration, Reindexed
from pdojo.transforms.storage.location import callers_memory, hinted, swizzled, temporaries


@dataclass(frozen=True)
class SwapDims(Redeclaration):
    """Exchange a dimension of a buffer with the next one; every access follows.

    `swap_dims@t:0`:

    t f32 [8, 4] heap                 t f32 [4, 8] heap
    8 4 t[{0},{1}] = x[{0},{1}]  -->  8 4 t[{1},{0}] = x[{0},{1}]

    Always legal for temporaries; refused if vectors would become strided on a machine without strided accesses.
    """

    name: ClassVar[str] = "swap_dims"
    promises: ClassVar = Promises(conditions=True, grows=False, is_local=True)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Dimension, Self]]:
        """Dimensions of temporaries that have a next one."""
        for array in temporaries(program):
            yield from ((Dimension(array, index), cls()) for index in range(len(array.shape) - 1))

    def check(self, program: Program, site: Dimension) -> Reason | None:
        """Requires a temporary with a next dimension, whose vector and register accesses remain possible."""
        if (refused := callers_memory(site.array)) is not None:
            return refused
        buffer = site.array.buffer
        if site.index + 1 >= len(buffer.shape):
            return Reason(f"dimension {site.index} is the last of '{site.array.name}'")
        order = _order(buffer, site.index)
        if buffer.memory is Memory.REGISTER:
            problem = register_problem(program.nest, buffer, order)
            if problem is not None:
                return problem
        for leaf, access in accesses_of(program.nest, buffer):
            lanes = leaf.parent
            if lanes is not None and lanes.mapping is Mapping.VECTOR:
                problem = lane_problem(access, leaf, lanes, program.machine, order)
                if problem is not None:
                    return problem
        return swizzled(buffer) or hinted(program, buffer)

    def extents(self, buffer: Buffer, at: int) -> tuple[Expr, ...]:
        """The extents in the other order."""
        return tuple(buffer.extents[d] for d in _order(buffer, at))

    def slots(self, buffer: Buffer, at: int) -> tuple[int, ...]:
        """The slots in the other order."""
        return tuple(buffer.reuse[d] for d in _order(buffer, at))

    def index(self, buffer: Buffer, at: int) -> Reindexed:
        """The indices in the other order."""
        return lambda index, _: tuple(index[d] for d in _order(buffer, at))

    def inverse(self, program: Program, site: Dimension) -> Move:
        return SwapDims().as_move(f"{site.array.name}:{site.index}")


def _order(buffer: Buffer, index: int) -> tuple[int, ...]:
    order = list(range(len(buffer.shape)))
    order[index], order[index + 1] = order[index + 1], order[index]
    return tuple(order)
