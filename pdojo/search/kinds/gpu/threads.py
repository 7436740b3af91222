"""Loops as threads of a block: groups of elements that neighbouring threads access together."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from pdojo.dialect.analysis.lanes import lane_problem
from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.loops import sink, tile
from pdojo.search.kinds.common.player import Player
from pdojo.search.kinds.common.threads import perfect


class Spread(NamedTuple):
    """The loops that a loop became, by identifier; None if there is no such loop."""

    threads: str
    turns: str | None
    """The loop over the elements of a thread, a vector at a time."""
    lanes: str | None


def collapse(player: Player, identifier: str, why: str) -> bool:
    """Make one loop of a scope and all loops that are perfectly nested in it."""
    while True:
        scope = player.scope(identifier)
        assert scope is not None
        if len(perfect(scope)) == 1:
            return True
        known = player.nest.by_id.keys()
        if not player.attempt("collapse_scopes", scope, why):
            return False
        if player.scope(identifier) is None:
            identifier = next(s.id for s in player.nest.scopes if s.id not in known)


def spread(player: Player, identifier: str, threads: int, lanes: int, why: str) -> Spread | None:
    """Part a loop: `lanes` elements beside each other for each of `threads` threads, in turns; None if illegal."""
    turns = inner = None
    scope = player.scope(identifier)
    assert scope is not None
    lanes = max(1, min(lanes, largest_power(scope.extent / threads)))
    if scope.extent > threads * lanes:
        tiles = tile(player, scope, threads * lanes, why)
        if tiles is None:
            return None
        turns, identifier = tiles
    if lanes > 1:
        scope = player.scope(identifier)
        assert scope is not None
        tiles = tile(player, scope, lanes, why)
        if tiles is None:
            return None
        identifier, inner = tiles
    if turns is not None and not player.attempt("swap_scopes", f"%{turns}", why):
        return None
    return Spread(identifier, turns, inner)


def map_threads(player: Player, identifier: str, warp: int, why: str) -> bool:
    """Give a loop to the threads of a block, in warps if there are several."""
    scope = player.scope(identifier)
    assert scope is not None
    if scope.extent <= warp:
        return player.attempt("map_warp" if warp % scope.extent == 0 else "map_block", scope, why)
    tiles = tile(player, scope, warp, why)
    return (
        tiles is not None
        and player.attempt("map_block", f"%{tiles.outer}", why)
        and player.attempt("map_warp", f"%{tiles.inner}", why)
    )


def vectors(player: Player, identifier: str, why: str) -> bool:
    """Make each statement of a loop a statement on vectors."""
    return all(player.attempt("vectorize", f"%{part}", why) for part in sink(player, identifier, why))


def may_be_vectors(player: Player, identifier: str) -> bool:
    """False if an access to an interface array keeps the statements of a loop from being statements on vectors."""
    scope = player.scope(identifier)
    assert scope is not None
    found = ((leaf, access) for leaf in scope.leaves for access in leaf.accesses if access.array.buffer.op is None)
    return all(lane_problem(access, leaf, scope, player.game.machine) is None for leaf, access in found)


def vector_lanes(player: Player, leaves: list[Leaf]) -> list[int]:
    """Lanes of the vectors that suit the widest operand of all statements, most first; at last 1."""
    first, *others = (set(player.vector_lanes(leaf)) for leaf in leaves)
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
