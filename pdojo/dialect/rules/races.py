"""Races: two iterations of a concurrent scope that touch one cell, at least one of them writing.

Accumulations of the threads of a block or a warp into one cell are no race: the mapping declares a reduction tree. Nor
are accumulations of a grid's blocks, which are atomic (`analysis.atomics` checks whether the machine has the
operation). Every other access to that cell in another iteration is a race, so that no access sees the sum unfinished.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.collision import BEFORE, EQUAL, Domain, Query, Relation
from pdojo.dialect.flow.program import Conflict, Program
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Scope
from pdojo.dialect.view.storage import accesses_of, cell_of, copy_depths


@dataclass(frozen=True, slots=True)
class Race:
    """A concurrent scope, and a conflict between two of its iterations."""

    scope: Scope
    conflict: Conflict


def find_race(
    program: Program,
    uses: MappingABC[Leaf, tuple[Use, ...]] | None = None,
    only: Container[Buffer] | None = None,
    scopes: Sequence[Scope] | None = None,
) -> Race | None:
    """The first race of a program; None if there is none.

    `uses` replace the accesses of the program; `only` restricts the buffers and `scopes` the scopes (None: all).
    """
    known = program.uses if uses is None else uses
    for scope in program.nest.scopes if scopes is None else scopes:
        if scope.mapping.is_threaded:
            relation = _across(scope)
            racing = not scope.mapping.combines
            conflict = program.conflict(scope.leaves, scope.leaves, relation, racing=racing, uses=known, only=only)
        elif scope.mapping is Mapping.VECTOR:
            conflict = _lanes_conflict(program, scope, known, only)
        else:
            continue
        if conflict is not None:
            return Race(scope, conflict)
    return None


def concurrent_around(program: Program, buffer: Buffer) -> list[Scope]:
    """The concurrent scopes around accesses to a buffer, in textual order: only their iterations can race on it."""
    users = {leaf for leaf, _ in accesses_of(program.nest, buffer)}
    return [s for s in program.nest.scopes if s.mapping.is_concurrent and not users.isdisjoint(s.leaves)]


def _across(scope: Scope) -> Relation:
    return (*(EQUAL,) * scope.depth, BEFORE)


def _lanes_conflict(
    program: Program, scope: Scope, uses: MappingABC[Leaf, tuple[Use, ...]], only: Container[Buffer] | None
) -> Conflict | None:
    """A lane that reads a cell that an earlier lane writes, or two lanes that overwrite one cell.

    All lanes read before any lane writes, so a value is lost only if an earlier lane writes it and a later lane reads
    it.
    """
    leaves: Sequence[Leaf] = scope.leaves
    writes = {leaf: tuple(t for t in uses[leaf] if t.writes) for leaf in leaves}
    reads = {leaf: tuple(t for t in uses[leaf] if not t.writes) for leaf in leaves}
    relation = _across(scope)
    flow = program.conflict(leaves, leaves, relation, uses=writes, seconds=reads, only=only)
    return flow or program.conflict(leaves, leaves, relation, uses=writes, only=only)


def racing_scope(program: Program, leaf: Leaf, index: tuple[Expr, ...], reuse: Sequence[int]) -> Scope | None:
    """The threaded scope around a statement whose iterations would share memory that each of them writes.

    The memory is a buffer with reuse flags `reuse` that only this statement accesses, at `index`.
    """
    access = Access(leaf.output.array, index, leaf.output.hints)
    cell = cell_of(access, leaf.chain, reuse, copy_depths([(access, leaf.chain)], reuse))
    domain = Domain(leaf.extents, leaf.guards)
    for scope in leaf.chain:
        query = Query(domain, domain, tuple((e, e) for e in cell), _across(scope))
        if scope.mapping.is_threaded and program.collisions.find(query) is not None:
            return scope
    return None
