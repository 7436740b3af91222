"""Threads for the loops that balance best, if they save more time than starting them takes."""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.cpu.cost_model import alone, start_cycles

EVEN = 0.95
"""Balance above which the search for a better loop ends."""
HALF = 0.5
"""Balance from which a loop is kept apart from sums that threads cannot share."""
VECTOR = 2.0
"""Cycles of a vector of a simple statement, which loads and stores."""


def small(machine: Machine) -> float:
    """Statement instances below which starting threads costs more than it saves, if vectors compute them."""
    lanes = max(machine.vector_lanes("f32"), default=1)
    return start_cycles(machine) / saved(machine) * lanes / VECTOR


def saved(machine: Machine) -> float:
    """The greatest fraction of a time that threads save."""
    return 1 - 1 / max(2, machine.threads)


def _is_worth_starting(builder: PassBuilder, scope: Scope) -> bool:
    """True if threads save more time in one run of a scope than starting them costs, by the model of costs."""
    machine = builder.game.machine
    return _alone(builder, scope) * saved(machine) >= start_cycles(machine)


def _alone(builder: PassBuilder, scope: Scope) -> float:
    """`alone` in the present program, memoised, because questions about threads repeat."""
    program = builder.game.program
    return program.memoised(("cycles alone", scope), lambda: alone(scope, program.nest, program.machine))


def share_work(builder: PassBuilder) -> None:
    """Parallelise the outermost balanced loop of every nest."""
    threads = builder.game.machine.threads
    if threads < 2:
        return
    for identifier in [node.id for node in builder.nest.children]:
        scope = builder.find_scope(identifier)
        if scope is not None and _is_worth_starting(builder, scope):
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
    return len(free) == 1 and balance(free[0].extent, threads) >= HALF and work(free[0]) >= small(builder.game.machine)


def _sums(scope: Scope) -> bool:
    """True if a scope accumulates over its own iterations."""
    return any(
        leaf.accumulate is not None and not any(e.uses(scope.depth) for e in leaf.output.index) for leaf in scope.leaves
    )


def _share(builder: PassBuilder, nest: Scope, threads: int) -> None:
    """Try the balanced loops around the whole nest, then those of each part of the nest, then the other loops."""
    # A loop must have enough work for each start of the threads.
    worth = [s for s in perfect(nest) if _is_worth_starting(builder, s)]
    # By itself, an inner loop may seem to run in the cache.
    serial = _serial(builder, nest)
    cost = {s.id: _cycles(builder, s, threads, min(balance(s.extent, threads), EVEN), serial) for s in worth}
    loops = sorted(worth, key=lambda s: (cost[s.id], s.depth))
    children = [s for s in perfect(nest)[-1].children if isinstance(s, Scope)]
    inside = [s.id for s in children if _is_worth_starting(builder, s)]
    # A loop with fewer starts may be faster than one that balances better.
    best = min((cost[s.id] for s in loops if balance(s.extent, threads) >= EVEN), default=0.0)
    best = best or sum(
        _cycles(builder, s, threads, EVEN, _serial(builder, s)) if s.id in inside else _serial(builder, s)
        for s in children
    )
    even = [s for s in loops if balance(s.extent, threads) >= EVEN or cost[s.id] <= best]
    if any(builder.attempt("parallelize", loop, _why(loop, threads)) for loop in even):
        return
    before = len(builder.notes)
    for identifier in inside:
        child = builder.find_scope(identifier)
        if child is not None:
            _share(builder, child, threads)
    if len(builder.notes) == before:
        useful = [s for s in loops if balance(s.extent, threads) > 1 / threads and s not in even]
        any(builder.attempt("parallelize", loop, _why(loop, threads)) for loop in useful)


def _cycles(builder: PassBuilder, scope: Scope, threads: int, balanced: float, serial: float) -> float:
    """Cycles of all runs of a scope, `serial` on one thread, shared with this balance, with all starts of threads."""
    runs = prod(loop.extent for loop in scope.chain[: scope.depth])
    return serial / (threads * balanced) + runs * start_cycles(builder.game.machine)


def _serial(builder: PassBuilder, scope: Scope) -> float:
    """Cycles of all runs of a scope on one thread."""
    return prod(loop.extent for loop in scope.chain[: scope.depth]) * _alone(builder, scope)


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
