"""Gathered cache lines that are used up at once, and copies that are transposed in registers, square by square."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import is_copy, peel_rest, tile

LARGEST = 16
"""Most lanes of a square."""


def use_lines(builder: PassBuilder, identifier: str) -> None:
    """Move the loop along the gathered cache lines innermost, in tiles of a line."""
    leaf = builder.leaf(identifier)
    if leaf.parent is None or leaf.parent.mapping is not Mapping.VECTOR or len(leaf.chain) < 3:
        return
    gathered = [a for a in leaf.reads if lane_stride(a.index, a.array.shape, leaf.parent.depth) is Stride.STRIDED]
    rows = next((s for s in reversed(leaf.chain[:-1]) if any(runs_along(a, s) for a in gathered)), None)
    if rows is None:
        return
    line = builder.game.machine.cache_line // byte_width(gathered[0].array.dtype)
    if rows.extent >= line and builder.transact(lambda: _lines_first(builder, identifier, rows.id, line)):
        if is_copy(builder.leaf(identifier)):
            copy_squares(builder, identifier)
            return
        for name in {access.array.name for access in gathered}:
            builder.transact(lambda name=name: _stage_squares(builder, identifier, name))


def _stage_squares(builder: PassBuilder, identifier: str, name: str) -> bool:
    """Read gathered elements from a copy that is made square by square, in front of the loop along the lines."""
    known, why = builder.nest.by_id.keys(), "squares are transposed in registers, not gathered"
    builder.make("stage_in", builder.loop(identifier, -2), why, array=name, location="stack")
    (copy,) = (leaf.id for leaf in builder.nest.leaves if leaf.id not in known)
    builder.attempt("vectorize", builder.loop(copy, -1), why)
    return copy_squares(builder, copy)


def _lines_first(builder: PassBuilder, identifier: str, rows: str, line: int) -> None:
    """Move a tile of `line` iterations of the loop `rows` innermost but for the vector, apart from other statements."""
    why = "a line is used up while it is in the cache"
    if is_copy(builder.leaf(identifier)):
        peel_rest(builder, builder.scope(rows), line, why)
    if builder.scope(rows).extent > line:
        rows = tile(builder, rows, line, why).inner
    first, last = builder.scope(rows).depth, len(builder.leaf(identifier).chain) - 1
    for depth in reversed(range(first, last)):
        # The rest of the vectors has tiles of its own.
        if position := builder.leaf(identifier).chain[depth + 1].position:
            builder.make("split_scopes", builder.leaf(identifier).chain[depth], why, after=position)
        if len(builder.leaf(identifier).chain[depth].children) > 1:
            builder.make("split_scopes", builder.leaf(identifier).chain[depth], why, after=1)
    for depth in range(first, last - 1):
        builder.make("swap_scopes", builder.leaf(identifier).chain[depth], why)


def copy_squares(builder: PassBuilder, identifier: str) -> bool:
    """Copy vectors of gathered elements square by square, which backends transpose in registers; True if so.

    Another loop must run along the source's contiguous elements.
    """
    leaf = builder.leaf(identifier)
    lanes = leaf.chain[-1]
    if not is_copy(leaf) or lanes.mapping is not Mapping.VECTOR or runs_along(leaf.reads[0], lanes):
        return False
    rows = next((s for s in reversed(leaf.chain[:-1]) if runs_along(leaf.reads[0], s)), None)
    if rows is None or rows.extent < lanes.extent or rows.mapping is not Mapping.SEQUENTIAL:
        return False
    if any(guard.uses(rows.depth) for guard in lanes.guard):
        return False
    return builder.transact(lambda: _square(builder, identifier, rows.id, lanes.extent))


def square_lanes(builder: PassBuilder, leaf: Leaf, lanes: int) -> int:
    """The lanes of the vectors of a statement: fewer than `lanes` if only then a copy is made of squares."""
    if not is_copy(leaf) or runs_along(leaf.reads[0], leaf.chain[-1]):
        return lanes
    rows = next((s.extent for s in reversed(leaf.chain[:-1]) if runs_along(leaf.reads[0], s)), 0)
    fitting = [n for n in builder.vector_lanes(leaf) if n <= min(rows, lanes, LARGEST)]
    return max(fitting, default=lanes)


def _square(builder: PassBuilder, identifier: str, rows: str, size: int) -> None:
    """Cut the loop `rows` around the vectors of a copy into squares, and peel off its rest."""
    why = f"squares of {size} x {size} elements are transposed in registers"
    peel_rest(builder, builder.scope(rows), size, why)
    while builder.leaf(identifier).chain[-2].id != rows:
        builder.make("swap_scopes", f"%{rows}", why)
    inner = tile(builder, rows, size, why).inner if builder.leaf(identifier).chain[-2].extent > size else rows
    builder.make("unroll", f"%{inner}", why)


def runs_along(access: Access, scope: Scope) -> bool:
    """Whether a scope accesses neighbouring elements."""
    return lane_stride(access.index, access.array.shape, scope.depth) is Stride.CONTIGUOUS
