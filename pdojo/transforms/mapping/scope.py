"""What all mappings share: a sequential scope gets an attribute, its storage keeps every value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.races import find_race
from pdojo.dialect.attributes import Mapping, MappingAttr
from pdojo.dialect.nest import Scope
from pdojo.dialect.verify import describe_scope
from pdojo.transforms.base import Reason, Transformation
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
        """Sequential, legal for the mapping, and storage that keeps its values."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped already; unmap it first")
        return self.check_mapping(program, site) or storage_reason(program, site, self.mapping)

    @abstractmethod
    def check_mapping(self, program: Program, site: Scope) -> Reason | None:
        """What the mapping itself needs."""

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Set the attribute; nothing else changes, so it can be taken back."""
        site.op.properties["mapping"] = MappingAttr(self.mapping)
        rewriter.notify_op_modified(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        """Back to sequential."""
        return Move("unmap", f"%{site.id}")


def storage_reason(program: Program, site: Scope, mapping: Mapping) -> Reason | None:
    """Buffers with reused dimensions that the scope indexes get other cells: do values still survive?"""
    for buffer in dict.fromkeys(a.array.buffer for leaf in site.leaves for a in leaf.accesses):
        if any(buffer.reuse) and _reused_by(site, buffer.names):
            violation = program.storage_violation(buffer.names[0], buffer.reuse, {site: mapping})
            if violation is not None:
                return Reason(violation.reason, violation.detail)
            race = find_race(program, program.touches_if({site: mapping}, only={buffer}), {buffer}, site.chain[:-1])
            if race is not None:
                return Reason(f"iterations of {describe_scope(race.scope)} would share a slot", str(race.conflict))
    return None


def _reused_by(site: Scope, names: tuple[str, ...]) -> bool:
    """Whether the scope's variable indexes a reused dimension of these arrays."""
    return any(
        reused and expression.uses(site.depth)
        for leaf in site.leaves
        for access in leaf.accesses
        if access.array.name in names
        for expression, reused in zip(access.index, access.array.buffer.reuse, strict=True)
    )
