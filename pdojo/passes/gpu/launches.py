"""Fusion of nests into one launch, if their common loops have enough iterations for the multiprocessors."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.rules.atomics import atomic_operation
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.errors import IllegalMove
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import spatial_loops
from pdojo.passes.common.loops import isolate, reorder
from pdojo.passes.common.sums import Parts, split_terms
from pdojo.passes.cpu.fusion import align
from pdojo.passes.cpu.threads import work
from pdojo.passes.gpu.threads import collapse

SMALL = 1 << 20
"""Statement instances below which a launch costs about as much as its work."""
LAUNCHED, ATOMIC = "a second launch", "atomic operations"
"""Options: how to add up the parts of a sum."""
TERMS = 1 << 12
"""Fewest terms of a sum whose parts deserve their own launch."""
COLUMN_TERMS = 1 << 9
"""The same if a thread adds up all terms of its results, with neighbouring results contiguous in memory."""


def multiprocessors(builder: PassBuilder) -> int:
    """Multiprocessors of the machine; a model's number if the machine description gives none."""
    return builder.game.machine.gpu.multiprocessors or 64


def fuse(builder: PassBuilder) -> None:
    """Fuse neighbouring nests if their common loops keep the multiprocessors busy, or if they have little work."""
    align(builder)
    refused: set[tuple[str, str]] = set()
    while any(_try(builder, first, refused) for first in list(_neighbours(builder))):
        pass


def _neighbours(builder: PassBuilder) -> Iterator[Scope]:
    for node in builder.nest.children:
        second = builder.nest.next_sibling(node)
        if isinstance(node, Scope) and isinstance(second, Scope) and not {node.id, second.id} & builder.sealed:
            yield node


def _try(builder: PassBuilder, first: Scope, refused: set[tuple[str, str]]) -> bool:
    second = builder.nest.next_sibling(first)
    assert isinstance(second, Scope)
    if (first.id, second.id) in refused or first.extent != second.extent:
        return False
    little = work(first) + work(second) <= SMALL

    def joined() -> bool:
        common = _join(builder, first.id, second.id)
        return common is not None and (little or common >= multiprocessors(builder))

    if builder.transact(joined):
        return True
    refused.add((first.id, second.id))
    return False


def _join(builder: PassBuilder, first: str, second: str) -> int | None:
    """Join two scopes and their only-child loops; returns the number of shared iterations, None if illegal."""
    one, other = builder.scope(first), builder.scope(second)
    inside, beside = _only(one), _only(other)
    if not builder.attempt("join_scopes", one, "nests that share their loops share a launch: values stay with a block"):
        return None
    if inside is not None and beside is not None and inside.extent == beside.extent:
        inner = _join(builder, inside.id, beside.id)
        if inner is not None:
            return inner
    scope = builder.find_scope(first) or builder.find_scope(second)
    assert scope is not None
    return prod(s.extent for s in (*scope.chain[:-1], scope))


def _only(scope: Scope) -> Scope | None:
    child = scope.children[0]
    if len(scope.children) > 1 or not isinstance(child, Scope) or child.mapping is not Mapping.SEQUENTIAL:
        return None
    return child


