"""Two parts of one scope, the second of which runs some iterations later than the first.

A *part* is some children of a scope that run only in some of its iterations: after a fusion with a shift, or in a
pipeline. Its guards are on its only child if that is a sequential scope, otherwise on a scope of one iteration around
the part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pdojo.transforms.api import (
    AFTER,
    BEFORE,
    EQUAL,
    Conflict,
    Domain,
    Expr,
    InsertPoint,
    Leaf,
    Mapping,
    Node,
    Order,
    PatternRewriter,
    Program,
    Relation,
    Scope,
    ScopeOp,
    Undecided,
    Use,
    Witness,
    chain_ops,
    const,
    leaves_of,
    move_into,
    reindex,
    set_guard,
    var,
)

FEW_DELAYS = 4
"""Most delays that are examined one by one without a joint test first."""
MOST_DELAYS = 256
"""Most delays that are examined one by one."""


@dataclass(frozen=True, slots=True)
class Part:
    """Iteration j of the part, `0 <= j < extent`, is iteration `j + delay` of the scope at `depth` around it."""

    children: tuple[Node, ...]
    depth: int
    extent: int
    guard: tuple[Expr, ...]
    """Constraints `e >= 0`, as expressions over j."""
    delay: int = 0
    carrier: Scope | None = None
    """The scope that carries the part's guards."""
    wrapper: str = ""
    """Identifier of the scope of one iteration around the part; '' if there is none and none is needed."""

    @property
    def leaves(self) -> list[Leaf]:
        """All statements."""
        return [leaf for child in self.children for leaf in leaves_of(child)]

    @property
    def end(self) -> int:
        """Number of iterations that the part needs in the enclosing scope."""
        return self.extent + self.delay

    @property
    def only_loop(self) -> Scope | None:
        """The only child, if it is a sequential scope whose own guards differ from the part's; else None."""
        (child, *others) = self.children
        if others or not isinstance(child, Scope) or child.mapping is not Mapping.SEQUENTIAL or child.extent == 1:
            return None
        return child if all(g.uses(child.depth) for g in child.guard) else None

    def guards_in(self, extents: Sequence[int]) -> list[Expr]:
        """The guards of the iterations in which the part runs; `extents` ends with the extent of the scope."""
        own, total = var(self.depth), extents[-1]
        found = [g.substitute({self.depth: own - self.delay}, extents) for g in self.guard]
        if self.delay:
            found.append(own - self.delay)
        if self.end < total:
            found.append(const(self.end - 1) - own)
        return found

    def place(self, scope: ScopeOp, outside: Sequence[ScopeOp], rewriter: PatternRewriter) -> None:
        """Move the part to the end of a scope in `outside`, guarded to its iterations."""
        chain = (*outside, scope)
        extents = [op.count for op in chain]
        guards = self.guards_in(extents)
        later = {self.depth: var(self.depth) - self.delay}
        loop = self.only_loop
        if not guards or loop is not None:
            move_into([c.op for c in self.children], scope, rewriter)
            reindex(self.children, later, chain, rewriter)
            if guards and loop is not None:
                inner = (*chain, loop.op)
                moved = {**later, loop.depth: var(len(chain))}
                own = [g.substitute(moved, [*extents, loop.extent]) for g in loop.guard]
                set_guard(loop.op, [*guards, *own], inner, rewriter)
            return
        wrapper = ScopeOp(1, id=self.wrapper)
        rewriter.insert(wrapper, InsertPoint.at_end(scope.body.block))
        move_into([c.op for c in self.children], wrapper, rewriter)
        reindex(self.children, later, (*chain, wrapper), rewriter)
        set_guard(wrapper, guards, (*chain, wrapper), rewriter)

    def needs_wrapper(self, outside: Sequence[int], total: int) -> bool:
        """Whether `place` makes a scope of one iteration, in a scope of `total` iterations."""
        return self.only_loop is None and bool(self.guards_in((*outside, total)))

    def release(self, scope: ScopeOp, outside: Sequence[ScopeOp], rewriter: PatternRewriter) -> None:
        """Move the part to the end of a scope that already has its iterations and guards."""
        chain = (*outside, scope)
        earlier = {self.depth: var(self.depth) + self.delay}
        move_into([c.op for c in self.children], scope, rewriter)
        reindex(self.children, earlier, chain, rewriter)
        carrier = self.carrier
        if carrier is not None and not self.wrapper:
            inner = (*chain, carrier.op)
            moved = {**earlier, carrier.depth: var(len(chain))}
            extents = [op.count for op in inner]
            own = [g.substitute(moved, extents) for g in carrier.guard if g.uses(carrier.depth)]
            set_guard(carrier.op, own, inner, rewriter)


def part_of(site: Scope, children: Sequence[Node], delay: int) -> Part | None:
    """The part that these children of a scope form if they run `delay` iterations later; None if they form none."""
    depth = site.depth
    (first, *others) = children
    carrier: Scope | None = None
    if not others and isinstance(first, Scope) and first.mapping is Mapping.SEQUENTIAL:
        carrier = first if any(not g.uses(first.depth) for g in first.guard) else None
    guards = [] if carrier is None else [g for g in carrier.guard if not g.uses(carrier.depth)]
    start = var(depth) - delay
    if delay and start not in guards:
        return None
    ends = [g.constant + 1 for g in guards if g.terms == ((depth, -1),)]
    end = max(ends, default=site.extent)
    if end <= delay:
        return None
    extents = [*(s.extent for s in site.chain[:-1]), end - delay]
    rest = (g for g in guards if g not in (start, const(end - 1) - var(depth)))
    own = tuple(g.substitute({depth: var(depth) + delay}, extents) for g in rest)
    wrapped = carrier is not None and carrier.extent == 1
    inside = tuple(carrier.children) if carrier is not None and wrapped else tuple(children)
    return Part(inside, depth, end - delay, own, delay, carrier, carrier.id if carrier is not None and wrapped else "")


