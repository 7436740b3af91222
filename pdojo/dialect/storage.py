"""Where array elements live: memory cells after reuse flags and private copies.

An *element* is an array and an index: what the program means. A *cell* is a place in memory: what the program uses.
They differ only in reused dimensions (the paper's `:N`): such a dimension takes one slot, or one slot per concurrent
iteration where a concurrent scope (`p g b w v`) indexes it. A dimension indexed by a threaded scope (`p g b w`) makes
the buffer *private*: each iteration of that scope has its own copy, which lives on the stack of the thread. Within a
copy the slot of an access is its index expression with the variables of all scopes but vector scopes set to zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pdojo.dialect.affine import Expr, const, var
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


def cell_index(access: Access, chain: Sequence[Scope]) -> tuple[Expr, ...]:
    """The slots of an access: its index with reused dimensions replaced by their slots.

    Two accesses of one thread may have different slots of this kind and the same memory; `cell_of` tells these apart.
    """
    reuse = access.array.buffer.reuse
    if not any(reuse):
        return access.index
    return tuple(slot_index(e, chain) if r else e for e, r in zip(access.index, reuse, strict=True))


Placed: TypeAlias = tuple[Access, Sequence[Scope]]
"""An access and the scopes around it, under the mappings that are asked about."""


def copy_depths(accesses: Iterable[Placed], reuse: Sequence[bool]) -> tuple[int, ...]:
    """Depths of the threaded scopes of which each iteration has its own copy of a buffer, if all share one: ().

    `accesses` are all accesses to the buffer. The copies belong to the innermost threaded scope that indexes a reused
    dimension, and so to the threaded scopes around it too.
    """
    owner: tuple[Scope, ...] = ()
    for access, chain in accesses:
        for expression, reused in zip(access.index, reuse, strict=True):
            for depth in expression.variables() if reused else ():
                if depth >= len(owner) and chain[depth].mapping.is_threaded:
                    owner = tuple(chain[: depth + 1])
    return tuple(s.depth for s in owner if s.mapping.is_threaded)


def cell_of(access: Access, chain: Sequence[Scope], reuse: Sequence[bool], copies: Sequence[int]) -> tuple[Expr, ...]:
    """Where in memory an access goes: its index within a copy of the buffer, and the copy's iterations.

    Equal places are the same memory. `copies` are the depths that `copy_depths` gives; -1 stands for no copy.
    """
    if not any(reuse):
        return access.index
    within = (lane_index(e, chain) if r else e for e, r in zip(access.index, reuse, strict=True))
    inside = (var(d) if d < len(chain) and chain[d].mapping.is_threaded else const(-1) for d in copies)
    return (*within, *inside)


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
