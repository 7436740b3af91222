"""Index expressions as text for targets with 32-bit variables; parts that may overflow are computed in 64 bits.

Bounds over the extents of the open loops decide. Terms that fit together form a sum of 32 bits; every other term is a
product of 64 bits. An expression that fits has its plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pdojo.dialect.affine import Div, Expr, const, split_remainders, var

MOST = (1 << 31) - 1
"""The greatest 32-bit integer; the least is `-MOST - 1`."""
_WIDE = "(int64_t)"


def is_narrow(expression: Expr, extents: Sequence[int]) -> bool:
    """Whether 32 bits hold an expression's value and all intermediate values, in any order of the sum."""
    rest, remainders = split_remainders(expression)
    low, high = min(0, rest.constant), max(0, rest.constant)
    for atom, factor in rest.terms:
        if isinstance(atom, Div) and not is_narrow(atom.numerator, extents):
            return False
        least, most = Expr(0, ((atom, factor),)).bounds(extents)
        low, high = low + min(0, least), high + max(0, most)
    for numerator, divisor, factor in remainders:
        if not is_narrow(numerator, extents):
            return False
        low, high = low + min(0, factor * (divisor - 1)), high + max(0, factor * (divisor - 1))
    return low >= -MOST - 1 and high <= MOST


def index_text(expression: Expr, extents: Sequence[int], name: Callable[[int], str]) -> str:
    """The text of an index expression; `name` spells the variable of the scope at a depth, whose extent is given.

    >>> index_text(var(0) * 65536 + var(1) * 256 + var(2), [65536, 256, 256], "i{}".format)
    '(int64_t)i0*65536+(i1*256+i2)'
    """
    if is_narrow(expression, extents) or expression.is_constant:
        return expression.render(name, "%", "/")
    inner = const(0)
    outer: list[str] = []
    for term, text in sorted(_terms(expression, extents, name), key=lambda row: _size(row[0], extents)):
        if is_narrow(inner + term, extents):
            inner = inner + term
        else:
            outer.insert(0, text)
    return "+".join([*outer, *[_grouped(inner, extents, name)] * (inner != const(0))])


def _terms(expression: Expr, extents: Sequence[int], name: Callable[[int], str]) -> Iterator[tuple[Expr, str]]:
    """The terms of an expression, each with its text in 64 bits."""
    rest, remainders = split_remainders(expression)
    for atom, factor in rest.terms:
        if isinstance(atom, Div):
            value = f"{_widened(atom.numerator, extents, name)}/{atom.divisor}"
        else:
            value = f"{_WIDE * (extents[atom] <= MOST)}{name(atom)}"
        yield Expr(0, ((atom, factor),)), _times(value, factor)
    for numerator, divisor, factor in remainders:
        quotient = Expr(0, ((Div(numerator, divisor), divisor),))
        value = f"{_widened(numerator, extents, name)}%{divisor}"
        yield (numerator - quotient) * factor, _times(value, factor)
    if rest.constant:
        yield const(rest.constant), f"{_WIDE * (abs(rest.constant) <= MOST)}{rest.constant}"


def _times(value: str, factor: int) -> str:
    return value if factor == 1 else f"{value}*{factor}"


def _widened(numerator: Expr, extents: Sequence[int], name: Callable[[int], str]) -> str:
    """The text of a dividend in 64 bits."""
    cast = _WIDE * (is_narrow(numerator, extents) or numerator.is_constant)
    return cast + _grouped(numerator, extents, name)


def _grouped(expression: Expr, extents: Sequence[int], name: Callable[[int], str]) -> str:
    """The text of an operand; only a single variable needs no parentheses."""
    text = index_text(expression, extents, name)
    return text if any(expression == var(depth) for depth in expression.variables()) else f"({text})"


def _size(term: Expr, extents: Sequence[int]) -> int:
    return max(map(abs, term.bounds(extents)))
