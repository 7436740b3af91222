"""A move: the iterations of a scope begin somewhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    BEFORE,
    EQUAL,
    Mapping,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    Transformation,
    chain_ops,
    const,
    modulo,
    reindex,
    var,
)


@dataclass(frozen=True)
class RotateScope(Transformation[Scope]):
    """Begin a scope with iteration `by`, and run the iterations before it last.

    Legal iff no two iterations conflict: not exists i < j: body(i) conflicts with body(j).
    """

    name: ClassVar[str] = "rotate_scope"

    by: int

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes of at least two iterations, by half of them."""
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL and scope.extent > 1:
                yield scope, cls(scope.extent // 2)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """No guards, to keep the example short, and no dependence between iterations."""
        if not 0 < self.by < site.extent:
            return Reason(f"'by' is from 1 to {site.extent - 1}, not {self.by}")
        if any(leaf.guards for leaf in site.leaves):
            return Reason("there are guards inside")
        conflict = program.conflict(site.leaves, site.leaves, self._reordered(site))
        return None if conflict is None else Reason("iterations depend on each other", str(conflict))

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Sums over the scope are added up in another order."""
        reorders = program.reorders(site.leaves, site.leaves, self._reordered(site))
        return Numerics.REASSOCIATES if reorders else Numerics.EXACT

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """`i` becomes `(i + by) mod extent`."""
        chain = (*chain_ops(site), site.op)
        extents = tuple(op.count for op in chain)
        rotated = modulo(var(site.depth) + const(self.by), site.extent, extents)
        reindex(site.children, {site.depth: rotated}, chain, rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        """A rotation by the rest."""
        return RotateScope(site.extent - self.by).as_move(f"%{site.id}")

    def _reordered(self, site: Scope) -> tuple[object, ...]:
        """Two instances in the same iteration of all scopes around, and in different iterations of this one."""
        return ((EQUAL,) * site.depth) + (BEFORE,)
