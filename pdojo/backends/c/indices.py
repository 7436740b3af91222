"""Index expressions as text for targets with 32-bit variables; parts that may overflow are computed in 64 bits.

Bounds over the extents of the open loops decide. Terms that fit together form a sum of 32 bits; every other term is a
product of 64 bits. An expression that fits has its plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pdojo.dialect.affine import Atom, Div, Expr, Lookup, Size, const, split_remainders, var

MOST = (1 << 31) - 1
"""The greatest 32-bit integer; the least is `-MOST - 1`."""
_WIDE = "(int64_t)"


def is_narrow(expression: Expr, extents: Sequence[int]) -> bool:
    """Whether 32 bits hold an expression's value and all intermediate values, in any order of the sum."""
    rest, remainders = split_remainders(expression)
    low, high = min(0, rest.constant), max(0, rest.constant)
    for atom, factor in rest.terms:
        if not isinstance(atom, int) and not all(is_narrow(e, extents) for e in atom.operands):
            return False
        least, most = Expr(0, ((atom, factor),)).bounds(extents)
        low, high = low + min(0, least), high + max(0, most)
    for numerator, divisor, factor in remainders:
        if not is_narrow(numerator, extents):
            return False
        low, high = low + min(0, factor * (divisor - 1)), high + max(0, factor * (divisor - 1))
    return low >= -MOST - 1 and high <= MOST


def index_text(
    expression: Expr,
    extents: Sequence[int],
    name: Callable[[int], str],
    entry: Callable[[Lookup | Size, Sequence[str]], str] | None = None,
) -> str:
    """The text of an index expression; `name` spells the variable of the scope at a depth, whose extent is given.

    `entry` spells a lookup at a place of the given text (None: there are no lookups).

    >>> index_text(var(0) * 65536 + var(1) * 256 + var(2), [65536, 256, 256], "i{}".format)
    '(int64_t)i0*65536+(i1*256+i2)'
    """
    return _Writer(extents, name, entry or _no_entry).text(expression)


def _no_entry(atom: Lookup | Size, _place: Sequence[str]) -> str:
    raise ValueError(f"no spelling of {atom} is given")


class _Writer(NamedTuple):
    extents: Sequence[int]
    name: Callable[[int], str]
    entry: Callable[[Lookup | Size, Sequence[str]], str]

    def text(self, expression: Expr) -> str:
        extents = self.extents
        if is_narrow(expression, extents) or expression.is_constant:
            return expression.render(self.name, "%", "/", self.entry)
        inner = const(0)
        outer: list[str] = []
        for term, text in sorted(self._terms(expression), key=lambda row: max(map(abs, row[0].bounds(extents)))):
            if is_narrow(inner + term, extents):
                inner = inner + term
            else:
                outer.insert(0, text)
        return "+".join([*outer, *[self._grouped(inner)] * (inner != const(0))])

    def _terms(self, expression: Expr) -> Iterator[tuple[Expr, str]]:
        """The terms of an expression, each with its text in 64 bits."""
        rest, remainders = split_remainders(expression)
        for atom, factor in rest.terms:
            yield Expr(0, ((atom, factor),)), _times(self._atom(atom), factor)
        for numerator, divisor, factor in remainders:
            quotient = Expr(0, ((Div(numerator, divisor), divisor),))
            yield (numerator - quotient) * factor, _times(f"{self._widened(numerator)}%{divisor}", factor)
        if rest.constant:
            yield const(rest.constant), f"{_WIDE * (abs(rest.constant) <= MOST)}{rest.constant}"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Div):
            return f"{self._widened(atom.numerator)}/{atom.divisor}"
        if isinstance(atom, Lookup):
            return _WIDE + self.entry(atom, [self.text(e) for e in atom.operands])
        if isinstance(atom, Size):
            return self.entry(atom, ()) + f"/{atom.step}" * (atom.step > 1)
        return f"{_WIDE * (self.extents[atom] <= MOST)}{self.name(atom)}"

    def _widened(self, numerator: Expr) -> str:
        """The text of a dividend in 64 bits."""
        cast = _WIDE * (is_narrow(numerator, self.extents) or numerator.is_constant)
        return cast + self._grouped(numerator)

    def _grouped(self, expression: Expr) -> str:
        """The text of an operand; only a single variable needs no parentheses."""
        text = self.text(expression)
        return text if any(expression == var(depth) for depth in expression.variables()) else f"({text})"


def _times(value: str, factor: int) -> str:
    return value if factor == 1 else f"{value}*{factor}"
