"""The common part of all mappings: a sequential scope gets an attribute, and its storage keeps every value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Mapping, MappingAttr
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_scope
from pdojo.dialect.view.nest import Scope
from pdojo.transforms.base import Transformation
from pdojo.transforms.move import Move


@dataclass(frozen=True)
class MapScope(Transformation[Scope]):
    """Base of the moves that give a sequential scope a mapping."""

    site: ClassVar = Scope
    mapping: ClassVar[Mapping]

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes."""
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """A sequential scope that may have the mapping. Whether storage keeps values is asked of the program after."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped already; unmap it first")
        return self.check_mapping(program, site)

    @abstractmethod
    def check_mapping(self, program: Program, site: Scope) -> Reason | None:
        """Why the mapping itself is not legal; None if it is."""

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Set the attribute; nothing else changes, so `unmap` restores the scope."""
        site.op.properties["mapping"] = MappingAttr(self.mapping)
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        """Make the scope sequential."""
        return Move("unmap", f"%{site.id}")
