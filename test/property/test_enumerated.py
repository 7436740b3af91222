"""Collisions and index arithmetic, over small boxes, are what looking at all iterations says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import eq, gt, lt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.flow.collision import (
    AFTER,
    ANY,
    BEFORE,
    EQUAL,
    Collisions,
    Domain,
    Order,
    Query,
    exact,
    holds,
)
from pdojo.dialect.shortcuts.digits import impossible

COMPARED: dict[Order, Callable[[int, int], bool]] = {EQUAL: eq, BEFORE: lt, AFTER: gt, ANY: lambda _a, _b: True}


@st.composite
def expressions(draw: st.DrawFn, extents: tuple[int, ...], *, divisions: int = 1) -> Expr:
    """A few terms, and perhaps the quotient or remainder of such an expression."""
    found = const(draw(st.integers(-2, 3)))
    for depth in range(len(extents)):
        found += var(depth) * draw(st.sampled_from((0, 0, 1, 1, 1, 2, 3, 4, -1)))
    if divisions and draw(st.booleans()):
        inner, divisor = draw(expressions(extents, divisions=divisions - 1)), draw(st.integers(2, 4))
        divided = draw(st.sampled_from((floordiv, modulo)))
        found = draw(st.sampled_from((const(0), found))) + divided(inner, divisor, extents) * draw(st.integers(1, 2))
    return found


@st.composite
def domains(draw: st.DrawFn, shared: tuple[int, ...]) -> Domain:
    extents = (*shared, *draw(st.lists(st.integers(1, 5), max_size=2 - len(shared))))
    return Domain(extents, tuple(draw(st.lists(expressions(extents), max_size=1))))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Two statements within up to two common scopes; instances in one cell, of different elements perhaps."""
    shared = tuple(draw(st.lists(st.integers(1, 4), max_size=2)))
    first = draw(domains(shared))
    second = first if draw(st.booleans()) else draw(domains(shared))
    relation = tuple(draw(st.sampled_from((EQUAL, BEFORE, AFTER, ANY))) for _ in shared)

    def pairs(most: int) -> tuple[tuple[Expr, Expr], ...]:
        one = draw(st.lists(expressions(first.extents), max_size=most))
        same = first.extents == second.extents and draw(st.booleans())
        return tuple((e, e if same else draw(expressions(second.extents))) for e in one)

    return Query(first, second, pairs(2), relation, pairs(2))


def collides(query: Query) -> bool:
    def instances(domain: Domain) -> list[tuple[int, ...]]:
        return [i for i in product(*map(range, domain.extents)) if all(g.evaluate(i) >= 0 for g in domain.guards)]

    return any(
        all(COMPARED[order](a, b) for order, a, b in zip(query.relation, first, second, strict=False))
        and all(a.evaluate(first) == b.evaluate(second) for a, b in query.equal)
        and (not query.differs or any(a.evaluate(first) != b.evaluate(second) for a, b in query.differs))
        for first, second in product(instances(query.first), instances(query.second))
    )


def check(query: Query) -> None:
    """Each path of the analysis gives the answer."""
    expected = collides(query)
    assert not (expected and impossible(query))
    for found in (Collisions().find(query), exact(query)):
        assert (found is not None) is expected
        assert found is None or holds(query, found)


def box(*extents: int) -> Domain:
    return Domain(extents, ())


def pair(expression: Expr) -> tuple[Expr, Expr]:
    return expression, expression


COLLIDING: dict[str, Query] = {
    "two elements of one cell that differ in one of two dimensions": Query(
        box(2, 2), box(2, 2), (), (EQUAL, BEFORE), (pair(var(0)), pair(var(1)))
    ),
    "elements that differ in one dimension, in iterations far from the first": Query(
        box(4, 8),
        box(4, 8),
        (pair(floordiv(var(1), 4, (4, 8))),),
        (EQUAL, EQUAL),
        (pair(var(0)), (var(1), modulo(var(1), 4, (4, 8)))),
    ),
    "iterations that only the second statement has": Query(box(2), box(8), ((var(0) + 4, var(0)),), (ANY,)),
    "iterations that only the first statement has": Query(box(8), box(2), ((var(0), var(0) + 4),), (ANY,)),
}

APART: dict[str, Query] = {
    "one element": Query(box(2, 2), box(2, 2), (pair(var(0)),), (BEFORE,)),
    "elements of a cell that do not differ": Query(
        box(2, 2), box(2, 2), (pair(var(1)),), (EQUAL, EQUAL), (pair(var(0)), pair(var(1)))
    ),
    "too few iterations of the second statement": Query(box(8), box(4), ((var(0) + 4, var(0)),), (ANY,)),
    "a later iteration of a scope that has one": Query(box(1), box(1), (), (BEFORE,)),
    "slots of consecutive iterations": Query(
        box(9), box(9), ((modulo(var(0) + 1, 2, (9,)), modulo(var(0), 2, (9,))),), (EQUAL,)
    ),
    "quotients and remainders of two elements": Query(
        box(12),
        box(12),
        (pair(floordiv(var(0), 4, (12,))), pair(modulo(var(0), 4, (12,)))),
        (BEFORE,),
    ),
}


@pytest.mark.parametrize("name", COLLIDING)
def test_iterations_that_collide(name: str) -> None:
    assert collides(COLLIDING[name])
    check(COLLIDING[name])


@pytest.mark.parametrize("name", APART)
def test_iterations_that_do_not_collide(name: str) -> None:
    assert not collides(APART[name])
    check(APART[name])


@settings(max_examples=300)
@given(queries())
def test_collisions(query: Query) -> None:
    check(query)


@settings(max_examples=300)
@given(st.data())
def test_index_arithmetic(data: st.DataObject) -> None:
    extents = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)))
    numerator, divisor = data.draw(expressions(extents, divisions=2)), data.draw(st.integers(1, 8))
    quotient, rest = floordiv(numerator, divisor, extents), modulo(numerator, divisor, extents)
    low, high = quotient.bounds(extents)
    for values in product(*map(range, extents)):
        assert quotient.evaluate(values) == numerator.evaluate(values) // divisor
        assert rest.evaluate(values) == numerator.evaluate(values) % divisor
        assert low <= quotient.evaluate(values) <= high
