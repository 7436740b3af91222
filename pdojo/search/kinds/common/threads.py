"""Threads for the loops that balance best."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Scope
from pdojo.search.kinds.common.builder import PassBuilder

EVEN = 0.95
"""Balance above which the search for a better loop ends."""
SMALL = 16384
"""Statement instances below which starting threads costs more than it saves."""


def share_work(builder: PassBuilder) -> None:
    """Parallelise the outermost balanced loop of every nest."""
    threads = builder.game.machine.threads
    if threads < 2:
        return
    for identifier in [node.id for node in builder.nest.children]:
        scope = builder.scope(identifier)
        if scope is not None and work(scope) >= SMALL:
            _share(builder, scope, threads)


def work(scope: Scope) -> int:
    """Statement instances of one run of a scope."""
    total = 0
    for leaf in scope.leaves:
        count = 1
        for loop in leaf.chain[scope.depth :]:
            count *= loop.extent
        total += count
    return total


def balance(extent: int, threads: int) -> float:
    """The fraction of the time that threads work if they divide `extent` iterations."""
    return extent / (-(-extent // threads) * threads)


def costs_threads(builder: PassBuilder, first: Scope, second: Scope) -> bool:
    """True if one loop sums over its iterations and the other one could be parallelised.

    False if a loop around them already balances.
    """
    threads = builder.game.machine.threads
    around = [scope.extent for scope in first.leaves[0].chain[: first.depth]]
    if threads < 2 or any(balance(extent, threads) >= EVEN for extent in around):
        return False
    free = [scope for scope in (first, second) if not _sums(scope)]
    return len(free) == 1 and balance(free[0].extent, threads) >= EVEN and work(free[0]) >= SMALL


def _sums(scope: Scope) -> bool:
    """True if a scope accumulates over its own iterations."""
    return any(
        leaf.accumulate is not None and not any(e.uses(scope.depth) for e in leaf.output.index) for leaf in scope.leaves
    )


def _share(builder: PassBuilder, nest: Scope, threads: int) -> None:
    """Try the balanced loops around the whole nest, then those of each part of the nest, then the other loops."""
    # A loop must have enough work for each start of the threads.
    worth = [s for s in perfect(nest) if work(s) >= SMALL]
    loops = sorted(worth, key=lambda s: (-min(balance(s.extent, threads), EVEN), s.depth))
    even = [s for s in loops if balance(s.extent, threads) >= EVEN]
    if any(builder.attempt("parallelize", loop, _why(loop, threads)) for loop in even):
        return
    inside = [s.id for s in perfect(nest)[-1].children if isinstance(s, Scope) and work(s) >= SMALL]
    before = len(builder.notes)
    for identifier in inside:
        child = builder.scope(identifier)
        if child is not None:
            _share(builder, child, threads)
    if len(builder.notes) == before:
        useful = [s for s in loops if balance(s.extent, threads) > 1 / threads and s not in even]
        any(builder.attempt("parallelize", loop, _why(loop, threads)) for loop in useful)


def _why(loop: Scope, threads: int) -> str:
    return f"{loop.extent} independent iterations for {threads} threads"


def perfect(scope: Scope) -> list[Scope]:
    """A scope and the sequential scopes nested in it, down to the first with several children or a statement."""
    found = [scope]
    while len(found[-1].children) == 1:
        child = found[-1].children[0]
        if not isinstance(child, Scope) or child.mapping is not Mapping.SEQUENTIAL:
            break
        found.append(child)
    return found