def part_sums(builder: PassBuilder) -> None:
    """Add up sums with few results in parts, so that every multiprocessor has work."""
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        if _top(builder.leaf(identifier)).id not in builder.sealed:
            builder.transact(lambda i=identifier: _terms_last(builder, i))
        leaf = builder.leaf(identifier)
        terms = len(leaf.chain) > len(spatial_loops(leaf))
        if _top(leaf).id in builder.sealed or not terms or any(s.guard for s in leaf.chain):
            continue
        results = prod(s.extent for s in leaf.chain if s.depth in spatial_loops(leaf))
        count = prod(s.extent for s in leaf.chain) // results
        wanted = 2 * multiprocessors(builder) * (256 if _columns(leaf) else 1) // results
        if wanted >= 2 and count >= (COLUMN_TERMS if _columns(leaf) else TERMS):
            parts = min(wanted, count // 64)
            why = f"{results} results are too few for {multiprocessors(builder)} multiprocessors"
            ways = [LAUNCHED, ATOMIC] if _has_atomics(builder, leaf) else [LAUNCHED]
            way = builder.choices.choose(f"parts of {leaf.output.array.name} are added up by", ways)
            if way == LAUNCHED or not builder.transact(lambda i=identifier, n=parts, w=why: _add_up(builder, i, n, w)):
                builder.transact(lambda i=identifier, n=parts, w=why: part_terms(builder, i, n, w))


def _terms_last(builder: PassBuilder, identifier: str) -> None:
    """Move the loops over the terms of a sum inside of the loops over its results."""
    chain, spatial = builder.leaf(identifier).chain, spatial_loops(builder.leaf(identifier))
    order = sorted(chain, key=lambda s: s.depth not in spatial)
    if order != list(chain):
        isolate(builder, identifier, "one launch computes a result")
        reorder(builder, identifier, [s.id for s in order])


def _has_atomics(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if blocks may accumulate into the results of a sum."""
    gpu, operation = builder.game.machine.gpu, atomic_operation(leaf)
    wanted = [Numerics.REASSOCIATES, *([Numerics.FLUSHES] if operation in gpu.flushing_atomics else [])]
    return operation in gpu.atomics and all(builder.game.program.permits(numerics) for numerics in wanted)


def _add_up(builder: PassBuilder, identifier: str, count: int, why: str) -> None:
    """Cut the loops over the terms of a sum into parts; blocks add each part to the results."""
    parts = _cut_terms(builder, identifier, count, why)
    loops = {i: _loop_over_parts(builder.leaf(i), parts.array) for i in (parts.zero, parts.total, parts.combined)}
    for statement, loop in loops.items():
        others = [s.id for s in builder.leaf(statement).chain if s.id != loop]
        reorder(builder, statement, [loop, *others])
    for level in range(len(builder.leaf(parts.zero).chain)):
        for _ in (parts.total, parts.combined):
            builder.make("join_scopes", builder.loop(parts.zero, level), why)
    _rest_first(builder, parts.combined)


def _rest_first(builder: PassBuilder, identifier: str) -> None:
    """Move a nest with the remaining terms in front of the parts, next to the initialisation."""
    name = builder.leaf(identifier).output.array.name
    while isinstance(rest := builder.nest.next_sibling(_top(builder.leaf(identifier))), Scope):
        others = any(leaf.output.array.name != name or leaf.accumulate is None for leaf in rest.leaves)
        if others or not builder.attempt("swap_nodes", _top(builder.leaf(identifier)), "added before the parts"):
            return


def _columns(leaf: Leaf) -> bool:
    """True if neighbouring results read neighbouring elements, and neighbouring terms do not."""
    (*_, terms) = (s for s in leaf.chain if s.depth not in spatial_loops(leaf))
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    return bool(spatial) and any(
        lane_stride(a.index, a.array.shape, spatial[-1].depth) is Stride.CONTIGUOUS
        and lane_stride(a.index, a.array.shape, terms.depth) is not Stride.CONTIGUOUS
        for a in leaf.reads
    )


def part_terms(builder: PassBuilder, identifier: str, count: int, why: str) -> None:
    """Cut the loops over the terms of a sum into `count` parts with their own nests."""
    columns = _columns(builder.leaf(identifier))
    parts = _cut_terms(builder, identifier, count, why)
    _sink_initial(builder, parts.combined, why)
    for statement in (parts.zero, parts.total) if columns else ():
        _parts_first(builder, statement)
    for level in range(len(builder.leaf(parts.zero).chain)):
        builder.make("join_scopes", builder.loop(parts.zero, level), why)


def _cut_terms(builder: PassBuilder, identifier: str, count: int, why: str) -> Parts:
    """A sum in parts whose statements have their own nests."""
    isolate(builder, identifier, why)
    leaf = builder.leaf(identifier)
    terms = [s for s in leaf.chain if s.depth not in spatial_loops(leaf)]
    if terms != list(leaf.chain[-len(terms) :]):
        raise IllegalMove("the loops over the terms are not the innermost ones")
    collapse(builder, terms[0].id, why)
    parts = split_terms(builder, identifier, count, why)
    for statement in (parts.zero, parts.total, parts.combined):
        isolate(builder, statement, why)
    return parts


def _sink_initial(builder: PassBuilder, identifier: str, why: str) -> None:
    """Move the initialisation of a sum directly in front of it, so that one launch does both."""
    target = builder.leaf(identifier)
    writers = builder.nest.writers[target.output.array.name]
    for initial in [w.id for w in writers if w.accumulate is None and w.order < target.order]:
        while (root := _top(builder.leaf(initial))).position + 1 < _top(builder.leaf(identifier)).position:
            if not builder.attempt("swap_nodes", root, why):
                return


def _top(leaf: Leaf) -> Node:
    return leaf.chain[0] if leaf.chain else leaf


def _loop_over_parts(leaf: Leaf, array: str) -> str:
    """Identifier of the loop over the parts of a sum; the parts are the first dimension of their array."""
    access = next(a for a in leaf.accesses if a.array.name == array)
    (depth,) = access.index[0].variables()
    return leaf.chain[depth].id


def _parts_first(builder: PassBuilder, identifier: str) -> None:
    """Move the loop over the parts of a sum outside of the loops over its results."""
    leaf = builder.leaf(identifier)
    spatial = sorted(spatial_loops(leaf))
    rest = [s.id for s in leaf.chain if s.depth not in spatial]
    reorder(builder, identifier, [leaf.chain[spatial[-1]].id, *(leaf.chain[d].id for d in spatial[:-1]), *rest])
