"""Interchanging a scope with its only child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    AFTER,
    ANY,
    BEFORE,
    Conflict,
    InsertPoint,
    Mapping,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    Transformation,
    chain_ops,
    describe_scope,
    move_into,
    place_guards,
    reindex,
    var,
)
from pdojo.transforms.common.ordering import (
    Uses,
    carried,
    folded_buffers,
    private_buffers,
    reassociates,
    reordered,
    same_iteration,
)
from pdojo.transforms.structure.digits import only_scope

_IN_ORDER = (Mapping.SEQUENTIAL, Mapping.UNROLL)
"""Mappings of scopes that run their iterations in order."""


@dataclass(frozen=True)
class SwapScopes(Transformation[Scope]):
    """Interchange a scope with its only child.

    `swap_scopes@z:0`:

    N M z[{0},{1}] = x[{0},{1}]  -->  M N z[{1},{0}] = x[{1},{0}]

    Legal iff no dependence goes forward in the outer and backward in the inner scope:
    not exists (i, j), (k, l) with i < k, j > l that conflict. A concurrent inner scope must not conflict across its
    iterations for any iterations of the outer one; private copies of a concurrent outer scope must not carry a value
    from one iteration of the inner scope to another.
    """

    name: ClassVar[str] = "swap_scopes"
    exchanges: ClassVar = "order"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes whose only child is a scope."""
        for scope in program.nest.scopes:
            if only_scope(scope) is not None:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires perfect nesting, exchangeable mappings, and no dependence that would be reversed."""
        inner = only_scope(site)
        if inner is None:
            return Reason("the scope does not wrap exactly one scope")
        if inner.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if site.mapping is Mapping.PARALLEL and inner.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} cannot be inside {describe_scope(inner)}")
        return self._dependences(program, site, inner) or self._private(program, site, inner)

    def _dependences(self, program: Program, site: Scope, inner: Scope) -> Reason | None:
        outside, leaves, threaded = same_iteration(site), site.leaves, inner.mapping.is_threaded
        racing = threaded and not inner.mapping.combines

        def turned(uses: Uses) -> Conflict | None:
            found = program.conflict(leaves, leaves, (*outside, BEFORE, AFTER), uses=uses)
            if found is None and threaded:
                found = program.conflict(leaves, leaves, (*outside, ANY, BEFORE), racing=racing, uses=uses)
            return found

        found = reordered(program, self, site, folded_buffers(leaves), turned, inner)
        if isinstance(found, Conflict):
            return carried("a dependence would be turned round", found)
        return found

    @staticmethod
    def _private(program: Program, site: Scope, inner: Scope) -> Reason | None:
        for buffer in private_buffers(program, site):
            violation = program.storage_violation(buffer.names[0], buffer.reuse, within=inner.depth)
            if violation is not None:
                return Reason("a private copy keeps its value over iterations of the inner scope", violation.witness)
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if two reduction scopes change the order of a sum; sums of outer threads have no order."""
        inner = only_scope(site)
        assert inner is not None
        orders = (AFTER, BEFORE) if inner.mapping.is_threaded else (AFTER,)
        relations = ((*same_iteration(site), BEFORE, order) for order in orders)
        return reassociates(any(program.reorders(site.leaves, site.leaves, each) for each in relations))

    def argues(self, program: Program, site: Scope) -> bool:
        """True if both scopes run in order: accesses to each cell keep their order, or `check` has verified storage."""
        inner = only_scope(site)
        return site.mapping in _IN_ORDER and inner is not None and inner.mapping in _IN_ORDER

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Exchange the scopes; their variables stay."""
        inner = only_scope(site)
        assert inner is not None
        inner.op.detach()
        rewriter.insert(inner.op, InsertPoint.before(site.op))
        move_into([c.op for c in inner.children], site.op, rewriter)
        move_into([site.op], inner.op, rewriter)
        chain = (*chain_ops(site), inner.op, site.op)
        depth = site.depth
        exchange = {depth: var(depth + 1), depth + 1: var(depth)}
        reindex(inner.children, exchange, chain, rewriter)
        extents = [op.count for op in chain]
        guards = [g.substitute(exchange, extents) for g in (*site.guard, *inner.guard)]
        place_guards(guards, chain, (depth, depth + 1), rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        inner = only_scope(site)
        assert inner is not None
        return SwapScopes().as_move(f"%{inner.id}")
