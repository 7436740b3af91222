"""The common part of all mappings: a sequential scope gets an attribute, and its storage keeps every value."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Machine,
    Mapping,
    MappingAttr,
    Move,
    Node,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    Transformation,
    conditions_of,
    describe_scope,
    misplaced_mapping,
)


@dataclass(frozen=True)
class MapScope(Transformation[Scope]):
    """Base of the moves that give a sequential scope a mapping."""

    mapping: ClassVar[Mapping]

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes, on machines that have the mapping."""
        for scope in program.nest.scopes if not cls.missing(program.machine) else ():
            if scope.mapping is Mapping.SEQUENTIAL:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a sequential scope that may have the mapping; storage is checked on the program after the move."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped already; unmap it first")
        if missing := self.missing(program.machine):
            return Reason(f"{program.machine.name} has no {missing}")
        reason = self.check_mapping(program, site)
        if reason is not None:
            return reason
        mapped = self.mapped(site)
        if (misplaced := misplaced_mapping(mapped)) is not None:
            return misplaced
        return next((p for p in self.limits(program, mapped) if p.key not in conditions_of(program).problems), None)

    @classmethod
    def missing(cls, machine: Machine) -> str:  # for subclasses
        """The parts that the mapping needs and the machine lacks, in words; empty if it has them."""
        return ""

    def check_mapping(self, program: Program, site: Scope) -> Reason | None:  # for subclasses
        """The reason why the mapping itself is not legal; None if it is."""
        return None

    def limits(self, program: Program, mapped: Scope) -> Iterable[Reason]:  # for subclasses
        """Problems that the program after the move certainly has; finding them is cheaper than making the move.

        `mapped` is the site with the mapping; it is not part of the program.
        """
        return ()

    def mapped(self, site: Scope) -> Scope:
        """The site with the mapping."""
        return replace(site, mapping=self.mapping)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Set the attribute; nothing else changes, so `unmap` restores the scope."""
        site.op.properties["mapping"] = MappingAttr(self.mapping)
        rewriter.notify_op_modified(site.op)

    def touched(self, program: Program, site: Scope) -> Container[Node]:
        """The scope; all nodes inside get a new view with it."""
        return site.chain

    def inverse(self, program: Program, site: Scope) -> Move:
        return Move("unmap", f"%{site.id}")
