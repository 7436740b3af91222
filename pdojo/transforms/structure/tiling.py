"""Splitting the iterations of a scope into tiles, and collapsing a scope with its only child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    InsertPoint,
    Mapping,
    Move,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    chain_ops,
    const,
    describe_scope,
    fresh_id,
    is_whole,
    move_into,
    place_guards,
    reindex,
    run_time_extent,
    var,
)
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.structure.digits import (
    collapsed_extent,
    collapsed_guards,
    digits_of,
    only_scope,
    vector_lengths,
)
from pdojo.transforms.structure.peeling import PeelScope, UnpeelScope

GUARD, PEEL = "guard", "peel"
"""The treatment of a last, partial tile: a guard, or a scope of its own."""


def scope_named(program: Program, identifier: str) -> Scope:
    """The scope with an identifier."""
    node = program.nest.by_id[identifier]
    assert isinstance(node, Scope)
    return node


@dataclass(frozen=True)
class TileScope(Transformation[Scope]):
    """Split the iterations of a scope into tiles; a last, partial tile is guarded.

    `tile_scope@y:0{size=16}`:

    500 y[{0}] = x[{0}]  -->  32 16 where ({0}*16+{1} < 500) y[{0}*16+{1}] = x[{0}*16+{1}]

    With `tail=peel` the partial tile becomes a separate scope without guard, after the full tiles. A size beyond the
    extent needs a guard, and is at most the lanes of the machine's widest vector.

    Legal: the order of the iterations stays. With `tail=peel`, refused if `peel_scope` is.
    """

    name: ClassVar[str] = "tile_scope"
    exchanges: ClassVar = "order"
    size: int
    tail: str = "guard"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Powers of two and vector lengths of the machine; only divisors, if the extent has some among them."""
        sizes = {2, 4, 8, 16, 32, 64} | vector_lengths(program)
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL:
                fitting = [s for s in sorted(sizes) if s < scope.extent]
                dividing = [s for s in fitting if is_whole(scope, s)]
                yield from ((scope, cls(size)) for size in dividing or fitting)
                if not dividing:
                    yield from ((scope, cls(size, PEEL)) for size in fitting)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a sequential scope, and a size within its extent or within the machine's widest vector."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped; unmap it first")
        widest = 1 if self.tail == PEEL else max(vector_lengths(program), default=1)
        if not 1 <= self.size <= max(site.extent, widest):
            beyond = f", or {widest}, the lanes of the widest vector" if widest > site.extent else ""
            return Reason(f"'size' must be between 1 and {site.extent}, the extent{beyond}")
        if self.tail not in (GUARD, PEEL):
            return Reason(f"'tail' must be {GUARD} or {PEEL}, not '{self.tail}'")
        if self.tail != PEEL:
            return None
        if is_whole(site, self.size):
            return Reason(f"{self.size} divides the extent {site.extent}: there is no tail")
        return self._peel(site).check(program, site)

    def _peel(self, site: Scope) -> PeelScope:
        if run_time_extent(site) is not None:
            return PeelScope(multiple=self.size)
        return PeelScope(site.extent - site.extent % self.size)

    @staticmethod
    def _ids(program: Program, site: Scope) -> tuple[str, str]:
        taken = program.nest.by_id
        return fresh_id(taken, f"{site.id}.o"), fresh_id(taken, f"{site.id}.i")

    def argues(self, program: Program, site: Scope) -> bool:
        """True without a peeled tail, and with one if `peel_scope` argues."""
        return self.tail != PEEL or self._peel(site).argues(program, site)

    def grows(self, program: Program, site: Scope) -> bool:
        """False without a peeled tail; else as for `peel_scope`."""
        return self.tail == PEEL and self._peel(site).grows(program, site)

    promises: ClassVar = Promises(conditions=argues, grows=grows, adds=0, is_local=True)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Replace i by outer * size + inner."""
        if self.tail == PEEL:
            self._peel(site).rewrite(program, site, rewriter)
            peeled = program.successor(program.kernel)
            TileScope(self.size).rewrite(peeled, scope_named(peeled, site.id), rewriter)
            return
        outer_id, inner_id = self._ids(program, site)
        outer = ScopeOp(-(-site.extent // self.size), id=outer_id)
        inner = ScopeOp(self.size, id=inner_id)
        rewriter.insert(outer, InsertPoint.before(site.op))
        rewriter.insert(inner, InsertPoint.at_start(outer.body.block))
        move_into([c.op for c in site.children], inner, rewriter)
        chain = (*chain_ops(site), outer, inner)
        depth = site.depth
        value = var(depth) * self.size + var(depth + 1)
        reindex(site.children, {depth: value}, chain, rewriter)
        extents = [op.count for op in chain]
        guards = [g.substitute({depth: value}, extents) for g in site.guard]
        if site.extent % self.size and run_time_extent(site) is None:
            guards.append(const(site.extent - 1) - value)
        place_guards(guards, chain, (depth, depth + 1), rewriter)
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        return CollapseScopes(self.tail).as_move(f"%{self._ids(program, site)[0]}")


def common_id(outer: str, inner: str) -> str:
    """The identifier of the scope whose tiling gave these two; '' if there is none."""
    if outer.endswith(".o") and inner == f"{outer[:-2]}.i":
        return outer[:-2]
    return ""


@dataclass(frozen=True)
class CollapseScopes(Transformation[Scope]):
    """Merge a scope with its only child.

    `collapse_scopes@y:0`:

    32 16 y[{0}*16+{1}] = x[{0}*16+{1}]  -->  512 y[{0}] = x[{0}]

    With `tail=peel` the next scope is merged too; this is the inverse of `tile_scope{tail=peel}`.

    Legal: the order of the iterations stays. A guard that cuts off the last iterations shortens the extent. With
    `tail=peel`, refused if `unpeel_scope` is.
    """

    name: ClassVar[str] = "collapse_scopes"
    tail: str = "guard"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes whose only child is a scope."""
        for scope in program.nest.scopes:
            inner, tail = only_scope(scope), program.nest.next_sibling(scope)
            if inner is not None:
                yield scope, cls()
                if isinstance(tail, Scope) and tail.extent < inner.extent:
                    yield scope, cls(PEEL)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires two perfectly nested, sequential scopes."""
        inner = only_scope(site)
        if inner is None:
            return Reason("the scope does not wrap exactly one scope")
        if site.mapping is not Mapping.SEQUENTIAL or inner.mapping is not Mapping.SEQUENTIAL:
            return Reason("only sequential scopes collapse; unmap them first")
        if self.tail not in (GUARD, PEEL):
            return Reason(f"'tail' must be {GUARD} or {PEEL}, not '{self.tail}'")
        return self._check_tail(program, site, inner) if self.tail == PEEL else None

    def _check_tail(self, program: Program, site: Scope, inner: Scope) -> Reason | None:
        tail = program.nest.next_sibling(site)
        whole = collapsed_extent(site, inner, max(vector_lengths(program), default=1)) == site.extent * inner.extent
        if not isinstance(tail, Scope) or tail.extent >= inner.extent or not whole:
            return Reason(f"no tail of less than {inner.extent} iterations follows full tiles")
        collapsed, scope = self._collapsed(program, site, inner)
        return UnpeelScope().check(collapsed, scope)

    def _collapsed(self, program: Program, site: Scope, inner: Scope) -> tuple[Program, Scope]:
        """The program with full tiles collapsed, and their scope."""
        collapsed = rewritten(program, CollapseScopes(), site)
        return collapsed, scope_named(collapsed, self._identifier(program, site, inner))

    def argues(self, program: Program, site: Scope) -> bool:
        """False for a tail that is put back: `unpeel_scope` proves nothing about storage."""
        return self.tail != PEEL

    def takes_next(self, program: Program, site: Scope) -> bool:
        """True for a tail, which is the next scope."""
        return self.tail == PEEL

    promises: ClassVar = Promises(conditions=argues, grows=False, is_local=True, takes_next=takes_next)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Replace outer by i floordiv size, inner by i mod size."""
        inner = only_scope(site)
        assert inner is not None
        if self.tail == PEEL:
            CollapseScopes().rewrite(program, site, rewriter)
            collapsed = program.successor(program.kernel)
            scope = scope_named(collapsed, self._identifier(program, site, inner))
            UnpeelScope().rewrite(collapsed, scope, rewriter)
            return
        depth, outside = site.depth, tuple(s.extent for s in site.chain[:-1])
        total = collapsed_extent(site, inner, max(vector_lengths(program), default=1))
        guards = collapsed_guards(site, inner, (*outside, total))
        scope = ScopeOp(total, id=self._identifier(program, site, inner))
        rewriter.insert(scope, InsertPoint.before(site.op))
        move_into([c.op for c in inner.children], scope, rewriter)
        chain = (*chain_ops(site), scope)
        reindex(inner.children, digits_of(depth, inner.extent, (*outside, total)), chain, rewriter)
        place_guards(guards, chain, [depth], rewriter)
        rewriter.erase(site.op)

    def _identifier(self, program: Program, site: Scope, inner: Scope) -> str:
        taken, before = program.nest.by_id, common_id(site.id, inner.id)
        # Since the tiling, another node may have taken the identifier.
        return (before if before not in taken else "") or fresh_id(taken, f"{site.id}*{inner.id}")

    def inverse(self, program: Program, site: Scope) -> Move:
        inner = only_scope(site)
        assert inner is not None
        return TileScope(inner.extent, self.tail).as_move(f"%{self._identifier(program, site, inner)}")
