"""Structure: fusing, splitting, tiling, collapsing and interchanging scopes, exchanging siblings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.analysis.collision import AFTER, ANY, BEFORE, EQUAL, Relation
from pdojo.dialect.analysis.program import Conflict, Program
from pdojo.dialect.attributes import Mapping, Memory, Numerics
from pdojo.dialect.nest import Buffer, Index, Leaf, Node, Scope, leaves_of
from pdojo.dialect.ops import ScopeOp
from pdojo.dialect.rewriting import chain_ops, fresh_id, move_into, place_guards, reindex
from pdojo.dialect.storage import private_scope
from pdojo.dialect.verify import describe_scope
from pdojo.transforms.base import Reason, Transformation
from pdojo.transforms.identifiers import identifiers_reason
from pdojo.transforms.move import Move


def same_iteration(node: Node) -> Relation:
    """Both instances in the same iteration of all scopes around the node."""
    return (EQUAL,) * (node.depth if isinstance(node, Scope) else len(node.chain))


def private_buffers(program: Program, scope: Scope) -> list[Buffer]:
    """The buffers of which each iteration of a threaded scope has its own copy."""
    if not scope.mapping.is_threaded:
        return []
    return [b for b in program.nest.buffers if any(b.reuse) and private_scope(program.nest, b) is scope]


def reassociates(happens: bool) -> Numerics:
    """The numerics class of a move that may change the order of accumulations."""
    return Numerics.REASSOCIATES if happens else Numerics.EXACT


def _carried(text: str, conflict: Conflict) -> Reason:
    return Reason(text, str(conflict))


@dataclass(frozen=True)
class JoinScopes(Transformation[Scope]):
    """Fuse a scope with the one that immediately follows it.

    `join_scopes@t:0`:

    N t[{0}] = x[{0}]            N
    N y[{0}] = exp(t[{0}])  -->  | t[{0}] = x[{0}]
                                 | y[{0}] = exp(t[{0}])

    Legal iff no instance of the second scope depends on a later iteration of the first:
    not exists i > j: first(i) conflicts with second(j); for concurrent scopes i != j, accumulations included.
    """

    name: ClassVar[str] = "join_scopes"
    site: ClassVar = Scope

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes followed by a scope."""
        for scope in program.nest.scopes:
            if isinstance(program.nest.next_sibling(scope), Scope):
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Same extent, mapping and guard, and no backward dependence."""
        second = program.nest.next_sibling(site)
        if not isinstance(second, Scope):
            return Reason("no scope follows immediately")
        if site.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if (site.extent, site.mapping) != (second.extent, second.mapping):
            return Reason(f"{describe_scope(site)} and {describe_scope(second)} differ in extent or mapping")
        if site.guard != second.guard:
            return Reason("the two scopes have different guards")
        # Parallel scopes wait for each other, their iterations do not: afterwards accumulations would race.
        threaded = site.mapping.is_threaded
        for order in (AFTER, BEFORE) if threaded else (AFTER,):
            relation = (*same_iteration(site), order)
            conflict = program.conflict(site.leaves, second.leaves, relation, racing=threaded)
            if conflict is not None:
                return _carried("the second scope needs iterations of the first that would come later", conflict)
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Two accumulations into one element may change order."""
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        return reassociates(program.reorders(site.leaves, second.leaves, (*same_iteration(site), AFTER)))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the children of the second scope behind those of the first."""
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        rewriter.replace_all_uses_with(second.op.iv, site.op.iv)
        move_into([c.op for c in second.children], site.op, rewriter)
        rewriter.erase(second.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        """Split behind the children that the scope has now."""
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        return SplitScopes(after=len(site.children), id=second.id).as_move(f"%{site.id}")


@dataclass(frozen=True)
class SplitScopes(Transformation[Scope]):
    """Split a scope into two, the first with `after` of its children.

    `split_scopes@t:0{after=1}`:

    N
    | t[{0}] = x[{0}]       -->  N t[{0}] = x[{0}]
    | y[{0}] = exp(t[{0}])       N y[{0}] = exp(t[{0}])

    Legal iff no instance of the first part depends on an earlier iteration of the second part:
    not exists i > j: first(i) conflicts with second(j); and no private copy is used in both parts.
    """

    name: ClassVar[str] = "split_scopes"
    site: ClassVar = Scope
    restoring: ClassVar = frozenset({"id"})
    after: int
    id: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Every cut between two children."""
        for scope in program.nest.scopes:
            for after in range(1, len(scope.children)):
                yield scope, cls(after)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """The cut exists, nothing flows backwards over it, no private copy crosses it."""
        if len(site.children) == 1:
            return Reason("the scope has only one child")
        if not 1 <= self.after < len(site.children):
            return Reason(f"'after' must be between 1 and {len(site.children) - 1}, the scope's children less one")
        if (reason := identifiers_reason(program, [self.id])) is not None:
            return reason
        first, second = self._parts(site)
        conflict = program.conflict(first, second, (*same_iteration(site), AFTER))
        if conflict is not None:
            return _carried("the first part needs earlier iterations of the second", conflict)
        if site.mapping.is_threaded:
            registers = [b for b in program.nest.buffers if b.memory is Memory.REGISTER]
            for buffer in (*private_buffers(program, site), *registers):
                used = [any(a.array.buffer is buffer for leaf in p for a in leaf.accesses) for p in (first, second)]
                if all(used):
                    return Reason(
                        f"each iteration has its own copy of '{buffer.names[0]}', used on both sides of the cut"
                    )
        return None

    def _parts(self, site: Scope) -> tuple[list[Leaf], list[Leaf]]:
        children = site.children
        return (
            [leaf for c in children[: self.after] for leaf in leaves_of(c)],
            [leaf for c in children[self.after :] for leaf in leaves_of(c)],
        )

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Two accumulations into one element may change order."""
        return reassociates(program.reorders(*self._parts(site), (*same_iteration(site), AFTER)))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the children behind the cut into a new scope."""
        identifier = self.id or fresh_id(program.nest.by_id, f"{site.id}.s")
        second = ScopeOp(site.extent, mapping=site.mapping, id=identifier)
        second.iv.name_hint = site.op.iv.name_hint
        rewriter.insert(second, InsertPoint.after(site.op))
        moved = site.children[self.after :]
        move_into([c.op for c in moved], second, rewriter)
        chain = (*chain_ops(site), second)
        place_guards(site.guard, chain, [site.depth], rewriter)
        reindex(moved, {}, chain, rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        """Fuse the two parts again."""
        return JoinScopes().as_move(f"%{site.id}")


@dataclass(frozen=True)
class TileScope(Transformation[Scope]):
    """Split the iterations of a scope into tiles; a last, partial tile is guarded.

    `tile_scope@y:0{size=16}`:

    500 y[{0}] = x[{0}]  -->  32 16 where ({0}*16+{1} < 500) y[{0}*16+{1}] = x[{0}*16+{1}]

    Legal: the order of the iterations stays. Refused only for divisions that would not come back in normal form.
    """

    name: ClassVar[str] = "tile_scope"
    site: ClassVar = Scope
    restoring: ClassVar = frozenset({"outer", "inner"})
    size: int
    outer: str = ""
    inner: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Powers of two and vector lengths of the machine; divisors only, where the extent has such divisors."""
        sizes = {2, 4, 8, 16, 32, 64} | {
            n for d in ("f64", "f32", "f16", "i8") for n in program.machine.vector_lanes(d)
        }
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL:
                fitting = [s for s in sorted(sizes) if s < scope.extent]
                dividing = [s for s in fitting if scope.extent % s == 0]
                yield from ((scope, cls(size)) for size in dividing or fitting)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Sequential, and a size within the extent."""
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} is mapped; unmap it first")
        if not 1 <= self.size <= site.extent:
            return Reason(f"'size' must be between 1 and {site.extent}, the extent")
        unusable = identifiers_reason(program, [self.outer, self.inner], [site.id])
        return unusable or irreversible_tiling(site, site.leaves, self.size)

    def _ids(self, program: Program, site: Scope) -> tuple[str, str]:
        taken = program.nest.by_id
        return self.outer or fresh_id(taken, f"{site.id}.o"), self.inner or fresh_id(taken, f"{site.id}.i")

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """i becomes outer * size + inner."""
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
        if site.extent % self.size:
            guards.append(const(site.extent - 1) - value)
        place_guards(guards, chain, (depth, depth + 1), rewriter)
        rewriter.erase(site.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        """Collapse the two scopes."""
        outer, inner = self._ids(program, site)
        identifier = "" if common_id(outer, inner) == site.id else site.id
        return CollapseScopes(identifier).as_move(f"%{outer}")


def common_id(outer: str, inner: str) -> str:
    """The identifier that a tiling split into these two; '' if it was none."""
    if outer.endswith(".o") and inner == f"{outer[:-2]}.i":
        return outer[:-2]
    return ""


@dataclass(frozen=True)
class CollapseScopes(Transformation[Scope]):
    """Make one scope of a scope and its only child.

    `collapse_scopes@y:0`:

    32 16 y[{0}*16+{1}] = x[{0}*16+{1}]  -->  512 y[{0}] = x[{0}]

    Legal: the order of the iterations stays. A guard that cuts off the last iterations shortens the extent. Refused
    only for divisions that would not come back in normal form.
    """

    name: ClassVar[str] = "collapse_scopes"
    site: ClassVar = Scope
    restoring: ClassVar = frozenset({"id"})
    id: str = ""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes whose only child is a scope."""
        for scope in program.nest.scopes:
            if len(scope.children) == 1 and isinstance(scope.children[0], Scope):
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Perfectly nested and both sequential."""
        inner = _only_scope(site)
        if inner is None:
            return Reason("the scope does not wrap exactly one scope")
        if site.mapping is not Mapping.SEQUENTIAL or inner.mapping is not Mapping.SEQUENTIAL:
            return Reason("only sequential scopes collapse; unmap them first")
        unusable = identifiers_reason(program, [self.id], [site.id, inner.id])
        return unusable or misplaced_guard(inner) or irreversible_collapse(site, inner)

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """outer becomes i floordiv size, inner becomes i mod size."""
        inner = _only_scope(site)
        assert inner is not None
        depth, outside = site.depth, tuple(s.extent for s in site.chain[:-1])
        total = collapsed_extent(site, inner)
        guards = collapsed_guards(site, inner, (*outside, total))
        scope = ScopeOp(total, id=self._identifier(program, site, inner))
        rewriter.insert(scope, InsertPoint.before(site.op))
        move_into([c.op for c in inner.children], scope, rewriter)
        chain = (*chain_ops(site), scope)
        reindex(inner.children, digits_of(depth, inner.extent, (*outside, total)), chain, rewriter)
        place_guards(guards, chain, [depth], rewriter)
        rewriter.erase(site.op)

    def _identifier(self, program: Program, site: Scope, inner: Scope) -> str:
        base = self.id or common_id(site.id, inner.id)
        return base or fresh_id(program.nest.by_id, f"{site.id}*{inner.id}")

    def inverse(self, program: Program, site: Scope) -> Move:
        """Tile by the inner extent."""
        inner = _only_scope(site)
        assert inner is not None
        identifier = self._identifier(program, site, inner)
        names = ("", "") if identifier == common_id(site.id, inner.id) else (site.id, inner.id)
        return TileScope(inner.extent, *names).as_move(f"%{identifier}")


def _only_scope(site: Scope) -> Scope | None:
    """The only child, where it is a scope."""
    child = site.children[0]
    return child if len(site.children) == 1 and isinstance(child, Scope) else None


def misplaced_guard(inner: Scope) -> Reason | None:
    """Refuse to move an only child's guard to the scope outside, from where undoing the move would not take it back.

    Splitting scopes leaves such guards; the canonical form, from which the game starts, has none.
    """
    if all(max(g.variables(), default=inner.depth) == inner.depth for g in inner.guard):
        return None
    return Reason("a guard of the inner scope does not use its variable; undoing the move would not take it back")


def collapsed_extent(site: Scope, inner: Scope) -> int:
    """Iterations of the two scopes together, less those that a guard cuts off at the end."""
    total = site.extent * inner.extent
    guards = collapsed_guards(site, inner, (*(s.extent for s in site.chain[:-1]), total))
    cut = min((g.constant + 1 for g in guards if g.terms == ((site.depth, -1),)), default=total)
    return cut if -(-cut // inner.extent) == site.extent else total


def collapsed_guards(site: Scope, inner: Scope, extents: tuple[int, ...]) -> list[Expr]:
    """The guards of the two scopes over the variable of the collapsed one."""
    digits = digits_of(site.depth, inner.extent, extents)
    return [g.substitute(digits, extents) for g in (*site.guard, *inner.guard)]


def _only_linear(leaves: Iterable[Leaf]) -> bool:
    return all(e.is_linear for leaf in leaves for e in expressions_of(leaf))


def irreversible_tiling(site: Scope, leaves: Sequence[Leaf], size: int) -> Reason | None:
    """Refuse a tiling that collapsing would not take back to the letter (only divisions can be the reason)."""
    if _only_linear(leaves):
        return None
    depth = site.depth
    for leaf in leaves:
        before = leaf.extents
        after = (*before[:depth], -(-site.extent // size), size, *before[depth + 1 :])
        there = {depth: var(depth) * size + var(depth + 1), **{k: var(k + 1) for k in range(depth + 1, leaf.depth)}}
        back = {**digits_of(depth, size, before), **{k + 1: var(k) for k in range(depth + 1, leaf.depth)}}
        if not _comes_back(leaf, there, after, back, before):
            return _IRREVERSIBLE
    return None


def irreversible_collapse(site: Scope, inner: Scope) -> Reason | None:
    """Refuse a collapse that tiling would not take back to the letter (only divisions can be the reason)."""
    if _only_linear(inner.leaves):
        return None
    depth, size, total = site.depth, inner.extent, collapsed_extent(site, inner)
    for leaf in inner.leaves:
        before = leaf.extents
        after = (*before[:depth], total, *before[depth + 2 :])
        there = {**digits_of(depth, size, after), **{k: var(k - 1) for k in range(depth + 2, leaf.depth)}}
        back = {depth: var(depth) * size + var(depth + 1), **{k: var(k + 1) for k in range(depth + 1, leaf.depth)}}
        if not _comes_back(leaf, there, after, back, before):
            return _IRREVERSIBLE
    return None


_IRREVERSIBLE = Reason("an index expression with divisions would not come back in normal form when the move is undone")


def _comes_back(
    leaf: Leaf, there: dict[int, Expr], after: tuple[int, ...], back: dict[int, Expr], before: tuple[int, ...]
) -> bool:
    return all(e.substitute(there, after).substitute(back, before) == e for e in expressions_of(leaf))


def expressions_of(leaf: Leaf) -> list[Expr]:
    """All index expressions of a statement: accesses, index values and the guards around it."""
    found = [e for a in leaf.accesses for e in a.index]
    found += [i.expression for i in leaf.inputs if isinstance(i, Index)]
    return [*found, *leaf.guards]


def digits_of(depth: int, size: int, extents: Sequence[int]) -> dict[int, Expr]:
    """The variables of a tiled scope in terms of the one at `depth` of the collapsed scope."""
    return {depth: floordiv(var(depth), size, extents), depth + 1: modulo(var(depth), size, extents)}


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
    site: ClassVar = Scope

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes whose only child is a scope."""
        for scope in program.nest.scopes:
            if _only_scope(scope) is not None:
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Perfectly nested, mappings that may be exchanged, no dependence that would turn round."""
        inner = _only_scope(site)
        if inner is None:
            return Reason("the scope does not wrap exactly one scope")
        if inner.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if (misplaced := misplaced_guard(inner)) is not None:
            return misplaced
        if site.mapping.is_threaded and inner.mapping is not Mapping.SEQUENTIAL:
            return Reason(f"{describe_scope(site)} cannot be inside {describe_scope(inner)}")
        outside, leaves = same_iteration(site), site.leaves
        conflict = program.conflict(leaves, leaves, (*outside, BEFORE, AFTER))
        if conflict is None and inner.mapping.is_threaded:
            conflict = program.conflict(leaves, leaves, (*outside, ANY, BEFORE), racing=True)
        if conflict is not None:
            return _carried("a dependence would be turned round", conflict)
        for buffer in private_buffers(program, site):
            violation = program.storage_violation(buffer.names[0], buffer.reuse, within=inner.depth)
            if violation is not None:
                return Reason("a private copy keeps its value over iterations of the inner scope", violation.detail)
        return None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Interchanging two reduction scopes changes the order of the sum."""
        relation = (*same_iteration(site), BEFORE, AFTER)
        return reassociates(program.reorders(site.leaves, site.leaves, relation))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """The scopes change places, their variables stay."""
        inner = _only_scope(site)
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
        """Interchange again."""
        inner = _only_scope(site)
        assert inner is not None
        return SwapScopes().as_move(f"%{inner.id}")


@dataclass(frozen=True)
class SwapNodes(Transformation[Scope | Leaf]):
    """Exchange a node with the one that immediately follows it.

    `swap_nodes@a:0`:

    N a[{0}] = x[{0}]       N b[{0}] = x[{0}]
    N b[{0}] = x[{0}]  -->  N a[{0}] = x[{0}]

    Legal iff no instances of the two in one iteration of the scopes around them conflict.
    """

    name: ClassVar[str] = "swap_nodes"
    site: ClassVar = (Scope, Leaf)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope | Leaf, Self]]:
        """Nodes with a following sibling."""
        for node in (*program.nest.scopes, *program.nest.leaves):
            if program.nest.next_sibling(node) is not None:
                yield node, cls()

    def check(self, program: Program, site: Scope | Leaf) -> Reason | None:
        """The two are independent."""
        second = program.nest.next_sibling(site)
        if second is None:
            return Reason("nothing follows in the same scope")
        conflict = program.conflict(leaves_of(site), leaves_of(second), same_iteration(site))
        if conflict is not None:
            return _carried("the second depends on the first", conflict)
        return None

    def numerics(self, program: Program, site: Scope | Leaf) -> Numerics:
        """Two accumulations into one element may change order."""
        second = program.nest.next_sibling(site)
        assert second is not None
        return reassociates(program.reorders(leaves_of(site), leaves_of(second), same_iteration(site)))

    def rewrite(self, program: Program, site: Scope | Leaf, rewriter: PatternRewriter) -> None:
        """Move the second before the first."""
        second = program.nest.next_sibling(site)
        assert second is not None
        second.op.detach()
        rewriter.insert(second.op, InsertPoint.before(site.op))

    def inverse(self, program: Program, site: Scope | Leaf) -> Move:
        """Exchange them again."""
        second = program.nest.next_sibling(site)
        assert second is not None
        return SwapNodes().as_move(f"%{second.id}")
