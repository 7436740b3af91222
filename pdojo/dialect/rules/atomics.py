"""Accumulations of several blocks or threads into one cell of memory, which are atomic operations.

Blocks run in any order and never wait for each other. So their sums into one cell are right iff no update is lost (the
hardware adds atomically), the order does not matter (accumulations commute), and no other access in the grid sees or
changes the cell. The last condition is part of the race check, for `g` as for `b` and `w`. Threads of a block that
accumulate into a cell that their variables do not index are a tree; threads that index the cells, and meet in one,
as in `y[{1}//2] += x[{1}]`, need atomic operations as blocks do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.attributes import Memory, Numerics
from pdojo.dialect.flow.collision import AFTER, ANY, BEFORE, EQUAL, Collisions, Query, Witness
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.functions import ACCUMULATIONS, has_atomic
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Leaf, Scope


def atomic_operation(leaf: Leaf) -> str:
    """The machine's name of a statement's accumulation: `add.f32`."""
    assert leaf.accumulate is not None
    spelling = ACCUMULATIONS[leaf.accumulate].spelling
    return f"{_NAMES.get(spelling, spelling)}.{leaf.output.array.dtype}"


_NAMES = {"+": "add", "*": "mul"}
"""Names of atomic operations that differ from the accumulation's spelling."""


def atomic_statements(uses: Iterable[Use], collisions: Collisions) -> dict[Leaf, Witness]:
    """The accumulations among all uses of memory into cells that other blocks, or other threads, accumulate into, too.

    Each comes with two iterations that meet: exists i != j in a grid or in threads without a tree: cell(i) = cell(j).
    """
    groups: dict[object, list[Use]] = {}
    for use in uses:
        if use.commutes_with is not None and use.buffer.memory in (Memory.HEAP, Memory.SHARED):
            groups.setdefault((use.memory, use.commutes_with), []).append(use)
    found: dict[Leaf, Witness] = {}
    for group in groups.values():
        for use in group:
            witness = next(_conflicts(use, group, collisions), None)
            if witness is not None:
                found[use.leaf] = witness
    return found


def _conflicts(use: Use, group: Sequence[Use], collisions: Collisions) -> Iterator[Witness]:
    """Iterations of blocks or threads that meet in a cell, of one statement or of two, unless a tree adds up both.

    Barriers keep the iterations of loops around threads apart, and statements in different threads.
    """
    for scope in (s for s in use.chain if s.mapping.is_threaded):
        around = [ANY if s.mapping.declares_tree and not _is_apart(use, s) else EQUAL for s in use.chain[: scope.depth]]
        for other in group:
            is_apart = _is_apart(use, scope) or _is_apart(other, scope)
            if is_apart and use.leaf.chain[scope.depth] in other.leaf.chain:
                equal = tuple(zip(use.cell, other.cell, strict=True))
                for order in (BEFORE, AFTER):
                    witness = collisions.find(Query(use.domain, other.domain, equal, (*around, order)))
                    if witness is not None:
                        yield witness


def _is_apart(use: Use, scope: Scope) -> bool:
    """Whether iterations of a scope update cells one by one: blocks do, and threads without a tree."""
    if scope.mapping is ScopeMapping.GRID:
        return use.buffer.memory is Memory.HEAP
    return scope.mapping.declares_tree and any(e.uses(scope.depth) for e in use.access.index)


def atomics_needed(program: Program, mappings: Mapping[Scope, ScopeMapping] | None = None) -> dict[Leaf, Witness]:
    """The statements of a program that need atomic operations, as if the scopes in `mappings` had those mappings."""
    uses = program.uses if mappings is None else program.uses_if(mappings)
    accumulations = [leaf for leaf in program.nest.leaves if leaf.accumulate is not None]
    return atomic_statements((use for leaf in accumulations for use in uses[leaf]), program.collisions)


def atomics_problem(program: Program, leaf: Leaf, witness: Witness) -> Reason | None:
    """The reason why a statement cannot be an atomic operation on the machine; None if it can."""
    machine, operation = program.machine, atomic_operation(leaf)
    if leaf.contracted:
        why = "no atomic operation multiplies and adds ('fma='); expand it first"
    elif operation not in machine.gpu.atomics:
        why = f"{machine.name} has no atomic operation {operation}"
    elif operation in machine.gpu.flushing_atomics and not program.permits(Numerics.FLUSHES):
        why = (
            f"the atomic operation {operation} of {machine.name} takes denormal numbers for zero, which the kernel "
            "does not permit (numerics flush)"
        )
    else:
        return None
    first, second = (", ".join(map(str, iteration)) for iteration in (witness.first, witness.second))
    return Reason(
        f"different iterations race on '{leaf.output.array.name}': {why}",
        f"accumulations into {describe_access(leaf.output)} at iterations ({first}) and ({second})",
    )


def atomics_problems(program: Program) -> Iterator[Reason]:
    """Atomic operations of a program that the machine lacks."""
    for leaf, witness in _needed(program).items():
        problem = atomics_problem(program, leaf, witness)
        if problem is not None:
            yield problem


def lost_updates(program: Program) -> Iterator[Reason]:
    """The accumulations of several blocks into one cell that no machine can do atomically."""
    for leaf, witness in _needed(program).items():
        if leaf.contracted or not has_atomic(atomic_operation(leaf)):
            problem = atomics_problem(program, leaf, witness)
            assert problem is not None
            yield problem


def _needed(program: Program) -> dict[Leaf, Witness]:
    if not any(scope.mapping is ScopeMapping.GRID for scope in program.nest.scopes):
        return {}
    return program.memoised("atomics", lambda: atomics_needed(program))