def delays_of(site: Scope, children: Sequence[Node]) -> list[int]:
    """The delays, in iterations, that the guards of these children suggest."""
    (first, *others) = children
    if others or not isinstance(first, Scope):
        return []
    return [-g.constant for g in first.guard if g.terms == ((site.depth, 1),)]


def make_scope(parts: Iterable[Part], extent: int, identifier: str, site: Scope, rewriter: PatternRewriter) -> None:
    """Insert before `site` a scope in which the parts run."""
    scope = ScopeOp(extent, mapping=site.mapping, id=identifier)
    scope.iv.name_hint = site.op.iv.name_hint
    rewriter.insert(scope, InsertPoint.before(site.op))
    outside = chain_ops(site)
    for part in parts:
        part.place(scope, outside, rewriter)


def free_scope(parts: Sequence[Part], identifier: str, site: Scope, rewriter: PatternRewriter) -> None:
    """Insert before `site` a scope with the common iterations and guards of its parts."""
    scope = ScopeOp(parts[0].extent, mapping=site.mapping, id=identifier)
    scope.iv.name_hint = site.op.iv.name_hint
    rewriter.insert(scope, InsertPoint.before(site.op))
    outside = chain_ops(site)
    for part in parts:
        part.release(scope, outside, rewriter)
    set_guard(scope, parts[0].guard, (*outside, scope), rewriter)


def delayed(program: Program, leaves: Iterable[Leaf], depth: int, delay: int) -> dict[Leaf, tuple[Use, ...]]:
    """The element accesses of statements as if `delay` were added to their iterations at `depth`."""
    value = {depth: var(depth) - delay}
    found: dict[Leaf, tuple[Use, ...]] = {}
    for leaf in leaves:
        extents = list(leaf.extents)
        extents[depth] = max(1, extents[depth] + delay)
        guards = [g.substitute(value, extents) for g in leaf.guards]
        guards += [var(depth) - delay] if delay > 0 else []
        domain = Domain(tuple(extents), tuple(guards))
        found[leaf] = tuple(
            replace(t, domain=domain, cell=tuple(e.substitute(value, extents) for e in t.cell))
            for t in program.element_uses[leaf]
        )
    return found


def conflict_delayed(
    program: Program, first: Sequence[Leaf], second: Sequence[Leaf], relation: Relation, delay: int
) -> Conflict | None:
    """A conflict of elements if `delay` is added to the iterations of `second` at the relation's last depth."""
    depth = len(relation) - 1
    later = delayed(program, second, depth, delay)
    found = program.conflict(first, second, relation, uses=program.element_uses, seconds=later)
    if found is None:
        return None
    there = found.witness.second
    back = (*there[:depth], there[depth] - delay, *there[depth + 1 :])
    return replace(found, witness=Witness(found.witness.first, back))


def conflict_while_delayed(
    program: Program, first: Sequence[Leaf], second: Sequence[Leaf], around: Relation, delays: range
) -> Conflict | None:
    """`conflict_delayed` for the first delay of `delays` that has a conflict; `around` relates the scopes outside.

    Raises Undecided for too many delays to examine each, if both smaller and larger delays may conflict.
    """
    if len(delays) > FEW_DELAYS:
        bounds = ((min(delays), AFTER), (max(delays), BEFORE))
        if not all(_conflict_from(program, first, second, around, delay, order) for delay, order in bounds):
            return None
        if len(delays) > MOST_DELAYS:
            raise Undecided(f"there may be conflicts, and {len(delays)} delays are too many to ask about each")
    found = (conflict_delayed(program, first, second, (*around, EQUAL), delay) for delay in delays)
    return next((conflict for conflict in found if conflict is not None), None)


def _conflict_from(
    program: Program, first: Sequence[Leaf], second: Sequence[Leaf], around: Relation, delay: int, order: Order
) -> bool:
    """Whether this delay has a conflict, or any larger one (`order` is AFTER), or any smaller one (BEFORE)."""
    depth = len(around)
    # Iterations are not negative: for a negative delay the first part is delayed instead.
    uses = delayed(program, first, depth, max(0, -delay))
    seconds = delayed(program, second, depth, max(0, delay))
    conflicts = (
        program.conflict(first, second, (*around, each), uses=uses, seconds=seconds) for each in (EQUAL, order)
    )
    return any(conflict is not None for conflict in conflicts)


def reorders_while_delayed(
    program: Program, first: Sequence[Leaf], second: Sequence[Leaf], around: Relation, delays: range
) -> bool:
    """Whether some delay (any, if `delays` are many) relates accumulations that commute but round differently."""
    if len(delays) > FEW_DELAYS:
        if not any(program.reorders(first, second, (*around, order)) for order in _orders(delays)):
            return False
        if len(delays) > MOST_DELAYS:
            return True
    relation = (*around, EQUAL)
    return any(
        program.reorders(first, second, relation, delayed(program, second, len(around), delay)) for delay in delays
    )


def _orders(delays: range) -> list[Order]:
    """The possible orders of an iteration of the first part and one of the second that some delay relates."""
    signs = ((EQUAL, 0 in delays), (AFTER, max(delays) > 0), (BEFORE, min(delays) < 0))
    return [order for order, holds in signs if holds]
