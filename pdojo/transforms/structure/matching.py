"""Whether two neighbouring scopes are the first and the last iterations of one scope, and of which scope.

The whole scope, restricted to the first iterations, must be exactly the first scope; restricted to the others, counted
from 0, exactly the second. So a `Match` is a proof: each guess is restricted both ways and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import gcd
from typing import TypeAlias

from pdojo.transforms.api import (
    Access,
    Attribute,
    Constant,
    Expr,
    Index,
    Input,
    Leaf,
    Node,
    Operation,
    Scope,
    bound_of,
    const,
    floordiv,
    lookups_in,
    simplified,
    var,
)

_Parts: TypeAlias = tuple[Expr, Expr, Expr]
"""An index over the whole scope, in its first part, and in its second part."""


@dataclass(frozen=True)
class Cut:
    """Iterations `[0, at)` and `[at, total)` of a scope at `depth`, where 0 <= at <= total for all sizes."""

    depth: int
    at: Expr
    total: Expr
    multiple: int = 0
    """`at` is the greatest multiple of it within `total`, which depends on sizes; 0 if `at` is constant."""

    @classmethod
    def at_multiple(cls, depth: int, total: Expr, multiple: int) -> Cut:
        """The cut after the last whole tile of a scope whose extent depends on sizes."""
        return cls(depth, floordiv(total, multiple, ()) * multiple, total, multiple)

    @property
    def whole(self) -> int:
        """The greatest extent of the whole scope."""
        return self.total.bounds(())[1]

    @cached_property
    def greatest(self) -> tuple[int, int]:
        """The greatest extents of both parts."""
        second = (self.total - self.at).bounds(())[1]
        if self.multiple:
            return self.whole // self.multiple * self.multiple, min(second, self.multiple - 1)
        return self.at.bounds(())[1], second

    def ends(self) -> tuple[Expr, Expr, Expr]:
        """The constraints by which the first part, the second part and the whole scope end at sizes.

        They always hold if the cut is at a constant.
        """
        first, second = self.greatest
        before = (1,) * self.depth
        counts = ((self.at, first), (self.total - self.at, second), (self.total, self.whole))
        one, two, both = [
            simplified(count - 1 - (var(self.depth) if most > 1 else 0), (*before, most)) for count, most in counts
        ]
        return one, two, both

    def extents(self, whole: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents of a chain through the first and through the second scope, from those through the whole scope."""
        before, after = tuple(whole[: self.depth]), tuple(whole[self.depth + 1 :])
        first, second = self.greatest
        return (*before, first, *after), (*before, second, *after)

    def restrict(self, expression: Expr, whole: Sequence[int]) -> tuple[Expr, Expr]:
        """The restrictions of an expression over the whole scope to the first and to the second part."""
        first, second = self.extents(whole)
        return expression.substitute({}, first), expression.substitute({self.depth: var(self.depth) + self.at}, second)

    def restrict_guard(self, guard: Iterable[Expr], whole: Sequence[int]) -> tuple[list[Expr], list[Expr]]:
        """A guard in the two parts, sorted, without constraints that always hold there."""
        parts: tuple[set[Expr], set[Expr]] = (set(), set())
        for expression in guard:
            pairs = zip(parts, self.restrict(expression, whole), self.extents(whole), strict=True)
            for part, restricted, extents in pairs:
                if restricted.bounds(extents)[0] < 0:
                    part.add(restricted)
        first, second = (sorted(part, key=lambda g: g.key) for part in parts)
        return first, second

    def dead(self, guard: Iterable[Expr], whole: Sequence[int]) -> tuple[bool, bool]:
        """Whether a guard never holds in the first part, and in the second."""
        first = second = False
        extents = self.extents(whole)
        for expression in guard:
            if not expression.uses(self.depth):
                if expression.bounds(whole)[1] < 0:
                    return True, True
                continue
            one, other = self.restrict(expression, whole)
            first, second = first or one.bounds(extents[0])[1] < 0, second or other.bounds(extents[1])[1] < 0
        return first, second

    def unite(self, first: Expr, second: Expr, whole: Sequence[int]) -> Expr | None:
        """The expression over the whole scope that restricts to `first` and `second`; None if none was found."""
        for guess in self._guesses(first, second, whole):
            if self.restrict(guess, whole) == (first, second):
                return guess
        return None

    def _guesses(self, first: Expr, second: Expr, whole: Sequence[int]) -> Iterator[Expr]:
        least, most = self.greatest
        if least > 1:
            yield first.substitute({}, whole)
        if most > 1:
            yield self.back(second, whole)
        if (step := second - first).is_constant:
            yield (first + var(self.depth) * step.constant).substitute({}, whole)

    def back(self, second: Expr, whole: Sequence[int]) -> Expr:
        """An expression of the second part, counted from the first iteration of the whole scope."""
        return second.substitute({self.depth: var(self.depth) - self.at}, whole)

    def unite_guards(
        self, first: Sequence[Expr], second: Sequence[Expr], whole: Sequence[int], indices: Sequence[_Parts] = ()
    ) -> list[Expr] | None:
        """The guard over the whole scope that restricts to `first` and `second`; None if none was found.

        A part of one iteration does not show how a constraint changes from one to the next. Perhaps it bounds one of
        `indices`.
        """
        later = [self.back(g, whole) for g in second]
        guesses = [[*first], later, [*first, *later]]
        pairs = zip(first, second, strict=False) if len(first) == len(second) else ()
        guesses.append([both for pair in pairs if (both := self.unite(*pair, whole)) is not None])
        guesses.append([_bounded(g, ((index[0], index[1]) for index in indices)) or g for g in first])
        guesses.append([_bounded(g, ((index[0], index[2]) for index in indices)) or g for g in second])
        for guess in guesses:
            plain = {g.substitute({}, whole) for g in guess}
            if self.restrict_guard(plain, whole) == ([*first], [*second]):
                return sorted(plain, key=lambda g: g.key)
        return None

    def only(self, guard: Sequence[Expr], whole: Sequence[int], *, second: bool) -> list[Expr]:
        """The guard over the whole scope of a node that occurs in one part only."""
        own = [self.back(g, whole) if second else g.substitute({}, whole) for g in guard]
        bound = var(self.depth) - self.at if second else self.at - 1 - var(self.depth)
        return own if self.dead(own, whole)[0 if second else 1] else [*own, bound]


