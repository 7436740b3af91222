"""Layout: the order of dimensions in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Buffer,
    BufferOp,
    Dimension,
    Input,
    Leaf,
    Mapping,
    Memory,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Transformation,
    accesses_of,
    chain_ops,
    lane_problem,
    names_of,
    rebuilt,
    register_problem,
)
from pdojo.transforms.storage.location import callers_memory, hinted, swizzled, temporaries


@dataclass(frozen=True)
class SwapDims(Transformation[Dimension]):
    """Exchange a dimension of a buffer with the next one; every access follows.

    `swap_dims@t:0`:

    t f32 [8, 4] heap                 t f32 [4, 8] heap
    8 4 t[{0},{1}] = x[{0},{1}]  -->  8 4 t[{1},{0}] = x[{0},{1}]

    Always legal for temporaries; refused if vectors would become strided on a machine without strided accesses.
    """

    name: ClassVar[str] = "swap_dims"
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, grows=False, is_local=True)
    site: ClassVar = Dimension

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

    def rewrite(self, program: Program, site: Dimension, rewriter: PatternRewriter) -> None:
        """Redeclare the buffer and permute every access to it."""
        buffer = site.array.buffer
        order = _order(buffer, site.index)
        old = buffer.op
        assert old is not None
        extents = [buffer.extents[d] for d in order]
        slots, names = [buffer.reuse[d] for d in order], names_of(old.array_names)
        new = BufferOp.of(names, buffer.dtype, extents, buffer.memory, slots, constant=buffer.constant)
        affected = dict.fromkeys(leaf for leaf, _ in accesses_of(program.nest, buffer))
        for leaf in affected:
            _permute(leaf, buffer, order, rewriter)
        rewriter.replace(old, new)

    def inverse(self, program: Program, site: Dimension) -> Move:
        """Exchange them again."""
        return SwapDims().as_move(f"{site.array.name}:{site.index}")


def _order(buffer: Buffer, index: int) -> tuple[int, ...]:
    order = list(range(len(buffer.shape)))
    order[index], order[index + 1] = order[index + 1], order[index]
    return tuple(order)


def _permute(leaf: Leaf, buffer: Buffer, order: tuple[int, ...], rewriter: PatternRewriter) -> None:
    def permuted(value: Input) -> Input:
        if isinstance(value, Access) and value.array.buffer is buffer:
            return Access(value.array, tuple(value.index[d] for d in order), value.hints)
        return value

    output = permuted(leaf.output)
    assert isinstance(output, Access)
    new = rebuilt(leaf, chain_ops(leaf), output.index, [permuted(i) for i in leaf.inputs])
    rewriter.replace(leaf.op, new)
