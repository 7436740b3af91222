"""A move: the iterations of a scope in the opposite order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    BEFORE,
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
    reindex,
    var,
)
from pdojo.transforms.common.ordering import reassociates, same_iteration


@dataclass(frozen=True)
class ReverseScope(Transformation[Scope]):
    """Run the iterations of a scope in the opposite order.

    Legal iff no two iterations conflict: not exists i < j: body(i) conflicts with body(j).
    """

    name: ClassVar[str] = "reverse_scope"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Sequential scopes of at least two iterations, without guards inside."""
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL and scope.extent > 1:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """No guards, to keep the example short, and no dependence between iterations."""
        if any(leaf.guards for leaf in site.leaves):
            return Reason("there are guards inside")
        conflict = program.conflict(site.leaves, site.leaves, (*same_iteration(site), BEFORE))
        return None if conflict is None else Reason("iterations depend on each other", str(conflict))

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Sums over the scope are added up in another order."""
        return reassociates(program.reorders(site.leaves, site.leaves, (*same_iteration(site), BEFORE)))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """`i` becomes `extent - 1 - i`."""
        mirrored = const(site.extent - 1) - var(site.depth)
        reindex(site.children, {site.depth: mirrored}, (*chain_ops(site), site.op), rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        """It is its own inverse."""
        return self.as_move(f"%{site.id}")
