"""Inversion of index expressions: the iteration of a statement that computes a given element, digit by digit.

A solution is a guess, which `origins.py` has to prove; it is exact if the equations have a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pdojo.dialect.affine import Atom, Expr, const, floordiv

Equation: TypeAlias = tuple[Expr, Expr]
"""An expression over the unknown iteration, and its value as an expression over the given iteration."""


def solve(equations: Sequence[Equation], extents: Sequence[int], given: Sequence[int]) -> dict[int, Expr]:
    """The variables that the equations determine, keyed by depth, as expressions over the given iteration.

    `extents` are the extents around the wanted iteration, `given` those around the given one. In `c1 * a1 + c2 * a2 =
    e` with |c1| greater than the largest |c2| * a2, a1 and a2 are the digits of e.
    """
    known: dict[Atom, Expr] = {}
    pending = list(equations)
    progress = True
    while progress:
        progress = False
        for equation in tuple(pending):
            rest = equation[1] - equation[0].constant
            unknown: list[tuple[Atom, int]] = []
            for atom, coefficient in equation[0].terms:
                if atom in known:
                    rest = rest - known[atom] * coefficient
                else:
                    unknown.append((atom, coefficient))
            digits = _digits(unknown, rest, extents, given)
            if digits is not None:
                known.update(digits)
                pending.remove(equation)
                progress = True
    return {atom: value for atom, value in known.items() if isinstance(atom, int)}


def _digits(
    unknown: Sequence[tuple[Atom, int]], value: Expr, extents: Sequence[int], given: Sequence[int]
) -> dict[Atom, Expr] | None:
    """The atoms of `sum(c * a) = value`; None if they are not its digits."""
    rows: list[tuple[int, int, int, Atom]] = []  # magnitude, sign, first value and span of the digit
    spans: dict[Atom, int] = {}
    for atom, coefficient in unknown:
        low, high = _range(atom, extents)
        rows.append((abs(coefficient), coefficient, low if coefficient > 0 else high, atom))
        spans[atom] = high - low
        value = value - coefficient * (low if coefficient > 0 else high)
    rows.sort(key=lambda row: -row[0])
    found: dict[Atom, Expr] = {}
    for position, (magnitude, coefficient, start, atom) in enumerate(rows):
        if sum(m * spans[a] for m, _, _, a in rows[position + 1 :]) >= magnitude:
            return None
        digit = floordiv(value, magnitude, given) if spans[atom] else const(0)
        value = value - digit * magnitude
        found[atom] = digit + start if coefficient > 0 else const(start) - digit
    return found


def _range(atom: Atom, extents: Sequence[int]) -> tuple[int, int]:
    if isinstance(atom, int):
        return 0, extents[atom] - 1
    return atom.bounds(extents)
