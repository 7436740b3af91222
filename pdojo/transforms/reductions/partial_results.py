"""Split reductions: accumulation into private partial results, and its inverse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    ACCUMULATIONS,
    Access,
    Array,
    Buffer,
    Constant,
    DictionaryAttr,
    Expr,
    InsertPoint,
    Leaf,
    Mapping,
    Memory,
    Move,
    Node,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    accesses_of,
    build_op,
    bytes_in_memory,
    chain_ops,
    const,
    describe_scope,
    fresh_id,
    identity_value,
    place_guards,
    racing_scope,
    run_time_extent,
    substitute_input,
    unreached,
    var,
)
from pdojo.transforms.common.declaring import declare, fresh_name, name_reason
from pdojo.transforms.common.ordering import reassociates
from pdojo.transforms.structure.digits import (
    collapsed_extent,
    collapsed_guards,
    digits_of,
)


def _reduction(site: Scope) -> Leaf | None:
    """The accumulating statement if it is the scope's only child and the scope does not index its output; else None."""
    leaf = site.children[0]
    if len(site.children) != 1 or not isinstance(leaf, Leaf) or leaf.accumulate is None:
        return None
    return None if any(e.uses(site.depth) for e in leaf.output.index) else leaf


def _is_busy(site: Scope, leaf: Leaf) -> bool:
    """True if guards leave terms to a reduction in every iteration of the scopes around `site`.

    Without terms, the total is accumulated with a neutral element where it was untouched, perhaps out of its array.
    """
    inside = [g for s in leaf.chain[site.depth :] for g in s.guard]
    start = {d: const(0) for d in range(site.depth, leaf.depth)}
    if all(g.substitute(start, leaf.extents).bounds(leaf.extents)[0] >= 0 for g in inside):
        return True
    outer = tuple(var(d) for d in range(site.depth))
    around = [g for s in site.chain[:-1] for g in s.guard]
    return unreached([(leaf.extents[: site.depth], around, outer)], [(leaf.extents, leaf.guards, outer)]) is None


def _part_ids(identifier: str) -> list[str]:
    """Identifiers of the scopes (initialising, outer, inner, combining) and of the two new statements."""
    return [f"{identifier}.{part}" for part in ("z", "o", "i", "f", "zop", "fop")]


