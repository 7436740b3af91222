"""Loops as threads of a block: groups of elements that neighbouring threads access together."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from pdojo.dialect.rules.lanes import lane_problem
from pdojo.dialect.view.nest import Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import sink, tile
from pdojo.passes.cpu.threads import perfect


class ThreadLoops(NamedTuple):
    """The loops that replace a spread loop, keyed by identifier; None if there is no such loop."""

    threads: str
    turns: str | None
    """The loop over the elements of a thread, a vector at a time."""
    lanes: str | None


def collapse(builder: PassBuilder, identifier: str, why: str) -> None:
    """Collapse a scope and all loops perfectly nested in it into one loop."""
    while True:
        scope = builder.scope(identifier)
        if len(perfect(scope)) == 1:
            return
        known = builder.nest.by_id.keys()
        builder.make("collapse_scopes", scope, why)
        if builder.find_scope(identifier) is None:
            identifier = next(s.id for s in builder.nest.scopes if s.id not in known)


def spread(builder: PassBuilder, identifier: str, threads: int, lanes: int, why: str) -> ThreadLoops:
    """Split a loop into turns of `threads` threads with `lanes` neighbouring elements each."""
    turns = inner = None
    scope = builder.scope(identifier)
    lanes = max(1, min(lanes, largest_power(scope.extent / threads)))
    if scope.extent > threads * lanes:
        turns, identifier = tile(builder, scope, threads * lanes, why)
    if lanes > 1:
        identifier, inner = tile(builder, identifier, lanes, why)
    if turns is not None:
        builder.make("swap_scopes", f"%{turns}", why)
    return ThreadLoops(identifier, turns, inner)


def map_threads(builder: PassBuilder, identifier: str, warp: int, why: str) -> None:
    """Map a loop to the threads of a block, as warps if there are several."""
    scope = builder.scope(identifier)
    if scope.extent <= warp:
        builder.make("map_warp" if warp % scope.extent == 0 else "map_block", scope, why)
        return
    tiles = tile(builder, scope, warp, why)
    builder.make("map_block", f"%{tiles.outer}", why)
    builder.make("map_warp", f"%{tiles.inner}", why)


def vectors(builder: PassBuilder, identifier: str, why: str) -> None:
    """Vectorise each statement of a loop."""
    for part in sink(builder, identifier, why):
        builder.make("vectorize", f"%{part}", why)


def may_be_vectors(builder: PassBuilder, identifier: str) -> bool:
    """False if an access to an interface array prevents vectorisation of the loop's statements."""
    scope = builder.scope(identifier)
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
