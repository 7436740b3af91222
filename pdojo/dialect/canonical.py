"""The canonical form of a kernel, from which the game starts: moves keep it, and undoing one restores it to the letter.

Index expressions in normal form over the variables they use, outermost first; guards on the scope of their deepest
variable where that scope holds nothing else, sorted, none that always holds; a guard that only cuts off the last
iterations is a smaller extent; every node has an identifier.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.nest import Scope, assign_ids, nest_of
from pdojo.dialect.ops import KernelOp, ScopeOp
from pdojo.dialect.rewriting import place_guards, reindex


def canonicalize(kernel: KernelOp) -> None:
    """Bring a kernel into canonical form, in place."""
    assign_ids(kernel)
    rewriter = PatternRewriter(next(iter(kernel.body.block.ops)))
    nest = nest_of(kernel)
    guards: dict[ScopeOp, list[Expr]] = {}
    for scope in nest.scopes:
        for guard in scope.guard:
            guards.setdefault(_owner(scope, guard).op, []).append(guard)
    reindex(nest.children, {}, (), rewriter)
    for scope in nest.scopes:
        chain = tuple(s.op for s in scope.chain)
        place_guards(guards.get(scope.op, ()), chain, [scope.depth], rewriter)
    if _shorten(kernel):
        # Smaller extents make more guards hold always, and index expressions simpler.
        canonicalize(kernel)


def _owner(scope: Scope, guard: Expr) -> Scope:
    """The scope of the guard's deepest variable, or the closest to it that holds nothing that the guard spares."""
    deepest = max(guard.variables(), default=scope.depth)
    while scope.depth > deepest and scope.parent is not None and len(scope.parent.children) == 1:
        scope = scope.parent
    return scope


def _shorten(kernel: KernelOp) -> bool:
    """`N where i <= k` has k + 1 iterations; returns whether there was such a scope."""
    found = False
    for scope in nest_of(kernel).scopes:
        extent = shorter_extent(scope)
        if extent is not None:
            scope.op.properties["extent"] = IntegerAttr(extent, IndexType())
            found = True
    return found


def shorter_extent(scope: Scope) -> int | None:
    """How many iterations a scope has of which a guard only cuts off the last; None for others."""
    cuts = [g.constant + 1 for g in scope.guard if g.terms == ((scope.depth, -1),)]
    return min(cuts) if cuts and 1 <= min(cuts) < scope.extent else None
