"""Loops as threads of a block: groups of elements that neighbouring threads access together."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from pdojo.dialect.rules.lanes import lane_problem
from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.loops import sink, tile
from pdojo.search.kinds.common.threads import perfect


class Spread(NamedTuple):
    """The loops that replace a spread loop, by identifier; None if there is no such loop."""

    threads: str
    turns: str | None
    """The loop over the elements of a thread, a vector at a time."""
    lanes: str | None


def collapse(builder: PassBuilder, identifier: str, why: str) -> bool:
    """Collapse a scope and all loops perfectly nested in it into one loop."""
    while True:
        scope = builder.scope(identifier)
        assert scope is not None
        if len(perfect(scope)) == 1:
            return True
        known = builder.nest.by_id.keys()
        if not builder.attempt("collapse_scopes", scope, why):
            return False
        if builder.scope(identifier) is None:
            identifier = next(s.id for s in builder.nest.scopes if s.id not in known)


def spread(builder: PassBuilder, identifier: str, threads: int, lanes: int, why: str) -> Spread | None:
    """Split a loop into turns of `threads` threads with `lanes` neighbouring elements each; None if illegal."""
    turns = inner = None
    scope = builder.scope(identifier)
    assert scope is not None
    lanes = max(1, min(lanes, largest_power(scope.extent / threads)))
    if scope.extent > threads * lanes:
        tiles = tile(builder, scope, threads * lanes, why)
        if tiles is None:
            return None
        turns, identifier = tiles
    if lanes > 1:
        scope = builder.scope(identifier)
        assert scope is not None
        tiles = tile(builder, scope, lanes, why)
        if tiles is None:
            return None
        identifier, inner = tiles
    if turns is not None and not builder.attempt("swap_scopes", f"%{turns}", why):
        return None
    return Spread(identifier, turns, inner)


def map_threads(builder: PassBuilder, identifier: str, warp: int, why: str) -> bool:
    """Map a loop to the threads of a block, as warps if there are several."""
    scope = builder.scope(identifier)
    assert scope is not None
    if scope.extent <= warp:
        return builder.attempt("map_warp" if warp % scope.extent == 0 else "map_block", scope, why)
    tiles = tile(builder, scope, warp, why)
    return (
        tiles is not None
        and builder.attempt("map_block", f"%{tiles.outer}", why)
        and builder.attempt("map_warp", f"%{tiles.inner}", why)
    )


def vectors(builder: PassBuilder, identifier: str, why: str) -> bool:
    """Vectorise each statement of a loop."""
    return all(builder.attempt("vectorize", f"%{part}", why) for part in sink(builder, identifier, why))


def may_be_vectors(builder: PassBuilder, identifier: str) -> bool:
    """False if an access to an interface array prevents vectorisation of the loop's statements."""
    scope = builder.scope(identifier)
    assert scope is not None
    found = ((leaf, access) for leaf in scope.leaves for access in leaf.accesses if access.array.buffer.op is None)
    return all(lane_problem(access, leaf, scope, builder.game.machine) is None for leaf, access in found)


def vector_lanes(builder: PassBuilder, leaves: list[Leaf]) -> list[int]:
    """Vector lanes that suit the widest operand of all statements, most first; the last is 1."""
    first, *others = (set(builder.vector_lanes(leaf)) for leaf in leaves)
    return [*sorted(first.intersection(*others), reverse=True), 1]


def largest_power(number: float) -> int:
    """The largest power of two that is at most `number`, or 1."""
    return 1 << max(0, int(number).bit_length() - 1)


def power_of_two(number: float, least: int, most: int) -> int:
    """The least power of two that is at least `number`, within bounds that are powers of two."""
    found = least
    while found < min(ceil(number), most):
        found *= 2
    return found