@dataclass(frozen=True)
class SplitReduction(Transformation[Scope]):
    """Accumulate into `size` private partial results, which are combined at the end.

    `split_reduction@s:0{size=4 into=p}`:

    512 s[0] += x[{0}]  -->  4 p[0,{0}] = 0
                             128 4 p[0,{1}] += x[{0}*4+{1}]
                             4 s[0] += p[0,{0}]

    Legal if the scope wraps one accumulation whose inputs are not in the buffer of its output.
    """

    name: ClassVar[str] = "split_reduction"
    keeps_statements: ClassVar = False
    size: int
    into: str = ""
    """The name of the array of partial results."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Reductions, with powers of two that divide their extents."""
        for scope in program.nest.scopes:
            if scope.mapping is Mapping.SEQUENTIAL and _reduction(scope) is not None:
                sizes = [s for s in (2, 4, 8, 16, 32, 64) if s < scope.extent]
                yield from ((scope, cls(size)) for size in [s for s in sizes if scope.extent % s == 0] or sizes)

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a sequential reduction scope around one statement, and a size within its extent."""
        leaf = _reduction(site)
        if leaf is None:
            return Reason("the scope does not wrap exactly one accumulation into elements that it does not index")
        if site.mapping is not Mapping.SEQUENTIAL:
            return Reason("the scope is mapped; unmap it first")
        if not 1 <= self.size <= site.extent:
            return Reason(f"'size' must be between 1 and {site.extent}, the extent")
        if any(a.array.buffer is leaf.output.array.buffer for a in leaf.reads):
            return Reason(f"the op reads '{leaf.output.array.name}', into which it accumulates")
        return self._partials_reason(program, leaf)

    def _partials_reason(self, program: Program, leaf: Leaf) -> Reason | None:
        """The reason why the partial results cannot be declared; None if they can."""
        if (unusable := name_reason(program, self.into)) is not None:
            return unusable
        scope = racing_scope(program, leaf, leaf.output.index, leaf.output.array.buffer.reuse)
        if scope is not None:
            return Reason(f"iterations of {describe_scope(scope)} would share partial results")
        return None

    def adds(self, program: Program, site: Scope) -> int:
        """Bytes of the partial results, `size` times the total's; 0 on the heap."""
        leaf = _reduction(site)
        assert leaf is not None
        buffer = leaf.output.array.buffer
        return 0 if self._memory(buffer) is Memory.HEAP else self.size * bytes_in_memory(program, buffer)

    def argues(self, program: Program, site: Scope) -> bool:
        """True if every iteration of the scopes around has terms."""
        leaf = _reduction(site)
        assert leaf is not None
        return _is_busy(site, leaf)

    promises: ClassVar = Promises(conditions=argues, adds=adds)

    @staticmethod
    def _memory(total: Buffer) -> Memory:
        return Memory.HEAP if total.memory is Memory.HEAP else Memory.STACK

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation: the order of the sum changes."""
        leaf = _reduction(site)
        assert leaf is not None
        assert leaf.accumulate is not None
        return reassociates(not ACCUMULATIONS[leaf.accumulate].exact)

    def _into(self, program: Program, leaf: Leaf) -> str:
        return fresh_name(program.nest.arrays, self.into or f"{leaf.output.array.name}_part")

    @staticmethod
    def _ids(program: Program, site: Scope) -> list[str]:
        return [fresh_id(program.nest.by_id, name) for name in _part_ids(site.id)]

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Declare the partial results; initialise, accumulate and combine them."""
        leaf = _reduction(site)
        assert leaf is not None
        assert leaf.accumulate is not None
        depth, outside = site.depth, chain_ops(site)
        partial = self._declare(program, leaf, rewriter)
        zero_id, outer_id, inner_id, final_id, zero_op, final_op = self._ids(program, site)
        zero, final, inner = (
            ScopeOp(self.size, id=zero_id),
            ScopeOp(self.size, id=final_id),
            ScopeOp(self.size, id=inner_id),
        )
        outer = ScopeOp(-(-site.extent // self.size), id=outer_id)
        rewriter.insert([zero, outer, final], InsertPoint.before(site.op))
        rewriter.insert(inner, InsertPoint.at_start(outer.body.block))
        total = leaf.output
        slot = (*total.index, var(depth))
        identity = Constant(identity_value(leaf.accumulate, total.array.dtype), total.array.dtype)
        start = build_op((partial, slot), [identity], (*outside, zero), identifier=zero_op)
        rewriter.insert(start, InsertPoint.at_end(zero.body.block))
        part = Access(partial, slot, DictionaryAttr({}))
        combine = build_op(
            (total.array, total.index), [part], (*outside, final), accumulate=leaf.accumulate, identifier=final_op
        )
        rewriter.insert(combine, InsertPoint.at_end(final.body.block))
        chain = (*outside, outer, inner)
        extents = [op.count for op in chain]
        value = var(depth) * self.size + var(depth + 1)
        step = build_op(
            (partial, (*total.index, var(depth + 1))),
            [substitute_input(i, {depth: value}, extents) for i in leaf.inputs],
            chain,
            function=leaf.function,
            accumulate=leaf.accumulate,
            hints=leaf.op.access_hints,
            identifier=leaf.id,
            contracted=leaf.contracted,
        )
        rewriter.insert(step, InsertPoint.at_end(inner.body.block))
        guards = [g.substitute({depth: value}, extents) for g in site.guard]
        if site.extent % self.size and run_time_extent(site) is None:
            guards.append(const(site.extent - 1) - value)
        place_guards(guards, chain, (depth, depth + 1), rewriter)
        rewriter.erase(site.op)

    def _declare(self, program: Program, leaf: Leaf, rewriter: PatternRewriter) -> Array:
        total = leaf.output.array
        shape, slots = (*total.shape, self.size), (*total.buffer.reuse, 0)
        name, memory = self._into(program, leaf), self._memory(total.buffer)
        return declare(program, name, total.dtype, shape, slots, memory, rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        return MergeReduction().as_move(f"%{self._ids(program, site)[1]}")


@dataclass(frozen=True)
class _Partials:
    """The four parts of a split reduction, around its outer scope."""

    zero: Scope
    outer: Scope
    inner: Scope
    final: Scope
    start: Leaf
    step: Leaf
    combine: Leaf


@dataclass(frozen=True)
class MergeReduction(Transformation[Scope]):
    """Remove partial results; the location is the scope that accumulates into them.

    `merge_reduction@p#1:0`:

    4 p[0,{0}] = 0
    128 4 p[0,{1}] += x[{0}*4+{1}]
    4 s[0] += p[0,{0}]              -->  512 s[0] += x[{0}]

    Legal if the partial results have no other use.
    """

    name: ClassVar[str] = "merge_reduction"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False

    def argues(self, program: Program, site: Scope) -> bool:
        """True if every iteration of the scopes around has terms."""
        found = _partials(program, site)
        assert not isinstance(found, Reason)
        return _is_busy(site, found.step)

    promises: ClassVar = Promises(conditions=argues, adds=0)

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Scopes between two siblings whose only child is a scope around one accumulation."""
        for scope in program.nest.scopes:
            if not isinstance(_partials(program, scope), str):
                yield scope, cls()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires the four parts of a split reduction, and no other use of the partial results."""
        found = _partials(program, site)
        return found if isinstance(found, Reason) else None

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation: the order of the sum changes."""
        found = _partials(program, site)
        assert not isinstance(found, Reason)
        assert found.step.accumulate is not None
        return reassociates(not ACCUMULATIONS[found.step.accumulate].exact)

    @staticmethod
    def _identifier(program: Program, parts: _Partials) -> str:
        taken, base = program.nest.by_id, parts.outer.id.removesuffix(".o")
        natural = f"{base}.o" == parts.outer.id and base not in taken
        return base if natural else fresh_id(taken, f"{parts.outer.id}*{parts.inner.id}")

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        """Write one scope with one accumulation; delete the partial results and their declaration."""
        parts = _partials(program, site)
        assert not isinstance(parts, Reason)
        depth, size, outside = site.depth, parts.inner.extent, chain_ops(site)
        total = collapsed_extent(site, parts.inner)
        scope = ScopeOp(total, id=self._identifier(program, parts))
        rewriter.insert(scope, InsertPoint.before(site.op))
        extents = (*(op.count for op in outside), total)
        digits = digits_of(depth, size, extents)
        chain = (*outside, scope)
        step, combine = parts.step, parts.combine
        merged = build_op(
            (combine.output.array, combine.output.index),
            [substitute_input(i, digits, extents) for i in step.inputs],
            chain,
            function=step.function,
            accumulate=step.accumulate,
            hints=step.op.access_hints,
            identifier=step.id,
            contracted=step.contracted,
        )
        rewriter.insert(merged, InsertPoint.at_end(scope.body.block))
        place_guards(collapsed_guards(site, parts.inner, extents), chain, [depth], rewriter)
        buffer = step.output.array.buffer.op
        assert buffer is not None
        for op in (parts.zero.op, site.op, parts.final.op, buffer):
            rewriter.erase(op)

    def inverse(self, program: Program, site: Scope) -> Move:
        parts = _partials(program, site)
        assert not isinstance(parts, Reason)
        split = SplitReduction(parts.inner.extent, into=parts.step.output.array.name)
        return split.as_move(f"%{self._identifier(program, parts)}")


def _partials(program: Program, site: Scope) -> _Partials | Reason:
    """The parts of a split reduction; a Reason if one is missing."""
    siblings = program.nest.siblings(site)
    around = siblings[site.position - 1 : site.position + 2] if site.position else []
    inner = site.children[0]
    if len(around) != 3 or len(site.children) != 1 or not isinstance(inner, Scope):
        return Reason("the scope is not the middle one of initialisation, accumulation and combination")
    zero, final = around[0], around[2]
    found = _single_ops(zero, inner, final)
    if found is None or not isinstance(zero, Scope) or not isinstance(final, Scope):
        return Reason("initialisation, accumulation and combination must be scopes around one op each")
    parts = _Partials(zero, site, inner, final, *found)
    if any(s.mapping is not Mapping.SEQUENTIAL for s in (zero, site, inner, final)):
        return Reason("the scopes of the partial results are mapped; unmap them first")
    if zero.guard or final.guard or not zero.extent == inner.extent == final.extent:
        return Reason("the scopes over the partial results differ")
    if parts.step.output.array.shape != (*parts.combine.output.array.shape, inner.extent):
        return Reason(
            "the partial results have more room than split_reduction gives them; unpad their dimensions first"
        )
    return _mismatch(program, parts) or parts


def _single_ops(*nodes: Node) -> tuple[Leaf, Leaf, Leaf] | None:
    ops = [n.children[0] for n in nodes if isinstance(n, Scope) and len(n.children) == 1]
    leaves = [op for op in ops if isinstance(op, Leaf)]
    return (leaves[0], leaves[1], leaves[2]) if len(leaves) == 3 else None


def _mismatch(program: Program, parts: _Partials) -> Reason | None:
    """The reason why the three statements are no split reduction; None if they are."""
    start, step, combine, depth = parts.start, parts.step, parts.combine, parts.outer.depth
    partial = step.output.array
    if step.accumulate is None or combine.accumulate != step.accumulate or start.accumulate is not None:
        return Reason("the ops do not initialise, accumulate and combine with one operation")
    identity = Constant(identity_value(step.accumulate, partial.dtype), partial.dtype)
    if start.function is not None or start.inputs != (identity,):
        return Reason("the partial results do not start at the neutral element")
    if combine.function is not None or len(combine.reads) != 1 or len(combine.inputs) != 1:
        return Reason("the combination does more than add up the partial results")
    slot = (*combine.output.index, var(depth))
    expected = (*combine.output.index, var(depth + 1))
    if any(_uses(combine.output.index, d) for d in (depth, depth + 1)):
        return Reason("the total depends on the partial result")
    read = combine.reads[0]
    if read.array is not partial or (start.output.array, start.output.index) != (partial, slot):
        return Reason("the three ops use different partial results")
    if read.index != slot or step.output.index != expected:
        return Reason("the three ops index the partial results differently")
    uses = accesses_of(program.nest, partial.buffer)
    plain = not partial.buffer.swizzles and not partial.buffer.hints.data
    if partial.intent is not None or len(partial.buffer.names) != 1 or len(uses) != 3 or not plain:
        return Reason(f"'{partial.name}' is used elsewhere, or its buffer is swizzled or has hints")
    if any(a.hints.data for leaf in (start, combine) for a in leaf.accesses):
        return Reason("the initialisation or the combination has hints, which would be lost; clear them first")
    if any(a.array.buffer is combine.output.array.buffer for a in step.reads):
        return Reason(f"the accumulation reads '{combine.output.array.name}'")
    return None


def _uses(index: tuple[Expr, ...], depth: int) -> bool:
    return any(e.uses(depth) for e in index)
