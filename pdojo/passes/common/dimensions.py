"""Dimensions of arrays that the same loops index."""

from __future__ import annotations

from typing import TypeAlias

from pdojo.dialect.affine import Expr
from pdojo.dialect.view.nest import Leaf
from pdojo.passes.common.builder import PassBuilder

Dimension: TypeAlias = tuple[str, int]
"""An array's name, and the number of one of its dimensions."""


def spread(builder: PassBuilder, dimension: Dimension) -> set[Dimension]:
    """The dimensions of all arrays that are indexed by the same loops, directly or through a common array."""
    found = {dimension}
    size = 0
    while size != len(found):
        size = len(found)
        for leaf in builder.nest.leaves:
            indexed = indices(leaf)
            loops = {depth for place, depth in indexed if place in found}
            found |= {place for place, depth in indexed if depth in loops}
    return found


def indices(leaf: Leaf) -> list[tuple[Dimension, int]]:
    """The dimensions whose index is one loop variable, and the depth of that loop."""
    variables = (((a.array.name, d), loop_variable(e)) for a in leaf.accesses for d, e in enumerate(a.index))
    return [(place, depth) for place, depth in variables if depth is not None]


def indexed_by(leaf: Leaf, depth: int) -> list[Dimension]:
    """The dimensions that the loop at `depth` around a statement indexes, also together with other loops."""
    return [(a.array.name, d) for a in leaf.accesses for d, e in enumerate(a.index) if e.uses(depth)]


def loop_variable(expression: Expr) -> int | None:
    """The depth of the loop whose variable the index is; None for other indices."""
    match expression:
        case Expr(0, ((int() as depth, 1),)):
            return depth
        case _:
            return None
