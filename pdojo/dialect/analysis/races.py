"""Races: two iterations of a concurrent scope that touch one cell, at least one of them writing."""

from __future__ import annotations

from collections.abc import Container, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from pdojo.dialect.analysis.collision import BEFORE, EQUAL, Relation
from pdojo.dialect.analysis.program import Conflict, Program, Touch
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.nest import Buffer, Leaf, Scope


@dataclass(frozen=True, slots=True)
class Race:
    """A concurrent scope, and a conflict between two of its iterations."""

    scope: Scope
    conflict: Conflict


def find_race(
    program: Program,
    touches: MappingABC[Leaf, tuple[Touch, ...]] | None = None,
    only: Container[Buffer] | None = None,
) -> Race | None:
    """The first race of a program, None if there is none.

    `touches` are the accesses to look at where they are not those of the program; `only` names the buffers that matter.
    """
    known = program.touches if touches is None else touches
    for scope in program.nest.scopes:
        if scope.mapping.is_threaded:
            relation = _across(scope)
            conflict = program.conflict(scope.leaves, scope.leaves, relation, racing=True, touches=known, only=only)
        elif scope.mapping is Mapping.VECTOR:
            conflict = _lanes_conflict(program, scope, known, only)
        else:
            continue
        if conflict is not None:
            return Race(scope, conflict)
    return None


def _across(scope: Scope) -> Relation:
    return (*(EQUAL,) * scope.depth, BEFORE)


def _lanes_conflict(
    program: Program, scope: Scope, touches: MappingABC[Leaf, tuple[Touch, ...]], only: Container[Buffer] | None
) -> Conflict | None:
    """A lane that reads what an earlier lane writes, or two lanes that overwrite one cell.

    Lanes read before any of them writes, so only a write of an earlier lane that a later one reads is lost.
    """
    leaves: Sequence[Leaf] = scope.leaves
    writes = {leaf: tuple(t for t in touches[leaf] if t.writes) for leaf in leaves}
    reads = {leaf: tuple(t for t in touches[leaf] if not t.writes) for leaf in leaves}
    relation = _across(scope)
    flow = program.conflict(leaves, leaves, relation, touches=writes, seconds=reads, only=only)
    return flow or program.conflict(leaves, leaves, relation, touches=writes, only=only)
