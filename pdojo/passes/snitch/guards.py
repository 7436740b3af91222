"""Guards that cut a triangle or a band out of a box: blocks of rows without guards, and small triangles beside them.

`24 24 where ({1} <= {0})` becomes, for each four rows, a loop over the columns that all of them have, which streams and
hardware loops can run, and one over the few columns that only some have, which becomes straight code. Columns that no
row has are left out.
"""

from __future__ import annotations

from typing import NamedTuple

from pdojo.dialect.affine import Expr, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.rules.streams import FPU_FUNCTIONS
from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import sink, tile

ROWS = 4
"""Rows of a block: as many sums as hide the latency of the FPU. Columns are cut at multiples of it."""
BLOCKS = 16
"""Most blocks of a loop."""

WHOLE = "rows that need no guards"
WHY = "rows without guards, and the triangle beside them as straight code"


def cut_guards(builder: PassBuilder) -> None:
    """Turn guards into bounds of loops: rows that need none by themselves, the others four at a time."""
    for identifier in [s.id for s in builder.nest.scopes if s.guard]:
        scope = builder.find_scope(identifier)
        rows = None if scope is None else _rows(scope)
        if rows is not None:
            builder.transact(lambda rows=rows: _without_guards(builder, rows))
    for identifier in [s.id for s in builder.nest.scopes if s.guard]:
        scope = builder.find_scope(identifier)
        if scope is None:
            continue
        rows = _rows(scope)
        if rows is None:
            builder.transact(lambda scope=scope: _cut(builder, scope))
        elif rows.extent <= ROWS * BLOCKS and _is_simple(rows):
            builder.transact(lambda rows=rows: _cut_rows(builder, rows.id))


def _is_simple(rows: Scope) -> bool:
    """True if all statements of a loop are single instructions, of which straight code has room for many."""
    return all(f is None or f in FPU_FUNCTIONS for leaf in rows.leaves for f in (leaf.function, leaf.accumulate))


def _rows(scope: Scope) -> Scope | None:
    """The loop whose variable the bounds of a loop depend on; None if they are constant."""
    depths = {v for c in scope.guard for v in c.variables()} - {scope.depth}
    return scope.chain[min(depths)] if depths else None


def _without_guards(builder: PassBuilder, rows: Scope) -> bool:
    """Make the rows for which all guards hold a loop of its own; False if they are not most of the rows."""
    first, last = 0, rows.extent
    for leaf in rows.leaves:
        for constraint in leaf.guards:
            extents = [s.extent for s in leaf.chain]
            factor = constraint.coefficient(rows.depth)
            low, _ = (constraint - var(rows.depth) * factor).bounds(extents)
            # Row i needs no guard if the least value, factor times i plus low, is not negative.
            if factor > 0:
                first = max(first, -(low // factor))
            elif factor < 0:
                last = min(last, low // -factor + 1)
            elif low < 0:
                return False
    if last - first <= rows.extent // 2 or last - first == rows.extent:
        return False
    if any(builder.lanes(leaf) > 1 for leaf in rows.leaves):
        # The packed results of the loop would not be words.
        return False
    identifier = rows.id
    if last < rows.extent:
        builder.make("peel_scope", rows, WHOLE, after=last)
    if first > 0:
        builder.make("peel_scope", f"%{identifier}", WHOLE, after=first)
    return True


def _cut_rows(builder: PassBuilder, identifier: str) -> bool:
    """Cut a loop over rows into blocks, and the guarded loops in each of them; False if no loop could be cut."""
    rest = builder.scope(identifier).extent % ROWS
    if rest:
        builder.make("peel_scope", f"%{identifier}", WHY, after=builder.scope(identifier).extent - rest)
    last = [] if not rest else [tile(builder, _next(builder, identifier), rest, WHY).outer]
    blocks = [tile(builder, identifier, ROWS, WHY).outer]
    while builder.scope(blocks[-1]).extent > 1:
        builder.make("peel_scope", f"%{blocks[-1]}", WHY, after=1)
        blocks.append(_next(builder, blocks[-1]))
    found = False
    for block in (*blocks, *last):
        for inner in [s.id for s in builder.nest.scopes if s.guard and block in (t.id for t in s.chain)]:
            found |= _cut(builder, builder.scope(inner))
    return found


def _next(builder: PassBuilder, identifier: str) -> str:
    """The scope behind another one."""
    behind = builder.nest.next_sibling(builder.scope(identifier))
    assert behind is not None
    return behind.id


def _cut(builder: PassBuilder, scope: Scope) -> bool:
    """Cut a guarded loop where its guards begin or cease to hold for some rows, or for all; False if it stays whole."""
    if scope.mapping is not Mapping.SEQUENTIAL or not all(_is_bound(c, scope) for c in scope.guard):
        return False
    bounds, identifier = _Bounds.of(scope), scope.id
    if bounds.first > 0:
        builder.make("peel_scope", scope, WHY, after=bounds.first, empty="drop")
    if bounds.last < scope.extent:
        builder.make("peel_scope", f"%{identifier}", WHY, after=bounds.last - bounds.first, empty="drop")
    passed, parts = bounds.first, [identifier]
    for at in (bounds.begin, bounds.end) if bounds.begin < bounds.end else ():
        if passed < at < bounds.last:
            builder.make("peel_scope", f"%{identifier}", WHY, after=at - passed)
            identifier, passed = _next(builder, identifier), at
            parts.append(identifier)
    for part in parts:
        if builder.scope(part).guard:
            # Sums over other loops keep all results of the triangle.
            sink(builder, part, WHY)
    return True


def _is_bound(constraint: Expr, scope: Scope) -> bool:
    """True if a constraint bounds a loop's variable by others."""
    factor = constraint.coefficient(scope.depth)
    return factor != 0 and not (constraint - var(scope.depth) * factor).uses(scope.depth)


class _Bounds(NamedTuple):
    """The iterations of a guarded loop that run for some rows, and those that run for all."""

    first: int
    last: int
    """The iterations from `first` to before `last` run for some rows."""
    begin: int
    end: int
    """The iterations from `begin` to before `end` run for all rows: whole groups of columns, if the rows differ."""

    @staticmethod
    def of(scope: Scope) -> _Bounds:
        """The bounds of a loop, all of whose constraints are bounds of its variable."""
        extents = [s.extent for s in scope.chain]
        first, last, begin, end = 0, scope.extent, 0, scope.extent
        for constraint in scope.guard:
            factor = constraint.coefficient(scope.depth)
            low, high = (constraint - var(scope.depth) * factor).bounds(extents)
            if factor < 0:
                # factor * i + rest >= 0 up to i = rest // -factor.
                last, some = min(last, high // -factor + 1), low // -factor + 1
                end = min(end, some if low == high else some // ROWS * ROWS)
            else:
                # From i = ceil(-rest / factor) on.
                first, some = max(first, -(high // factor)), -(low // factor)
                begin = max(begin, some if low == high else -(-some // ROWS) * ROWS)
        return _Bounds(first, last, begin, end)