def _bounded(constraint: Expr, indices: Iterable[tuple[Expr, Expr]]) -> Expr | None:
    """The constraint on the whole scope that bounds an index and is `constraint` in a part; None if none is.

    Each index is given over the whole scope and over the part.
    """
    for whole, part in indices:
        for sign in (1, -1):
            if not part.is_constant and (rest := constraint - part * sign).is_constant:
                return whole * sign + rest.constant
    return None


@dataclass(eq=False)
class Match:
    """A node of the whole scope that occurs in both parts, or in one of them only."""

    first: Node | None
    second: Node | None
    guard: list[Expr] = field(default_factory=list[Expr])
    """Guard of a scope, over the whole scope."""
    output: tuple[Expr, ...] = ()
    inputs: tuple[Input, ...] = ()
    """Inputs of the node if it is a statement, which is in both parts; indices are over the whole scope."""
    children: list[Match] = field(default_factory=list["Match"])
    """Children of a scope in both parts."""

    @property
    def node(self) -> Node:
        """The node of the first part, or else of the second."""
        node = self.first or self.second
        assert node is not None
        return node


def match_scopes(first: Scope, second: Scope) -> tuple[Match, Cut] | None:
    """The whole scope of two neighbours, and where it is cut; None if they are not its parts."""
    outside = [s.extent for s in first.chain[:-1]]
    for cut in _cuts(first, second):
        if first.extent < cut.greatest[0] or second.extent < cut.greatest[1]:
            continue  # A part ends before its guard says so.
        one, two, both = cut.ends()
        guards = [g for g in first.guard if g != one], [g for g in second.guard if g != two]
        found = _Matcher(cut).scopes(first, second, [*outside, cut.whole], guards)
        if found is not None:
            return replace(found, guard=[*found.guard, both]), cut
    return None


def _cuts(first: Scope, second: Scope) -> Iterator[Cut]:
    """The places where a whole scope may be cut: a constant, and the ends of whole tiles of extents of sizes."""
    yield Cut(first.depth, const(first.extent), const(first.extent + second.extent))
    for at, rest in product(_ends(first), _ends(second)):
        multiple = gcd(at.constant, *(factor for _, factor in at.terms))
        cut = Cut(first.depth, at, at + rest, multiple)
        # Whole tiles of no fewer than 0 iterations, so the cut is within them.
        if multiple > 1 and cut.total.bounds(())[0] >= 0 and cut == Cut.at_multiple(first.depth, cut.total, multiple):
            yield cut


def _ends(scope: Scope) -> Iterator[Expr]:
    """The possible numbers of iterations, as expressions of sizes, by the scope's guard; `Cut.ends` is the reverse."""
    for constraint in scope.guard:
        if not (constraint.variables() or lookups_in([constraint])):
            yield (constraint + 1) * scope.extent
        elif (end := bound_of(constraint, scope.depth)) is not None:
            yield end


