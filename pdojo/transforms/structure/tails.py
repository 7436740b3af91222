"""Neutral tails: filling the elements that a guarded copy skips, and dropping guards without effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Expr,
    InsertPoint,
    Leaf,
    Mapping,
    Move,
    NotationError,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Scope,
    ScopeOp,
    Transformation,
    accumulates,
    any_of,
    bounds_over_domain,
    build_op,
    chain_ops,
    describe_access,
    describe_scope,
    format_constant,
    fresh_id,
    guard_texts,
    harm,
    identity_value,
    instances_of,
    is_float,
    lacking,
    named_around,
    owner_of,
    parse_constant,
    parse_guard,
    sentence,
    set_guard,
    shorter_extent,
)
from pdojo.transforms.common.ordering import rewritten
from pdojo.transforms.values.dead_code import DeleteOp, needed, topmost


def _own_scopes(leaf: Leaf) -> list[Scope]:
    """The scopes that contain the statement and nothing else, outermost first."""
    top = topmost(leaf)
    return [s for s in leaf.chain if isinstance(top, Scope) and s.depth >= top.depth]


def _needless(leaf: Leaf) -> set[tuple[Scope, Expr]]:
    """The constraints of its own scopes that the statement does not need to write within its array.

    If only one of two constraints is needed, the inner one is dropped: it is about the tile, the outer one about tiles.
    """
    own = _own_scopes(leaf)
    kept = [(s, g) for s in leaf.chain for g in s.guard]
    inside = sorted((one for one in kept if one[0] in own), key=lambda one: (-one[0].depth, -len(one[1].variables())))
    gone: set[tuple[Scope, Expr]] = set()
    for one in inside:
        rest = [other for other in kept if other != one]
        if _beyond(leaf, leaf.output, [g for _, g in rest]) is None:
            kept = rest
            gone.add(one)
    return gone


def _beyond(leaf: Leaf, access: Access, guards: Sequence[Expr]) -> str | None:
    """How an index leaves its extent if `guards` alone restrict the statement; None if it does not."""
    for expression, sized in zip(access.index, access.array.buffer.extents, strict=True):
        extent = sized.bounds(())[1]
        # As far from the greatest extent as the index is from the present one.
        for index in (expression, expression - sized + extent) if sized.terms else (expression,):
            low, high = index.bounds(leaf.extents)
            if high < extent and (low >= 0 or index is not expression):
                continue
            found = bounds_over_domain(index, leaf.extents, tuple(guards))
            if found is not None and found[1] >= extent and index is not expression:
                return f"an index would run up to {found[1] - extent + 1} beyond the extent {sized.render(str)}"
            if found is not None and index is expression and (found[0] < 0 or found[1] >= extent):
                return f"an index would run from {found[0]} to {found[1]}, and the extent is {extent}"
    return None


_REPEATED = (Mapping.UNROLL, Mapping.PARALLEL, Mapping.VECTOR, Mapping.GRID, Mapping.BLOCK, Mapping.WARP)
"""Mappings that the scopes around a fill take over from the scopes around the copy."""


@dataclass(frozen=True)
class FillTail(Transformation[Leaf]):
    """Assign a constant to all elements of a tile before a guarded copy that skips some of them.

    `fill_tail@t{value=0}`:

    2                                                     2
    | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]       | 4 t[{1}] = 0
    | s[{0}] = 0                                     -->  | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]
    | 4 where ({0}*4+{1} < 6) s[{0}] += t[{1}]            | s[{0}] = 0
                                                          | 4 where ({0}*4+{1} < 6) s[{0}] += t[{1}]

    The assignment stands in a nest of its own before the copy, with the same scopes and mappings. It has only the
    guards that it needs to stay within the array. No statement uses the filled elements until a `drop_guard`.

    Legal iff no read by another statement, and no output, gets a value of the assignment: the copy overwrites all
    elements that are read. Memory keeps every other value, and no iterations race.
    """

    name: ClassVar[str] = "fill_tail"
    keeps_statements: ClassVar = False
    value: int | str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Guarded copies into temporaries, with the neutral elements of the kernel's accumulations."""
        for leaf in program.nest.leaves:
            is_copy = leaf.function is None and leaf.accumulate is None and bool(leaf.reads)
            if is_copy and leaf.output.array.intent is None and leaf.guards and _needless(leaf):
                yield from ((leaf, cls(value)) for value in _neutral_values(program, leaf.output.array.dtype))

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a constant, and a tile with elements that a guard skips and that no statement reads."""
        dtype = site.output.array.dtype
        try:
            parse_constant(str(self.value), dtype)
        except NotationError as error:
            return Reason(f"'value' is no constant of type {dtype}: {sentence(error)}")
        if site.accumulate is not None:
            return Reason(f"{describe_access(site.output)} is accumulated, not copied")
        if not _needless(site):
            return Reason(f"no guard of the scopes around {describe_access(site.output)} alone leaves out an element")
        after = rewritten(program, self, site)
        return needed(after, self.resolve(after, f"%{self._ids(program, site)[-1]}"))

    def _ids(self, program: Program, site: Leaf) -> list[str]:
        """Identifiers of the new scopes, followed by the statement's."""
        return [fresh_id(program.nest.by_id, f"{node.id}.f") for node in (*_own_scopes(site), site)]

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        own, needless, (*names, name) = _own_scopes(site), _needless(site), self._ids(program, site)
        outside = chain_ops(own[0])
        scopes = [
            ScopeOp(s.extent, mapping=s.mapping if s.mapping in _REPEATED else Mapping.SEQUENTIAL, id=identifier)
            for s, identifier in zip(own, names, strict=True)
        ]
        chain = (*outside, *scopes)
        output = site.output
        value = parse_constant(str(self.value), output.array.dtype)
        nodes = [*scopes, build_op((output.array, output.index), [value], chain, identifier=name)]
        for outer, inner in zip(scopes, nodes[1:], strict=True):
            rewriter.insert(inner, InsertPoint.at_end(outer.body.block))
        rewriter.insert(scopes[0], InsertPoint.before(own[0].op))
        for scope in own:
            kept = [g for g in scope.guard if (scope, g) not in needless]
            set_guard(chain[scope.depth], kept, chain[: scope.depth + 1], rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        return DeleteOp().as_move(f"%{self._ids(program, site)[-1]}")


def _neutral_values(program: Program, dtype: str) -> list[int | str]:
    """0, and the neutral elements of a type's accumulations in the kernel; -0.0 for a sum of floats."""
    found: dict[int | str, None] = {0: None} if dtype != "i1" else {}
    for leaf in program.nest.leaves:
        if leaf.accumulate is not None and accumulates(leaf.accumulate, dtype):
            value = identity_value(leaf.accumulate, dtype)
            text = format_constant(-0.0 if value == 0 and is_float(dtype) else value, dtype)
            found[int(text) if text.lstrip("-").isdigit() else text] = None
    return list(found)


def _violated(constraint: Expr) -> Expr:
    """An expression that is at least 0 iff `constraint` is violated."""
    return -constraint - 1


def _reason(effect: Reason | Numerics) -> Reason | None:
    return effect if isinstance(effect, Reason) else None


def _numerics(effect: Reason | Numerics) -> Numerics:
    return Numerics.EXACT if isinstance(effect, Reason) else effect


def strays(site: Scope, constraint: Expr) -> Reason | None:
    """The reason why a statement would leave an array without the scope's `constraint`; None if none would."""
    for leaf in site.leaves:
        rest = [g for s in leaf.chain for g in s.guard if s is not site or g != constraint]
        for access in leaf.accesses:
            if (how := _beyond(leaf, access, rest)) is not None:
                return Reason(f"the guard keeps {describe_access(access)} within '{access.array.name}'", how)
    return None


@dataclass(frozen=True)
class DropGuard(Transformation[Scope]):
    """Drop a constraint of a scope's guard; `constraint` counts them from 0.

    `drop_guard@s#1:1`:

    2                                                     2
    | 4 t[{1}] = -0.0                                     | 4 t[{1}] = -0.0
    | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]  -->  | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]
    | s[{0}] = 0                                          | s[{0}] = 0
    | 4 where ({0}*4+{1} < 6) s[{0}] += t[{1}]            | 4 s[{0}] += t[{1}]

    Let E be the instances that the constraint excludes. Legal iff all their elements exist and all elements that they
    read are written before; and each instance in E either writes no part of a value that an instance outside E reads or
    that an output has at the end, or accumulates the neutral element of its accumulation, a constant that its inputs
    were assigned. Products are constant only if both factors are: 0 * x may be NaN; for integers it is 0.

    Accumulating -0.0 in floats keeps every bit. Adding 0 turns a sum of -0.0 into 0: this reassociates, as does an
    additional term in a tree of lanes or threads.
    """

    name: ClassVar[str] = "drop_guard"
    keeps_statements: ClassVar = False
    constraint: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """Every constraint of every guard."""
        for scope in program.nest.scopes:
            yield from ((scope, cls(number)) for number in range(len(scope.guard)))

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires that the excluded instances could run, and that running them would change no result."""
        if not site.guard:
            return Reason(f"{describe_scope(site)} has no guard")
        if not 0 <= self.constraint < len(site.guard):
            return Reason(f"'constraint' must be between 0 and {len(site.guard) - 1}")
        constraint = site.guard[self.constraint]
        if (outside := strays(site, constraint)) is not None:
            return outside
        after, violated = rewritten(program, self, site), _violated(constraint)
        scope = self.resolve(after, f"%{site.id}")
        return lacking(after, scope, violated) or _reason(self._effect(program, site))

    def _effect(self, program: Program, site: Scope) -> Reason | Numerics:
        """The reason why the excluded instances change something, or else their effect on rounding."""

        def decide() -> Reason | Numerics:
            after = rewritten(program, self, site)
            return harm(after, self.resolve(after, f"%{site.id}"), _violated(site.guard[self.constraint]))

        return program.memoised((self, site.id), decide)

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """Reassociation if a sum may lose the sign of a zero."""
        return _numerics(self._effect(program, site))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        kept = [g for number, g in enumerate(site.guard) if number != self.constraint]
        set_guard(site.op, kept, (*chain_ops(site), site.op), rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        (text,) = guard_texts((site.guard[self.constraint],))
        return AddGuard(text).as_move(f"%{site.id}")


@dataclass(frozen=True)
class AddGuard(Transformation[Scope]):
    """Add a constraint to a scope's guard, an inequality in the notation.

    `add_guard@s#1:1{where="{0}*4+{1} < 6"}`:

    2                                                     2
    | 4 t[{1}] = -0.0                                     | 4 t[{1}] = -0.0
    | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]  -->  | 4 where ({0}*4+{1} < 6) t[{1}] = x[{0}*4+{1}]
    | s[{0}] = 0                                          | s[{0}] = 0
    | 4 s[{0}] += t[{1}]                                  | 4 where ({0}*4+{1} < 6) s[{0}] += t[{1}]

    Legal iff the constraint does not always hold, some instances still run, and `drop_guard` would lead back.
    """

    name: ClassVar[str] = "add_guard"
    keeps_statements: ClassVar = False
    undoes: ClassVar = True
    where: str

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Scope, Self]]:
        """None, because there are infinitely many; inverses of `drop_guard` name theirs."""
        yield from ()

    def check(self, program: Program, site: Scope) -> Reason | None:
        """Requires a constraint at its canonical place that excludes only instances that change nothing."""
        try:
            found = parse_guard(self.where, [s.extent for s in site.chain], named_around(site))
        except NotationError as error:
            return Reason(f"'where' cannot be read: {sentence(error)}")
        if len(found) > 1:
            return Reason("'where' is one inequality")
        constraint = self._constraint(site)
        if constraint.bounds([s.extent for s in site.chain])[0] >= 0:
            return Reason("the constraint always holds")
        if constraint in site.guard:
            return Reason(f"{describe_scope(site)} has the constraint already")
        if all(any_of(instances_of(leaf, constraint)) is None for leaf in site.leaves):
            return Reason("the constraint excludes everything")
        if (misplaced := self._misplaced(program, site)) is not None:
            return misplaced
        return _reason(self._effect(program, site))

    def _effect(self, program: Program, site: Scope) -> Reason | Numerics:
        """The reason why the excluded instances matter, or else their effect on rounding."""
        return program.memoised((self, site.id), lambda: harm(program, site, _violated(self._constraint(site))))

    def _misplaced(self, program: Program, site: Scope) -> Reason | None:
        """The reason why the canonical form of the constraint is at another place; None if it is not."""
        scope = self.resolve(rewritten(program, self, site), f"%{site.id}")
        if (short := shorter_extent(scope)) is not None:
            return Reason(f"{describe_scope(site)} would have {short} iterations and no such guard: peel_scope")
        owner = owner_of(scope, self._constraint(site))
        return None if owner is scope else Reason(f"the constraint belongs to {describe_scope(owner)}")

    def _constraint(self, site: Scope) -> Expr:
        """The constraint, as an expression that is at least 0, in normal form."""
        extents = [s.extent for s in site.chain]
        return parse_guard(self.where, extents, named_around(site))[0].substitute({}, extents)

    def numerics(self, program: Program, site: Scope) -> Numerics:
        """The class of the corresponding `drop_guard`."""
        return _numerics(self._effect(program, site))

    def rewrite(self, program: Program, site: Scope, rewriter: PatternRewriter) -> None:
        set_guard(site.op, [*site.guard, self._constraint(site)], (*chain_ops(site), site.op), rewriter)

    def inverse(self, program: Program, site: Scope) -> Move:
        after = self.resolve(rewritten(program, self, site), f"%{site.id}")
        return DropGuard(after.guard.index(self._constraint(site))).as_move(f"%{site.id}")
