"""Minimax polynomials and denominators by Remez' exchange on a grid, with rounded coefficients (needs mpmath)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PRECISION = 200
"""Bits that fits are computed with."""
_TURNS = 8
"""Fits of a quotient, each weighted by the denominator before."""


@dataclass(frozen=True)
class Fit:
    """A polynomial in x next to `function` on `low..high`: the greatest `weight * |error|` is as small as can be."""

    function: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: Any
    high: Any
    fixed: tuple[float, ...] = ()
    """Coefficients that are given, the constant term first."""
    mantissa: int = 53
    """Bits that coefficients are rounded to: 24 for f32."""


def rounded_minimax(fit: Fit, degree: int, mp: Any) -> list[float]:
    """The coefficients, constant term first; each is rounded before those above it are fitted to what is left."""
    xs = _chebyshev_grid(fit.low, fit.high, 24 * (degree + 2), mp)
    weights = [fit.weight(x) for x in xs]
    rest = [fit.function(x) for x in xs]
    done: list[Any] = []
    while len(done) <= degree:
        power = len(done)
        if power < len(fit.fixed):
            coefficient = mp.mpf(fit.fixed[power])
        else:
            table = [[x**p for p in range(power, degree + 1)] for x in xs]
            coefficient = round_to(_minimax(table, rest, weights, mp)[0], fit.mantissa, mp)
        rest = [y - coefficient * x**power for x, y in zip(xs, rest, strict=True)]
        done.append(coefficient)
    return [float(c) for c in done]


def rounded_denominator(fit: Fit, numerator: int, denominator: int, mp: Any) -> list[float]:
    """The denominator, constant term first, of the quotient of two polynomials of these degrees next to a function.

    Its first coefficient is the fixed one; the numerator can be fitted once the others are rounded.
    """
    xs = _chebyshev_grid(fit.low, fit.high, 24 * (numerator + denominator + 3), mp)
    ys, weights = [fit.function(x) for x in xs], [fit.weight(x) for x in xs]
    # numerator - y * (denominator - 1) = y is linear in the coefficients; its error is divided by the last denominator.
    table = [
        [*(x**p for p in range(numerator + 1)), *(-y * x**p for p in range(1, denominator + 1))]
        for x, y in zip(xs, ys, strict=True)
    ]
    found: list[Any] = [mp.mpf(0)] * denominator
    for _ in range(_TURNS):
        below = [1 + sum(c * x ** (p + 1) for p, c in enumerate(found)) for x in xs]
        scaled = [w / b for w, b in zip(weights, below, strict=True)]
        found = _minimax(table, ys, scaled, mp)[numerator + 1 :]
    first = mp.mpf(fit.fixed[0])
    return [float(round_to(first * c, fit.mantissa, mp)) for c in (1, *found)]


def round_to(number: Any, mantissa: int, mp: Any) -> Any:
    """The nearest number with `mantissa` significant bits."""
    fraction, exponent = mp.frexp(number)
    return mp.ldexp(mp.nint(mp.ldexp(fraction, mantissa)), int(exponent) - mantissa)


def _chebyshev_grid(low: Any, high: Any, count: int, mp: Any) -> list[Any]:
    low, high = mp.mpf(low), mp.mpf(high)
    return [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def _minimax(table: list[list[Any]], ys: list[Any], weights: list[Any], mp: Any) -> list[Any]:
    """Coefficients of the table's columns, by Remez' exchange on its rows."""
    count = len(table[0])
    reference = [round(i * (len(table) - 1) / count) for i in range(count + 1)]
    coefficients: list[Any] = []
    # On a grid the last exchanges may go round in a circle, without a difference that counts.
    for _ in range(40):
        matrix, right = mp.matrix(count + 1, count + 1), mp.matrix(count + 1, 1)
        for i, j in enumerate(reference):
            for k in range(count):
                matrix[i, k] = table[j][k] * weights[j]
            matrix[i, count] = (-1) ** i
            right[i] = ys[j] * weights[j]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[k] for k in range(count)]
        errors = [
            w * (y - sum(c * t for c, t in zip(coefficients, row, strict=True)))
            for w, y, row in zip(weights, ys, table, strict=True)
        ]
        extrema = _alternating_extrema(errors, count + 1)
        settled = max(abs(e) for e in errors) < abs(solution[count]) * mp.mpf("1.0001")
        if len(extrema) <= count or extrema == reference or settled:
            break
        reference = extrema
    return coefficients


def _alternating_extrema(errors: list[Any], count: int) -> list[int]:
    """Where the greatest errors of alternating sign are; the least of them are dropped until `count` are left."""
    groups: list[list[int]] = []
    for j, error in enumerate(errors):
        if groups and (error > 0) == (errors[groups[-1][0]] > 0):
            groups[-1].append(j)
        else:
            groups.append([j])
    extrema = [max(group, key=lambda j: abs(errors[j])) for group in groups]
    while len(extrema) > count:
        sizes = [abs(errors[j]) for j in extrema]
        least = sizes.index(min(sizes))
        if len(extrema) == count + 1:
            del extrema[0 if sizes[0] < sizes[-1] else -1]
        elif least in (0, len(extrema) - 1):
            del extrema[least]
        else:
            # Two neighbours go, so that signs still alternate.
            neighbour = least + 1 if sizes[least + 1] < sizes[least - 1] else least - 1
            for at in sorted((least, neighbour), reverse=True):
                del extrema[at]
    return extrema
