"""The lookups and sizes in expressions; lookups along the lanes of a vector, and in tables of other names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from pdojo.dialect.affine import Expr, Extents, IndexArray, Lookup, Size, atom_variables, const, lookup, var
from pdojo.dialect.table import Table

MOST_PLACES = 1 << 14
"""Most places of a lookup that are compared."""


def along(expression: Expr, depth: int, extents: Extents) -> Expr:
    """An equal expression in which the variable at `depth` stands outside of lookups, if their entries step evenly.

    With entries 8, 9, 2, 3 and `j < 2`, `t[2 * i + j]` is `t[2 * i] + j`.
    """
    if not any(isinstance(atom, Lookup) for atom, _ in expression.terms):
        return expression
    total = const(expression.constant)
    for atom, factor in expression.terms:
        part = Expr(0, ((atom, 1),))
        if isinstance(atom, Lookup) and isinstance(atom.table, Table) and depth in atom_variables(atom):
            step = _step(atom, depth, tuple(extents))
            if step is not None:
                part = part.substitute({depth: const(0)}, extents) + var(depth) * step
        total = total + part * factor
    return total


@lru_cache(maxsize=1 << 12)
def _step(atom: Lookup, depth: int, extents: tuple[int, ...]) -> int | None:
    """The distance of entries from each iteration of a scope to the next; None if it differs."""
    used = sorted(atom_variables(atom))
    if prod(extents[d] for d in used) > MOST_PLACES:
        return None
    steps, part = set[int](), Expr(0, ((atom, 1),))
    values = [0] * len(extents)
    for iteration in product(*(range(extents[d] - (d == depth)) for d in used)):
        for d, value in zip(used, iteration, strict=True):
            values[d] = value
        here = part.evaluate(values)
        values[depth] += 1
        steps.add(part.evaluate(values) - here)
        if len(steps) > 1:
            return None
    return steps.pop() if steps else 0


def with_tables(expression: Expr, tables: Mapping[Table | IndexArray, Table | IndexArray], extents: Extents) -> Expr:
    """The expression with lookups in other tables or arrays of indices; those that are not in `tables` stay."""
    return replaced(expression, lambda atom, place: lookup(tables.get(atom.table, atom.table), place, extents), extents)


def replaced(expression: Expr, other: Callable[[Lookup, Sequence[Expr]], Expr], extents: Extents) -> Expr:
    """The expression with another one for each lookup, which is given with its new place."""
    if not lookups_in([expression]):
        return expression
    total = const(expression.constant)
    for atom, factor in expression.terms:
        if isinstance(atom, int):
            part = var(atom)
        else:
            place = [replaced(operand, other, extents) for operand in atom.operands]
            part = other(atom, place) if isinstance(atom, Lookup) else atom.with_operands(place, extents)
        total = total + part * factor
    return total


def lookups_in(expressions: Iterable[Expr]) -> list[Lookup]:
    """The lookups in expressions, each once, after the lookups inside it."""
    found: dict[Lookup, None] = {}
    for expression in expressions:
        for atom, _ in expression.terms:
            if not isinstance(atom, int):
                found.update(dict.fromkeys(lookups_in(atom.operands)))
            if isinstance(atom, Lookup):
                found[atom] = None
    return list(found)


def unknown_places(index: Iterable[Expr]) -> bool:
    """Whether iterations choose an entry in an index, so that a write there is certain at no place."""
    return any(isinstance(found.table, IndexArray) and atom_variables(found) for found in lookups_in(index))


def sizes_in(expressions: Iterable[Expr]) -> list[Size]:
    """The sizes in expressions, each once, in the order of their keys."""
    found: set[Size] = set()
    parts = list(expressions)
    while parts:
        for atom, _ in parts.pop().terms:
            if isinstance(atom, Size):
                found.add(atom)
            elif not isinstance(atom, int):
                parts += atom.operands
    return sorted(found, key=lambda size: size.key)
