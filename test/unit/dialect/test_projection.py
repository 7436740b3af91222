"""Conditions on some variables that others meet constraints, by integer sets."""

from __future__ import annotations

from itertools import product
from random import Random

from pdojo.dialect.affine import Expr, const, floordiv, var
from pdojo.dialect.flow.integer_sets import projected


def test_against_all_points_of_small_boxes() -> None:
    random = Random(0)
    for _ in range(60):
        extents = [random.randint(2, 5) for _ in range(4)]
        constraints = [_expression(random, extents) for _ in range(random.randint(1, 3))]
        gone = random.sample(range(4), random.randint(1, 3))
        pieces = projected(extents, constraints, gone)
        met = {
            tuple(0 if d in gone else value for d, value in enumerate(point))
            for point in product(*map(range, extents))
            if all(c.evaluate(point) >= 0 for c in constraints)
        }
        for point in product(*(range(1 if d in gone else extent) for d, extent in enumerate(extents))):
            assert any(all(e.evaluate(point) >= 0 for e in piece) for piece in pieces) == (point in met)


def _expression(random: Random, extents: list[int]) -> Expr:
    """A random expression, some with a division."""
    total = const(random.randint(-6, 12))
    for depth in range(len(extents)):
        total += var(depth) * random.randint(-3, 3)
    if random.random() < 0.4:
        numerator = var(random.randrange(4)) * random.randint(1, 3) + var(random.randrange(4)) + random.randint(0, 3)
        total += floordiv(numerator, random.randint(2, 5), extents) * random.randint(-3, 3)
    return total
