"""Where array elements live: memory cells after reuse flags and private copies.

An *element* is an array and an index: what the program means. A *cell* is a place in memory: what the program uses.
They differ only in reused dimensions (the paper's `:N`): such a dimension takes one slot, or one slot per concurrent
iteration where a concurrent scope (`p g b w v`) indexes it. So the slot of an access is its index expression with the
variables of all non-concurrent scopes set to zero. A dimension indexed by a threaded scope (`p g b w`) makes the
buffer *private*: each iteration of that scope has its own copy, which lives on the stack of the thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import Expr, const
from pdojo.dialect.nest import Access, Buffer, Leaf, Nest, Scope


def slot_index(index: Expr, chain: Sequence[Scope]) -> Expr:
    """The slot that an access takes in a reused dimension, as an expression over the concurrent scopes of `chain`."""
    return _restrict(index, chain, [s.mapping.is_concurrent for s in chain])


def lane_index(index: Expr, chain: Sequence[Scope]) -> Expr:
    """The slot within one thread's copy: only vector scopes count."""
    return _restrict(index, chain, [s.mapping.is_concurrent and not s.mapping.is_threaded for s in chain])


def _restrict(index: Expr, chain: Sequence[Scope], kept: Sequence[bool]) -> Expr:
    variables = index.variables()
    if not any(kept[v] for v in variables):
        return const(0)
    zeros = {v: const(0) for v in variables if not kept[v]}
    return index.substitute(zeros, [s.extent for s in chain]) if zeros else index


def cell_index(access: Access, chain: Sequence[Scope], reuse: Sequence[bool] | None = None) -> tuple[Expr, ...]:
    """The cell of an access: its index with reused dimensions replaced by their slots.

    `reuse` are the flags of the buffer, where they are not those it has.
    """
    flags = access.array.buffer.reuse if reuse is None else reuse
    if not any(flags):
        return access.index
    return tuple(slot_index(e, chain) if r else e for e, r in zip(access.index, flags, strict=True))


def physical_index(access: Access, chain: Sequence[Scope]) -> tuple[Expr, ...]:
    """The index into the memory of one thread: reused dimensions keep only their vector lanes."""
    reuse = access.array.buffer.reuse
    if not any(reuse):
        return access.index
    return tuple(lane_index(e, chain) if r else e for e, r in zip(access.index, reuse, strict=True))


def accesses_of(nest: Nest, buffer: Buffer) -> list[tuple[Leaf, Access]]:
    """Every access to any array of the buffer, with its statement, in textual order."""
    return [(leaf, a) for leaf in nest.leaves for a in leaf.accesses if a.array.buffer is buffer]


def physical_shape(nest: Nest, buffer: Buffer) -> tuple[int, ...]:
    """The extents that the buffer takes in memory (of one thread, where it is private)."""
    if not any(buffer.reuse):
        return buffer.shape
    shape = [1 if reused else extent for extent, reused in zip(buffer.shape, buffer.reuse, strict=True)]
    for leaf, access in accesses_of(nest, buffer):
        for dimension, expression in enumerate(physical_index(access, leaf.chain)):
            if buffer.reuse[dimension]:
                shape[dimension] = max(shape[dimension], expression.bounds(leaf.extents)[1] + 1)
    return tuple(shape)


def private_scope(nest: Nest, buffer: Buffer) -> Scope | None:
    """The innermost threaded scope whose iterations each have a copy of the buffer; None where all share one."""
    found: Scope | None = None
    for leaf, access in accesses_of(nest, buffer):
        for expression, reused in zip(access.index, buffer.reuse, strict=True):
            for depth in expression.variables() if reused else ():
                scope = leaf.chain[depth]
                if scope.mapping.is_threaded and (found is None or scope.depth > found.depth):
                    found = scope
    return found
