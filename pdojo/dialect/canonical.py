"""The canonical form of a kernel. A game starts from it, and every move keeps it, so that undo restores a text exactly.

Index expressions are in normal form over the variables that they use, outermost first. A guard sits on the scope of its
deepest variable, or on the closest scope to it where it restricts no other node. Guards are sorted, and none always
holds. A guard that only cuts off the last iterations becomes a smaller extent. Every node has an identifier.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.ops import KernelOp, ScopeOp
from pdojo.dialect.rewriting import place_guards, reindex
from pdojo.dialect.view.build import assign_ids, nest_of
from pdojo.dialect.view.nest import Scope
from pdojo.dialect.view.nodes import bound_of


def canonicalize(kernel: KernelOp) -> None:
    """Bring a kernel into canonical form, in place."""
    assign_ids(kernel)
    rewriter = PatternRewriter(next(iter(kernel.body.block.ops)))
    nest = nest_of(kernel)
    guards: dict[ScopeOp, list[Expr]] = {}
    for scope in nest.scopes:
        for guard in scope.guard:
            guards.setdefault(owner_of(scope, guard).op, []).append(guard)
    reindex(nest.children, {}, (), rewriter)
    for scope in nest.scopes:
        chain = tuple(s.op for s in scope.chain)
        place_guards(guards.get(scope.op, ()), chain, [scope.depth], rewriter)
    if _shorten(kernel):
        # Smaller extents make more guards redundant and index expressions simpler.
        canonicalize(kernel)


def owner_of(scope: Scope, guard: Expr) -> Scope:
    """The scope of the guard's deepest variable, or the scope closest to it that holds nothing but `scope`."""
    deepest = max(guard.variables(), default=scope.depth)
    while scope.depth > deepest and scope.parent is not None and len(scope.parent.children) == 1:
        scope = scope.parent
    return scope


def _shorten(kernel: KernelOp) -> bool:
    """Turn `N where i <= k` into k + 1 iterations; returns True if a scope changed."""
    found = False
    for scope in nest_of(kernel).scopes:
        extent = shorter_extent(scope)
        if extent is not None:
            scope.op.properties["extent"] = IntegerAttr(extent, IndexType())
            found = True
    return found


def shorter_extent(scope: Scope) -> int | None:
    """The greatest number of iterations of a scope if its guard only cuts off the last ones; else None."""
    bounds = [bound_of(guard, scope.depth) for guard in scope.guard]
    cuts = [bound.bounds(())[1] for bound in bounds if bound is not None]
    return min(cuts) if cuts and 1 <= min(cuts) < scope.extent else None
