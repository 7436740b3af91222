"""Layouts of temporaries: dimensions in the order in which the caller's arrays have them.

A frontend gives the values of a sum the sum's axes first. The gradient of a bias, sum(f(x, y), 0), then has a temporary
[columns, rows], whose vectors gather from the rows of x and y. With its dimensions swapped, all statements run along
the rows in memory.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Memory
from pdojo.dialect.view.nest import Leaf
from pdojo.dialect.view.nodes import is_plain
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.dimensions import Dimension, indices, loop_variable
from pdojo.passes.common.loops import reorder
from pdojo.passes.cpu.squares import runs_along

WHY = "the order in which the caller's arrays have these dimensions"


def order_dimensions(builder: PassBuilder) -> None:
    """Let temporaries that statements write element by element be contiguous along the caller's arrays."""
    made = True
    while made:
        votes = _votes(builder)
        made = any(builder.transact(lambda n=name: _order(builder, n, votes)) for name in _free(builder))


def _free(builder: PassBuilder) -> list[str]:
    """Temporaries of several dimensions that may have another order."""
    return [
        name
        for name in builder.temporaries()
        if len((array := builder.nest.arrays[name]).shape) > 1
        and array.buffer.memory is not Memory.REGISTER
        and not array.buffer.constant
        and not any(array.buffer.reuse)
        and all(map(_is_plain, writers := builder.nest.writers[name]))
        and len({writer.output.index for writer in writers}) == 1
    ]


def _is_plain(leaf: Leaf) -> bool:
    """True for a statement in plain loops that does not accumulate."""
    return leaf.accumulate is None and all(map(is_plain, leaf.chain))


def _votes(builder: PassBuilder) -> dict[Dimension, float]:
    """The instances of statements that also access an array of the caller along a loop, by the dimensions it indexes.

    Values that one loop passes on from temporary to temporary count for all of them.
    """
    parent: dict[Dimension, Dimension] = {}

    def root(place: Dimension) -> Dimension:
        while place in parent:
            place = parent[place]
        return place

    for leaf in builder.nest.leaves:
        first: dict[int, Dimension] = {}
        for place, depth in indices(leaf):
            one, other = root(first.setdefault(depth, place)), root(place)
            if one != other and leaf.accumulate is None:
                parent[other] = one
    votes: dict[Dimension, float] = {}
    for leaf in builder.nest.leaves:
        found = indices(leaf)
        for depth in {depth for _, depth in found}:
            weight = sum(a.array.buffer.op is None and runs_along(a, leaf.chain[depth]) for a in leaf.accesses)
            for one in {root(place) for place, each in found if each == depth}:
                votes[one] = votes.get(one, 0.0) + weight * _instances(leaf)
    return {place: votes.get(root(place), 0.0) for place in {p for leaf in builder.nest.leaves for p, _ in indices(leaf)}}


def _instances(leaf: Leaf) -> float:
    return prod(s.extent for s in leaf.chain)


def _order(builder: PassBuilder, name: str, votes: dict[Dimension, float]) -> bool:
    """Move the dimension with the most votes last, if the last one has fewer; loops follow."""
    last = len(builder.nest.arrays[name].shape) - 1
    best = max(range(last + 1), key=lambda d: (votes.get((name, d), 0.0), d))
    if votes.get((name, best), 0.0) <= votes.get((name, last), 0.0):
        return False
    for place in range(best, last):
        builder.make("swap_dims", f"{name}:{place}", WHY)
    for writer in builder.nest.writers[name]:
        depths = [loop_variable(e) for e in writer.output.index]
        loops = [writer.chain[d].id for d in depths if d is not None]
        if len(writer.chain) == len(set(loops)) and all(len(s.children) == 1 for s in writer.chain):
            builder.transact(lambda i=writer.id, wanted=loops: reorder(builder, i, wanted))
    return True
