"""Loop simplification: no loops of one iteration, and one loop over contiguous memory instead of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pdojo.dialect.affine import const, var
from pdojo.dialect.attributes import Intent
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_plain, is_whole, run_time_extent
from pdojo.dialect.view.storage import accesses_of, physical_index
from pdojo.errors import LocationError
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.dimensions import indexed_by

_UNIT = "a loop of one iteration needs no loop"


def drop_unit_loops(builder: PassBuilder) -> None:
    """Collapse every loop of one iteration with its child or its parent; split it first if it has several children."""
    units = (scope for scope in builder.nest.scopes if scope.extent == 1 and not builder.is_finished(scope))
    shared = [scope.id for scope in units if len(scope.children) > 1]
    for identifier in shared:
        while (scope := builder.find_scope(identifier)) and len(scope.children) > 1:
            last = len(scope.children) - 1
            if not builder.attempt("split_scopes", scope, _UNIT, after=last):
                break
    collapse_unit_loops(builder)


def collapse_unit_loops(builder: PassBuilder) -> None:
    """Collapse every loop of one iteration with its only child, or with its parent."""

    def beside_unit() -> Iterator[Scope]:
        for scope in builder.nest.scopes:
            inner = _only_child(scope)
            if inner is not None and 1 in (scope.extent, inner.extent) and not builder.is_finished(scope):
                yield scope

    builder.exhaust(beside_unit, "collapse_scopes", _UNIT)


def flatten(builder: PassBuilder, *, guarded: bool = True) -> None:
    """Collapse two loops that run over contiguous memory: fewer peeled rests, aligned vectors.

    Without `guarded`, loops on which guards depend stay.

    Two loops are collapsed iff every access in them uses either neither loop, or both as whole neighbouring dimensions,
    and all other accesses to the arrays written there can be collapsed in the same way, so that fusion stays possible.
    """
    why = "rows that are adjacent in memory form one loop"
    while pairs := _flat_pairs(builder, guarded=guarded):
        # Innermost first, so that a collapsed loop can be collapsed with the loop around it next.
        inner = {i: d for i, d in pairs.items() if _only_child_of(builder, i).id not in pairs}
        for scope in inner:
            if not builder.attempt("collapse_scopes", f"%{scope}", why):
                return
        for array, dimension in sorted({place for places in inner.values() for place in places}):
            if builder.nest.arrays[array].buffer.op is not None:
                builder.attempt("collapse_dims", f"{array}:{dimension}", why)


def order_terms(builder: PassBuilder) -> None:
    """Let every reduction of one array read it in the order of memory, as far as its loops over terms decide."""
    why = "a reduction reads in the order of memory"
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        leaf = builder.leaf(identifier)
        if len(leaf.reads) != 1:
            continue
        (read,) = leaf.reads
        address = linear_address(read.index, read.array.shape)
        terms = [s for s in leaf.chain if not any(e.uses(s.depth) for e in leaf.output.index)]
        first = len(leaf.chain) - len(terms)
        if address.is_linear and [s.depth for s in terms] == [*range(first, len(leaf.chain))]:
            wanted = sorted(terms, key=lambda s: -abs(address.coefficient(s.depth)))
            chain = [s.id for s in (*leaf.chain[:first], *wanted)]
            builder.transact(lambda i=identifier, chain=chain: reorder(builder, i, chain, why))


def unfold(builder: PassBuilder) -> None:
    """Give every element of a temporary its own memory; later steps reuse dimensions that loops do not need.

    A temporary with one slot ties the statements of a loop together, which prevents vectorisation.
    """
    why = "vectors need an element for each lane"
    for name in list(builder.temporaries()):
        buffer = builder.nest.arrays[name].buffer
        if not any(buffer.reuse) or any(builder.is_finished(leaf) for leaf, _ in accesses_of(builder.nest, buffer)):
            continue
        builder.attempt("set_location", name, "room for an element for each lane", location="heap")
        for dimension in range(len(buffer.shape)):
            builder.attempt("materialize_dims", f"{name}:{dimension}", why)


def sink(builder: PassBuilder, identifier: str, why: str) -> list[str]:
    """Move a loop inwards, separately for each statement; returns the identifiers of the resulting loops."""
    found: list[str] = []
    todo = [identifier]
    while todo:
        scope = builder.scope(todo.pop())
        if len(scope.children) > 1:
            if not builder.attempt("split_scopes", scope, why, after=1):
                found.append(scope.id)
                continue
            first = builder.scope(scope.id)
            rest = builder.nest.next_sibling(first)
            assert isinstance(rest, Scope)
            todo += [rest.id, first.id]
        elif isinstance(scope.children[0], Scope) and builder.attempt("swap_scopes", scope, why):
            todo.append(scope.id)
        else:
            found.append(scope.id)
    return found


def straighten(builder: PassBuilder, identifier: str, lanes: int, why: str) -> None:
    """Turn a loop into straight code: vectors of `lanes` lanes, or scalars if `lanes` is 1."""
    scope = builder.scope(identifier)
    if lanes in (1, scope.extent):
        builder.make("unroll" if lanes == 1 else "vectorize", scope, why)
        return
    tiles = tile(builder, scope, lanes, why)
    builder.make("vectorize", f"%{tiles.inner}", why)
    builder.make("unroll", f"%{tiles.outer}", why)


def jam(builder: PassBuilder, loop: Scope, size: int, why: str) -> None:
    """Cut a loop into groups of `size` iterations, and unroll a group around every vector."""
    groups = tile(builder, loop, size, why)
    for part in sink(builder, groups.inner, why):
        builder.make("unroll", f"%{part}", why)
    for name, dimension in _private_dimensions(builder, groups.outer):
        # Values that only one group needs get their own dimension, which can be reused.
        builder.attempt("tile_dim", f"{name}:{dimension}", why, size=size)


def reorder(
    builder: PassBuilder, statement: str, wanted: Sequence[str], why: str = "the order of loops that reuses most"
) -> None:
    """Interchange the loops around a statement into the wanted order, outermost first."""
    for position, target in enumerate(wanted):
        while (depth := _depth(builder.leaf(statement), target)) != position:
            builder.make("swap_scopes", builder.loop(statement, depth - 1), why)


def _depth(leaf: Leaf, loop: str) -> int:
    """The depth of a loop around a statement. Raises LocationError if the loop is not around it."""
    for scope in leaf.chain:
        if scope.id == loop:
            return scope.depth
    raise LocationError(f"the loop '{loop}' is not around '{leaf.id}'")


def isolate(builder: PassBuilder, statement: str, why: str, depth: int | None = None) -> None:
    """Split the first `depth` loops around a statement (None: all), innermost first, until they hold nothing else."""
    chain = builder.leaf(statement).chain
    for level in reversed(range(len(chain) if depth is None else depth)):
        while len((scope := builder.loop(statement, level)).children) > 1:
            chain = builder.leaf(statement).chain
            position = chain[level + 1].position if level + 1 < len(chain) else builder.leaf(statement).position
            builder.make("split_scopes", scope, why, after=position or 1)


class Tiles(NamedTuple):
    """Identifiers of the loop over tiles and of the loop inside a tile; they avoid taken names."""

    outer: str
    inner: str


def tile(builder: PassBuilder, scope: Scope | str, size: int, why: str) -> Tiles:
    """Cut a loop, given by itself or by its identifier, into tiles of `size` iterations."""
    known = builder.nest.by_id.keys()
    builder.make("tile_scope", scope if isinstance(scope, Scope) else f"%{scope}", why, size=size)
    return Tiles(*(scope.id for scope in builder.nest.scopes if scope.id not in known))


def peel_rest(builder: PassBuilder, scope: Scope, size: int, why: str) -> bool:
    """Peel off the iterations after the last whole tile of `size` iterations; returns True if there are any.

    Raises IllegalMove if that is refused, or if there is no whole tile.
    """
    if is_whole(scope, size):
        return False
    if run_time_extent(scope) is None:
        builder.make("peel_scope", scope, why, after=scope.extent // size * size)
    else:
        builder.make("peel_scope", scope, why, multiple=size)
    return True


def is_copy(leaf: Leaf) -> bool:
    """True for a statement that copies elements."""
    return leaf.function is None and leaf.accumulate is None and len(leaf.reads) == len(leaf.inputs) == 1


def indexing(builder: PassBuilder, array: str) -> list[str]:
    """The loops that index the memory of an array, outermost first."""
    found = {
        leaf.chain[depth].id
        for leaf, access in accesses_of(builder.nest, builder.nest.arrays[array].buffer)
        for expression in physical_index(access, leaf.chain)
        for depth in expression.variables()
    }
    return [scope.id for scope in builder.nest.scopes if scope.id in found]


def _private_dimensions(builder: PassBuilder, identifier: str) -> list[tuple[str, int]]:
    """The dimensions that a loop indexes of temporaries that nothing outside of it uses."""
    loop = builder.scope(identifier)
    found = [place for leaf in loop.leaves for place in indexed_by(leaf, loop.depth)]
    outside = {a.array.name for leaf in builder.nest.leaves if loop not in leaf.chain for a in leaf.accesses}
    mine = set(builder.temporaries()) - outside
    return [place for place in dict.fromkeys(found) if place[0] in mine]


_Pairs = dict[str, set[tuple[str, int]]]
"""Outer loops that can be collapsed with their only child, and the array dimensions that the two loops index."""


def _flat_pairs(builder: PassBuilder, *, guarded: bool) -> _Pairs:
    nest = builder.nest
    found: _Pairs = {}
    for scope in nest.scopes:
        dimensions = _dimensions(scope)
        if dimensions is not None and (guarded or not _is_in_guard(scope)) and not builder.is_finished(scope):
            found[scope.id] = dimensions
    while True:
        alone = [i for i, dimensions in found.items() if not all(_everywhere(builder, found, *d) for d in dimensions)]
        if not alone:
            return found
        for identifier in alone:
            del found[identifier]


def _is_in_guard(scope: Scope) -> bool:
    """True if a guard depends on a loop or on its child."""
    return any(g.uses(d) for leaf in scope.leaves for g in leaf.guards for d in (scope.depth, scope.depth + 1))


def _only_child(scope: Scope) -> Scope | None:
    child = scope.children[0]
    alone = len(scope.children) == 1 and isinstance(child, Scope)
    if not alone or not is_plain(scope) or not isinstance(child, Scope):
        return None
    return child if is_plain(child) else None


def _only_child_of(builder: PassBuilder, identifier: str) -> Scope:
    scope = builder.scope(identifier)
    child = _only_child(scope)
    assert child is not None
    return child


def _dimensions(scope: Scope) -> set[tuple[str, int]] | None:
    """The array dimensions that a loop and its only child index together; None if any access uses only one of them."""
    if _only_child(scope) is None:
        return None
    found: set[tuple[str, int]] = set()
    for access in (a for leaf in scope.leaves for a in leaf.accesses):
        if not any(e.uses(d) for e in access.index for d in (scope.depth, scope.depth + 1)):
            continue
        dimension = _joint(access, scope)
        if dimension is None:
            return None
        found.add((access.array.name, dimension))
    return found or None


def _joint(access: Access, scope: Scope) -> int | None:
    """The dimension along which the loop runs while its child indexes the whole next one; None if there is none."""
    child = _only_child(scope)
    for dimension, (first, second) in enumerate(zip(access.index, access.index[1:], strict=False)):
        whole = child is not None and access.array.buffer.extents[dimension + 1] == const(child.extent)
        rest = first - var(scope.depth)
        others = (rest, *access.index[:dimension], *access.index[dimension + 2 :])
        alone = not any(e.uses(d) for e in others for d in (scope.depth, scope.depth + 1))
        if alone and second == var(scope.depth + 1) and whole:
            reused = access.array.buffer.reuse[dimension : dimension + 2]
            return None if reused[0] != reused[1] else dimension
    return None


def _everywhere(builder: PassBuilder, found: _Pairs, array: str, dimension: int) -> bool:
    """True if all accesses to a written array treat the two dimensions as one."""
    nest = builder.nest
    if nest.arrays[array].intent is Intent.IN:
        return True
    for leaf in dict.fromkeys((*nest.writers[array], *nest.readers[array])):
        pairs = [found[s.id] for s in leaf.chain if s.id in found]
        if not any((array, dimension) in pair for pair in pairs):
            return False
    return True
