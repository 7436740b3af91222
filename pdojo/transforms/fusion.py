"""Fusing a scope with the one that follows it, and splitting a scope between two children."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.analysis.collision import AFTER, BEFORE
from pdojo.dialect.analysis.program import Conflict, Program
from pdojo.dialect.attributes import Mapping, Memory, Numerics
from pdojo.dialect.nest import Leaf, Scope, leaves_of
from pdojo.dialect.ops import ScopeOp
from pdojo.dialect.rewriting import chain_ops, fresh_id, move_into, place_guards, reindex
from pdojo.dialect.verify import describe_scope
from pdojo.transforms.base import Reason, Transformation
from pdojo.transforms.identifiers import identifiers_reason
from pdojo.transforms.move import Move
from pdojo.transforms.ordering import Touches, carried, private_buffers, reassociates, reordered, same_iteration


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
        threaded, outside = site.mapping.is_threaded, same_iteration(site)
        racing = threaded and not site.mapping.declares_tree
        leaves = site.leaves, second.leaves

        def reversed_pair(touches: Touches) -> Conflict | None:
            found = program.conflict(*leaves, (*outside, AFTER), racing=racing, touches=touches)
            if found is None and threaded:
                found = program.conflict(*leaves, (*outside, BEFORE), racing=racing, touches=touches)
            return found

        found = reordered(program, self, site, [*site.leaves, *second.leaves], reversed_pair)
        if isinstance(found, Conflict):
            return carried("the second scope needs iterations of the first that would come later", found)
        return found

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
        relation = (*same_iteration(site), AFTER)

        def reversed_pair(touches: Touches) -> Conflict | None:
            return program.conflict(first, second, relation, touches=touches)

        found = reordered(program, self, site, site.leaves, reversed_pair)
        if isinstance(found, Conflict):
            return carried("the first part needs earlier iterations of the second", found)
        if found is not None:
            return found
        if site.mapping.is_threaded:
            # Threads of a block go on after the cut, with what is in their registers.
            lost = site.mapping is Mapping.PARALLEL
            registers = [b for b in program.nest.buffers if lost and b.memory is Memory.REGISTER]
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
