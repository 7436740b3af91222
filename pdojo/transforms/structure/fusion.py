"""Fusing a scope with the one that follows it, and splitting a scope between two children."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Self

from pdojo.transforms.api import (
    AFTER,
    BEFORE,
    Access,
    Conflict,
    InsertPoint,
    Leaf,
    Mapping,
    Memory,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    chain_ops,
    describe_scope,
    fresh_id,
    leaves_of,
    move_into,
    place_guards,
    replace_variable,
    var,
)
from pdojo.transforms.common.ordering import (
    Uses,
    carried,
    displaced_buffers,
    private_buffers,
    reassociates,
    reordered,
    same_iteration,
    shared_buffers,
    storage_after,
)
from pdojo.transforms.structure.shifting import (
    Part,
    conflict_delayed,
    delayed,
    delays_of,
    free_scope,
    make_scope,
    part_of,
)


@dataclass(frozen=True)
class JoinScopes(Transformation[Scope]):
    """Fuse a scope with the one that immediately follows it.

    `join_scopes@t:0`:

    N t[{0}] = x[{0}]            N
    N y[{0}] = exp(t[{0}])  -->  | t[{0}] = x[{0}]
                                 | y[{0}] = exp(t[{0}])

    Legal iff no instance of the second scope depends on a later iteration of the first:
    not exists i > j: first(i) conflicts with second(j); for concurrent scopes i != j, accumulations included.

    With `shift=d`, iteration j of the second scope runs in iteration j + d, for stencils. Extents and guards may
    differ; the parts get guards. Legal iff not exists i > j + d: first(i) conflicts with second(j).
    """

    name: ClassVar[str] = "join_scopes"
    finishes: ClassVar = True
    exchanges: ClassVar = "order"
    promises: ClassVar = Promises(conditions=True, adds=0, is_local=True, takes_next=True)
    shift: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes followed by a scope; the shifts are the distances of accesses and the difference of extents."""
        for scope in program.nest.scopes:
            second = program.nest.next_sibling(scope)
            if isinstance(second, Scope):
                yield scope, cls()
                if scope.mapping is second.mapping is Mapping.SEQUENTIAL:
                    yield from ((scope, cls(shift)) for shift in likely_shifts(scope, second))

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires the shape, and no backward dependence."""
        second = program.nest.next_sibling(site)
        if not isinstance(second, Scope):
            return Reason("no scope follows immediately")
        if (reason := self._shape(site, second)) is not None:
            return reason
        return self._shifted(program, site, second) if self.shift else self._plain(program, site, second)

    def _shape(self, site: Scope, second: Scope) -> Reason | None:
        """Requires the same extent, mapping and guard; for a shift, sequential scopes."""
        if self.shift:
            if not site.mapping is second.mapping is Mapping.SEQUENTIAL:
                return Reason("only sequential scopes are fused with a shift; unmap them first")
            if not 0 < self.shift < site.extent:
                return Reason(f"'shift' must be between 0 and {site.extent - 1}, the first scope's extent less one")
            return None
        if site.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if (site.extent, site.mapping) != (second.extent, second.mapping):
            return Reason(f"{describe_scope(site)} and {describe_scope(second)} differ in extent or mapping")
        if site.guard != second.guard:
            return Reason("the two scopes have different guards")
        return None

    def _plain(self, program: Program, site: Scope, second: Scope) -> Reason | None:
        # Parallel scopes wait for each other, but not their iterations: after the fusion accumulations would race.
        threaded, outside = site.mapping.is_threaded, same_iteration(site)
        racing = threaded and not site.mapping.combines
        leaves = site.leaves, second.leaves

        def reversed_pair(uses: Uses) -> Conflict | None:
            found = program.conflict(*leaves, (*outside, AFTER), racing=racing, uses=uses)
            if found is None and threaded:
                found = program.conflict(*leaves, (*outside, BEFORE), racing=racing, uses=uses)
            return found

        found = reordered(program, self, site, shared_buffers(*leaves), reversed_pair)
        if isinstance(found, Conflict):
            return carried("the second scope needs iterations of the first that would come later", found)
        return found

    def _shifted(self, program: Program, site: Scope, second: Scope) -> Reason | None:
        relation = (*same_iteration(site), AFTER)
        conflict = conflict_delayed(program, site.leaves, second.leaves, relation, self.shift)
        if conflict is not None:
            return carried("the second scope needs iterations of the first that would come later", conflict)
        changed = [*shared_buffers(site.leaves, second.leaves), *displaced_buffers(second.leaves, site.depth)]
        return storage_after(program, self, site, changed)

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if two accumulations into one element may change order, or become unordered across threads."""
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        later = delayed(program, second.leaves, site.depth, self.shift) if self.shift else None
        orders = (AFTER, BEFORE) if site.mapping.is_threaded else (AFTER,)
        relations = ((*same_iteration(site), order) for order in orders)
        return reassociates(any(program.reorders(site.leaves, second.leaves, each, later) for each in relations))

    def _parts(self, program: Program, site: Scope, second: Scope) -> tuple[Part, Part]:
        first_id, second_id = (fresh_id(program.nest.by_id, f"{scope.id}.g") for scope in (site, second))
        return (
            Part(tuple(site.children), site.depth, site.extent, site.guard, wrapper=first_id),
            Part(tuple(second.children), site.depth, second.extent, second.guard, self.shift, wrapper=second_id),
        )

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the children of the second scope after those of the first."""
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        if self.shift:
            parts = self._parts(program, site, second)
            make_scope(parts, max(p.end for p in parts), site.id, site, rewriter)
            rewriter.erase(site.op)
            rewriter.erase(second.op)
            return
        rewriter.replace_all_uses_with(second.op.iv, site.op.iv)
        move_into([c.op for c in second.children], site.op, rewriter)
        rewriter.erase(second.op)

    def inverse(self, program: Program, site: Scope) -> Move:
        second = program.nest.next_sibling(site)
        assert isinstance(second, Scope)
        after = len(site.children)
        if self.shift:
            first = self._parts(program, site, second)[0]
            total = max(first.end, second.extent + self.shift)
            after = 1 if first.needs_wrapper([s.extent for s in site.chain[:-1]], total) else after
        return SplitScopes(after, self.shift).as_move(f"%{site.id}")


def likely_shifts(first: Scope, second: Scope) -> list[int]:
    """Promising shifts: the distance from a write in `first` to a read in `second`, and the difference of extents."""
    found = {first.extent - second.extent}
    depth = first.depth
    for writer, reader in product(first.leaves, second.leaves):
        for read in reader.reads:
            if read.array is writer.output.array:
                found |= _distances(writer, writer.output, reader, read, depth)
    return sorted(d for d in found if 0 < d < first.extent)


def _distances(writer: Leaf, write: Access, reader: Leaf, read: Access, depth: int) -> set[int]:
    """Distances in iterations, per dimension, from the first element written to the last one read."""
    found: set[int] = set()
    for mine, other in zip(write.index, read.index, strict=True):
        step = mine.coefficient(depth)
        if step > 0 and other.coefficient(depth) == step:
            ahead = (other - var(depth) * step).bounds(reader.extents)[1]
            found.add((ahead - (mine - var(depth) * step).bounds(writer.extents)[0]) // step)
    return found


@dataclass(frozen=True)
class SplitScopes(Transformation[Scope]):
    """Split a scope into two; the first gets the first `after` children.

    `split_scopes@t:0{after=1}`:

    N
    | t[{0}] = x[{0}]       -->  N t[{0}] = x[{0}]
    | y[{0}] = exp(t[{0}])       N y[{0}] = exp(t[{0}])

    Legal iff no instance of the first part depends on an earlier iteration of the second part:
    not exists i > j: first(i) conflicts with second(j); and no private copy is used in both parts.

    With `shift=d`, the inverse of fusing two scopes with a shift: the second part, which runs d iterations later, gets
    its own iterations.
    """

    name: ClassVar[str] = "split_scopes"
    exchanges: ClassVar = "order"
    promises: ClassVar = Promises(conditions=True, adds=0, is_local=True)
    after: int
    shift: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Every cut between two children, and the shifts that the guards after the cut suggest."""
        for scope in program.nest.scopes:
            for after in range(1, len(scope.children)):
                yield scope, cls(after)
                yield from ((scope, cls(after, d)) for d in delays_of(scope, scope.children[after:]))

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires the shape, no backward dependence over the cut, and no private copy used on both sides."""
        if (reason := self._shape(site)) is not None:
            return reason
        return self._shifted(program, site) if self.shift else self._plain(program, site)

    def _shape(self, site: Scope) -> Reason | None:
        """Requires an existing cut and, for a shift, a later second part."""
        if len(site.children) == 1:
            return Reason("the scope has only one child")
        if not 1 <= self.after < len(site.children):
            return Reason(f"'after' must be between 1 and {len(site.children) - 1}, the scope's children less one")
        if self.shift and self._shifted_parts(site) is None:
            return Reason(f"the second part does not run {self.shift} iterations later")
        return None

    def _shifted_parts(self, site: Scope) -> tuple[Part, Part] | None:
        if site.mapping is not Mapping.SEQUENTIAL or site.guard or self.shift < 0:
            return None
        first = part_of(site, site.children[: self.after], 0)
        second = part_of(site, site.children[self.after :], self.shift)
        return None if first is None or second is None or self.shift >= first.extent else (first, second)

    def _shifted(self, program: Program, site: Scope) -> Reason | None:
        relation = (*same_iteration(site), AFTER)
        conflict = program.conflict(*self._parts(site), relation, uses=program.element_uses)
        if conflict is not None:
            return carried("the first part needs earlier iterations of the second", conflict)
        first, second = self._parts(site)
        changed = [*shared_buffers(first, second), *displaced_buffers(second, site.depth)]
        return storage_after(program, self, site, changed)

    def _plain(self, program: Program, site: Scope) -> Reason | None:
        first, second = self._parts(site)
        relation = (*same_iteration(site), AFTER)

        def reversed_pair(uses: Uses) -> Conflict | None:
            return program.conflict(first, second, relation, uses=uses)

        found = reordered(program, self, site, shared_buffers(first, second), reversed_pair)
        if isinstance(found, Conflict):
            return carried("the first part needs earlier iterations of the second", found)
        if found is not None:
            return found
        if site.mapping.is_threaded:
            # Threads of a block continue after the cut, with the values in their registers.
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
        """Reassociation if two accumulations into one element may change order."""
        return reassociates(program.reorders(*self._parts(site), (*same_iteration(site), AFTER)))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Move the children after the cut into a new scope."""
        identifier = fresh_id(program.nest.by_id, f"{site.id}.s")
        parts = self._shifted_parts(site) if self.shift else None
        if parts is not None:
            free_scope(parts[:1], site.id, site, rewriter)
            free_scope(parts[1:], identifier, site, rewriter)
            rewriter.erase(site.op)
            return
        second = ScopeOp(site.extent, mapping=site.mapping, id=identifier, intrinsic=site.intrinsic or None)
        second.iv.name_hint = site.op.iv.name_hint
        rewriter.insert(second, InsertPoint.after(site.op))
        moved = site.children[self.after :]
        move_into([c.op for c in moved], second, rewriter)
        place_guards(site.guard, (*chain_ops(site), second), [site.depth], rewriter)
        replace_variable(second, site.op.iv, rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        return JoinScopes(self.shift).as_move(f"%{site.id}")