@dataclass(frozen=True)
class _Matcher:
    cut: Cut

    def scopes(
        self, first: Scope, second: Scope, whole: list[int], guards: tuple[Sequence[Expr], Sequence[Expr]]
    ) -> Match | None:
        """Match two scopes with `guards` as parts of one; `whole` are the extents down to the whole scope."""
        guard = self.cut.unite_guards(*guards, whole, [*self._indices(first, second)] if any(guards) else ())
        if guard is None or any(self.cut.dead(guard, whole)):
            return None
        children = self._children(first.children, second.children, whole)
        return None if children is None else Match(first, second, guard, children=children)

    def _indices(self, first: Scope, second: Scope) -> Iterator[_Parts]:
        """The linear indices of statements inside that write the same array."""
        for mine in first.leaves:
            for other in second.leaves:
                if mine.output.array is not other.output.array or len(mine.chain) != len(other.chain):
                    continue
                whole = [*mine.extents[: self.cut.depth], self.cut.whole, *mine.extents[self.cut.depth + 1 :]]
                for one, two in zip(mine.accesses, other.accesses, strict=False):
                    if one.array is two.array:
                        for a, b in zip(one.index, two.index, strict=True):
                            united = self.cut.unite(a, b, whole)
                            if united is not None and united.is_linear:
                                yield united, a, b

    def _children(self, first: Sequence[Node], second: Sequence[Node], whole: list[int]) -> list[Match] | None:
        found: list[Match] = []
        rest = list(second)
        for mine in first:
            skipped, both = self._partner(mine, rest, whole)
            if both is None:
                skipped, both = 0, self._alone(mine, whole, second=False)
            else:
                found += [m for node in rest[:skipped] if (m := self._alone(node, whole, second=True)) is not None]
                skipped += 1
            if both is None:
                return None
            found.append(both)
            del rest[:skipped]
        found += [m for node in rest if (m := self._alone(node, whole, second=True)) is not None]
        # Two scopes without common statements are not parts of one.
        common = any(m.first is not None and m.second is not None for m in found)
        in_second = sum(m.second is not None for m in found)
        return found if common and in_second == len(second) else None

    def _partner(self, mine: Node, rest: Sequence[Node], whole: list[int]) -> tuple[int, Match | None]:
        """The index in `rest` of the first node that may equal `mine`, and the match; 0 and None if none does."""
        for skipped, other in enumerate(rest):
            both = self._pair(mine, other, whole)
            if both is not None:
                return skipped, both
            if isinstance(other, Leaf):
                break
        return 0, None

    def _pair(self, mine: Node, other: Node, whole: list[int]) -> Match | None:
        if isinstance(mine, Leaf) and isinstance(other, Leaf):
            return self._leaves(mine, other, whole)
        if isinstance(mine, Scope) and isinstance(other, Scope):
            same = mine.extent == other.extent and _facts(mine.op, _SCOPE) == _facts(other.op, _SCOPE)
            return self.scopes(mine, other, [*whole, mine.extent], (mine.guard, other.guard)) if same else None
        return None

    def _alone(self, node: Node, whole: list[int], *, second: bool) -> Match | None:
        """The match of a node that occurs in one part only; None if there is none."""
        if isinstance(node, Leaf):
            return None
        extents = [*whole, node.extent]
        guard = self.cut.only(node.guard, extents, second=second)
        here, there = (1, 0) if second else (0, 1)
        dead = self.cut.dead(guard, extents)
        if dead[here] or not dead[there] or self.cut.restrict_guard(guard, extents)[here] != [*node.guard]:
            return None
        return Match(None, node, guard) if second else Match(node, None, guard)

    def _leaves(self, first: Leaf, second: Leaf, whole: list[int]) -> Match | None:
        if _facts(first.op, _LEAF) != _facts(second.op, _LEAF) or len(first.inputs) != len(second.inputs):
            return None
        output = self._access(first.output, second.output, whole)
        inputs = [self._input(a, b, whole) for a, b in zip(first.inputs, second.inputs, strict=True)]
        found = [i for i in inputs if i is not None]
        if output is None or len(found) < len(inputs):
            return None
        return Match(first, second, output=output.index, inputs=tuple(found))

    def _access(self, first: Access, second: Access, whole: list[int]) -> Access | None:
        if first.array is not second.array:
            return None
        index = [self.cut.unite(a, b, whole) for a, b in zip(first.index, second.index, strict=True)]
        found = tuple(e for e in index if e is not None)
        return Access(first.array, found, first.hints) if len(found) == len(index) else None

    def _input(self, first: Input, second: Input, whole: list[int]) -> Input | None:
        match first, second:
            case Access(), Access():
                return self._access(first, second, whole)
            case Index(), Index() if first.dtype == second.dtype:
                expression = self.cut.unite(first.expression, second.expression, whole)
                return None if expression is None else Index(expression, first.dtype)
            case Constant(), Constant():
                # Attributes are compared, because they treat nan as equal to nan, and 0.0 as different from -0.0.
                return first if repr(first) == repr(second) else None
            case _:
                return None


_SCOPE = frozenset(("id", "guard", "extent", "sizes", "operandSegmentSizes"))
_LEAF = frozenset(("id", "output_map", "inputs", "lookups", "sizes", "operandSegmentSizes"))


def _facts(op: Operation, other: frozenset[str]) -> dict[str, Attribute]:
    """The attributes of an operation, except its identifier and its index expressions."""
    return {name: value for name, value in op.properties.items() if name not in other}
