"""Interleaving: several results at a time, innermost, because an addition takes four cycles."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.rules.streams import FPU_FUNCTIONS
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.loops import sink, tile
from pdojo.search.kinds.snitch.hardware import share_innermost
from pdojo.search.kinds.snitch.packing import is_streamable, partial_sums
from pdojo.search.kinds.snitch.registers import scope_of

COPIES = 4
"""Number of interleaved results: the latency in cycles from an operation to its use."""
SHARED = 8
"""Most interleaved results if they share a value that no stream delivers, so that one load serves all."""


def interleave(builder: PassBuilder, identifier: str) -> None:
    """Interleave several iterations of one of a nest's loops innermost; a single sum gets four partial sums."""
    scope = builder.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    if any(s.mapping is Mapping.UNROLL for leaf in scope.leaves for s in leaf.chain):
        # Its sums are already interleaved.
        return
    only = scope.children[0]
    is_sum = len(scope.children) == 1 and isinstance(only, Leaf) and only.accumulate is not None
    if is_sum and not any(e.uses(scope.depth) for leaf in scope.leaves for e in leaf.output.index):
        if scope.extent % COPIES == 0:
            why = "four partial sums hide the latency of the FPU"
            builder.transact(lambda: partial_sums(builder, identifier, 1, COPIES, why))
        return
    shared = share_innermost(builder, identifier)
    if shared is not None:
        scope = scope_of(builder, shared).chain[scope.depth]
    elif _is_independent(scope):
        return
    _interleave_one(builder, [loop for loop in _loops(scope) if loop.id != shared])


def _interleave_one(builder: PassBuilder, loops: Sequence[Scope]) -> None:
    """Interleave the best of nested loops; if none has fitting iterations, loops inside of them."""
    for loop, copies in sorted(((loop, _copies(loop)) for loop in loops), key=lambda pair: _loads(pair[0])):
        if copies > 1 and builder.transact(lambda i=loop.id, n=copies: _several_at_a_time(builder, i, n)):
            return
    if not any(loop.extent % COPIES == 0 for loop in loops):
        for child in [child.id for child in loops[-1].children]:
            interleave(builder, child)


def _is_independent(scope: Scope) -> bool:
    """True if a nest is one instruction on streams, so that no instruction waits for another one."""
    if len(scope.leaves) > 1:
        return False
    (leaf,) = scope.leaves
    is_one = leaf.accumulate is None and (leaf.function is None or leaf.function in FPU_FUNCTIONS)
    moved = (a for a in leaf.accesses if any(e.uses(s.depth) for e in a.index for s in leaf.chain))
    return is_one and all(is_streamable(access, leaf) for access in moved)


def _loops(scope: Scope) -> list[Scope]:
    """A loop and the loops that are the only children, outermost first, as long as all results depend on them."""
    found = [scope]
    while len(found[-1].children) == 1:
        (child,) = found[-1].children
        if not isinstance(child, Scope) or child.mapping is not Mapping.SEQUENTIAL:
            break
        if not all(any(e.uses(child.depth) for e in leaf.output.index) for leaf in child.leaves):
            break
        found.append(child)
    return found


def _loads(loop: Scope) -> int:
    """Number of reads that no stream can make and that differ from iteration to iteration of a loop."""
    return sum(any(e.uses(loop.depth) for e in access.index) for access in _unstreamed(loop))


def _unstreamed(loop: Scope) -> list[Access]:
    """The reads of memory, in a loop's innermost statements, that no stream can make."""
    depth = max(len(leaf.chain) for leaf in loop.leaves)
    innermost = [leaf for leaf in loop.leaves if len(leaf.chain) == depth]
    return [
        access
        for leaf in innermost
        for access in leaf.reads
        if access.array.buffer.memory is Memory.HEAP and not is_streamable(access, leaf)
    ]


def _copies(loop: Scope) -> int:
    """The number of iterations of a loop to interleave; 1 if they are no multiple of four."""
    if loop.extent % COPIES:
        return 1
    return SHARED if loop.extent % SHARED == 0 and _shares_loads(loop) else COPIES


def _shares_loads(loop: Scope) -> bool:
    """True if the iterations of a loop need the same loads, which differ inside of it."""
    unstreamed = _unstreamed(loop)
    inside = any(v > loop.depth for access in unstreamed for e in access.index for v in e.variables())
    return inside and not any(e.uses(loop.depth) for access in unstreamed for e in access.index)


def _several_at_a_time(builder: PassBuilder, identifier: str, copies: int) -> bool:
    why = f"{copies} results at a time hide the latency of the FPU"
    tiles = tile(builder, identifier, copies, why)
    parts = sink(builder, tiles.inner, why)
    for part in parts:
        builder.attempt("unroll", f"%{part}", why)
    _cut_temporaries(builder, tiles.outer, copies, why)
    return bool(parts)


def _cut_temporaries(builder: PassBuilder, identifier: str, copies: int, why: str) -> None:
    """Reduce the temporaries' dimensions that the loop over tiles indexes to the elements of one tile."""
    for name in list(builder.temporaries()):
        for dimension, extent in enumerate(builder.nest.arrays[name].shape):
            if not _indexes(builder, identifier, name, dimension):
                continue
            size = copies * lanes_along(builder, name, dimension)
            if extent > size and extent % size == 0:
                builder.transact(lambda name=name, d=dimension, n=size: _cut(builder, name, d, n, why))


def _indexes(builder: PassBuilder, identifier: str, name: str, dimension: int) -> bool:
    """True if a loop indexes a dimension of an array."""
    loop = builder.scope(identifier)
    return loop is not None and any(
        access.index[dimension].uses(loop.depth)
        for leaf in loop.leaves
        for access in leaf.accesses
        if access.array.name == name
    )


def lanes_along(builder: PassBuilder, name: str, dimension: int) -> int:
    """Number of lanes of the vectors that index a dimension of an array; 1 if none do."""
    users = dict.fromkeys((*builder.nest.writers[name], *builder.nest.readers[name]))
    return max(
        (
            scope.extent
            for leaf in users
            for access in leaf.accesses
            for scope in leaf.chain[-1:]
            if access.array.name == name
            and scope.mapping is Mapping.VECTOR
            and access.index[dimension].uses(scope.depth)
        ),
        default=1,
    )


def _cut(builder: PassBuilder, name: str, dimension: int, size: int, why: str) -> None:
    place = f"{name}:{dimension}"
    builder.make("tile_dim", place, why, size=size)
    builder.make("reuse_dims", place, why)
