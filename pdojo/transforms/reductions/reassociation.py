"""Reassociation: two sums of three numbers add them in another order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, NamedTuple, Self

from pdojo.transforms.api import (
    Access,
    Input,
    Leaf,
    Move,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Transformation,
    accesses_of,
    build_op,
    chain_ops,
)

_SIGNS = {"arith.addf": (1, 1), "arith.subf": (1, -1)}
"""The signs of the operands."""


class _Sum(NamedTuple):
    """A sum or difference."""

    function: str
    operands: tuple[Input, Input]


class _Term(NamedTuple):
    """A number with its sign in the whole sum."""

    value: Input
    sign: int


@dataclass(frozen=True)
class Reassociate(Transformation[Leaf]):
    """Exchange a term of a sum with the other term of the sum that uses it.

    `reassociate@z{term=0}`:

    N                                   N
    | t[{0}] = x[{0}] - y[{0}]          | t[{0}] = w[{0}] - y[{0}]
    | z[{0}] = w[{0}] + t[{0}]     -->  | z[{0}] = x[{0}] + t[{0}]

    A chain of sums gets shorter if the term that is known last is added last. `term` is the operand of the first sum
    that moves to the second one. Signs decide which of the two are differences. `first=1` exchanges the operands of the
    new first sum; a difference is subtracted then. `second=1` exchanges those of a second sum that adds. Legal if the
    first sum directly precedes and the second one is its only reader.
    """

    name: ClassVar[str] = "reassociate"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    term: int = 0
    first: int = 0
    second: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Sums and differences after another one."""
        for leaf in program.nest.leaves:
            if _is_sum(leaf) and _is_sum(program.nest.previous_sibling(leaf)):
                yield from ((leaf, cls(term)) for term in (0, 1))

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires two sums in turn, of which only the second one reads the first one."""
        if not _is_sum(site):
            return Reason("the op is no floating-point sum or difference")
        if {self.term, self.first, self.second} - {0, 1}:
            return Reason("'term', 'first' and 'second' are 0 or 1")
        before = program.nest.previous_sibling(site)
        if not isinstance(before, Leaf) or not _is_sum(before):
            return Reason("no sum or difference precedes immediately")
        inner = before.output
        if [access.key for access in site.reads].count(inner.key) != 1:
            return Reason("the sum before does not write one of the op's operands")
        if inner.array.intent is not None or len(accesses_of(program.nest, inner.array.buffer)) != 2:
            return Reason(f"'{inner.array.name}' is used elsewhere; the first sum needs a single reader")
        found = self._sums(before, site)
        if found is None:
            return Reason("the second sum would have no positive operand; leave out 'first'")
        if self.second and found[1].function != "arith.addf":
            return Reason("the operands of the second difference cannot be exchanged")
        return None

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """Sums in another order."""
        return Numerics.REASSOCIATES

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        before = program.nest.previous_sibling(site)
        assert isinstance(before, Leaf)
        found = self._sums(before, site)
        assert found is not None
        for leaf, total in zip((before, site), found, strict=True):
            hints = [leaf.output.hints, *(i.hints for i in total.operands if isinstance(i, Access))]
            output = (leaf.output.array, leaf.output.index)
            made = build_op(
                output, total.operands, chain_ops(leaf), function=total.function, hints=hints, identifier=leaf.id
            )
            rewriter.replace(leaf.op, made)

    def inverse(self, program: Program, site: Leaf) -> Move:
        before = program.nest.previous_sibling(site)
        assert isinstance(before, Leaf)
        place = _place(before, site)
        found = self._sums(before, site)
        assert found is not None
        first, second = found
        term = next(k for k, value in enumerate(first.operands) if value is site.inputs[1 - place])
        moves = [Reassociate(term, *exchanged) for exchanged in product((0, 1), repeat=2)]
        original, place = (_sum_of(before), _sum_of(site)), _position(before, second)
        back = next(move for move in moves if _regrouped(first, second, place, move) == original)
        return back.as_move(f"%{site.id}")

    def _sums(self, before: Leaf, site: Leaf) -> tuple[_Sum, _Sum] | None:
        """Both sums after the move; None if the second one would have no positive operand."""
        return _regrouped(_sum_of(before), _sum_of(site), _place(before, site), self)


def _is_sum(leaf: object) -> bool:
    return isinstance(leaf, Leaf) and leaf.accumulate is None and leaf.function in _SIGNS


def _sum_of(leaf: Leaf) -> _Sum:
    one, other = leaf.inputs
    assert leaf.function is not None
    return _Sum(leaf.function, (one, other))


def _place(before: Leaf, site: Leaf) -> int:
    """The operand of a sum that is the result of the statement before."""
    return _position(before, _sum_of(site))


def _position(before: Leaf, total: _Sum) -> int:
    key = before.output.key
    return next(k for k, value in enumerate(total.operands) if isinstance(value, Access) and value.key == key)


def _regrouped(inner: _Sum, outer: _Sum, place: int, move: Reassociate) -> tuple[_Sum, _Sum] | None:
    """The sums after a move, None if there are none; the operand `place` of the outer one is the inner one."""
    signs = _SIGNS[outer.function]
    inner_signs = [signs[place] * sign for sign in _SIGNS[inner.function]]
    moved = _Term(inner.operands[move.term], inner_signs[move.term])
    terms = [_Term(value, sign) for value, sign in zip(inner.operands, inner_signs, strict=True)]
    terms[move.term] = _Term(outer.operands[1 - place], signs[1 - place])
    one, other = terms
    is_negative = one.sign + other.sign < 0 or (one.sign != other.sign and move.first == 1)
    if is_negative:
        terms = [_Term(term.value, -term.sign) for term in terms]
    results = [moved, moved]
    results[place] = _Term(outer.operands[place], -1 if is_negative else 1)
    first, second = _joined(terms, move.first), _joined(results, move.second)
    return None if first is None or second is None else (first, second)


def _joined(terms: list[_Term], exchanged: int) -> _Sum | None:
    """The sum of two terms, the operands of an addition in their order or exchanged; None if it needs more."""
    one, other = terms
    if one.sign != other.sign:
        positive, negative = (one, other) if one.sign > 0 else (other, one)
        return _Sum("arith.subf", (positive.value, negative.value))
    if one.sign < 0:
        return None
    return _Sum("arith.addf", (other.value, one.value) if exchanged else (one.value, other.value))
