"""Enclosures of expressions over boxes with guards, without integer sets."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import Atom, Div, Expr, Extents, linear


def guarded_bounds(expression: Expr, extents: Extents, guards: Sequence[Expr], low: int, high: int) -> tuple[int, int]:
    """Bounds of an expression where guards hold (an enclosure); one that is at least `low`, or at most `high`, stays.

    Sound for all sizes.
    """
    least, most = enclosed(expression, extents)
    for guard in guards:
        # guard >= 0, so that expression - k * guard <= expression <= expression + k * guard.
        if least < low:
            least = max(least, *(enclosed(expression - guard * k, extents)[0] for k in _multiples(expression, guard)))
        if most > high:
            most = min(most, *(enclosed(expression + guard * k, extents)[1] for k in _multiples(-expression, guard)))
    return least, most


def _multiples(expression: Expr, guard: Expr) -> set[int]:
    """Positive multiples of a guard: itself, and those whose difference to the expression has an atom less."""
    factors = dict(expression.terms)
    common = ((factors[atom], factor) for atom, factor in guard.terms if atom in factors)
    return {1, *(mine // other for mine, other in common if mine % other == 0 and mine // other > 0)}


def enclosed(expression: Expr, extents: Extents) -> tuple[int, int]:
    """Least and greatest value over a box (an enclosure); narrower than `bounds` for several quotients of a number."""
    return _nested(expression).bounds(extents)


def _nested(expression: Expr) -> Expr:
    """The expression with `(n // 16) // 2` for a `n // 32` beside a `n // 16`, so that remainders show."""
    quotients = [atom for atom, _ in expression.terms if isinstance(atom, Div)]
    if len(quotients) < 2:
        return expression
    finer: dict[Atom, Atom] = {
        atom: Div(Expr(0, ((other, 1),)), atom.divisor // other.divisor)
        for atom in quotients
        for other in quotients
        if atom.numerator == other.numerator and other.divisor < atom.divisor and atom.divisor % other.divisor == 0
    }
    return linear(expression.constant, ((finer.get(a, a), c) for a, c in expression.terms)) if finer else expression
