"""The canonical form of a kernel, from which the game starts: moves keep it, and undoing one restores it to the letter.

Index expressions in normal form over the variables they use, outermost first; guards on the scope of their deepest
variable, sorted, none that always holds; a guard that only cuts off the last iterations is a smaller extent; every
node has an identifier.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.nest import assign_ids, nest_of
from pdojo.dialect.ops import KernelOp, ScopeOp
from pdojo.dialect.rewriting import place_guards, reindex


def canonicalize(kernel: KernelOp) -> None:
    """Bring a kernel into canonical form, in place."""
    assign_ids(kernel)
    rewriter = PatternRewriter(next(iter(kernel.body.block.ops)))
    _shorten(kernel)
    nest = nest_of(kernel)
    guards: dict[ScopeOp, list[Expr]] = {}
    for scope in nest.scopes:
        for guard in scope.guard:
            owner = max(guard.variables(), default=scope.depth)
            guards.setdefault(scope.chain[owner].op, []).append(guard)
    reindex(nest.children, {}, (), rewriter)
    for scope in nest.scopes:
        chain = tuple(s.op for s in scope.chain)
        place_guards(guards.get(scope.op, ()), chain, [scope.depth], rewriter)


def _shorten(kernel: KernelOp) -> None:
    """`N where i <= k` has k + 1 iterations."""
    nest = nest_of(kernel)
    for scope in nest.scopes:
        cuts = [g.constant + 1 for g in scope.guard if g.terms == ((scope.depth, -1),)]
        if cuts and 1 <= min(cuts) < scope.extent:
            scope.op.properties["extent"] = IntegerAttr(min(cuts), IndexType())

