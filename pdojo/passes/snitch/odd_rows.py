"""Rows of an odd number of f32, of which every second one begins in the middle of a word.

Even and odd rows become loops of their own. Packed numbers begin with the first number of an even row, and with the
second one of an odd row; numbers beside them are computed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.rules.lanes import base_alignment, linear_address
from pdojo.dialect.rules.streams import WORD
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import collapse_unit_loops, is_copy, tile
from pdojo.passes.snitch.packing import JOINED, vectorize
from pdojo.passes.snitch.rests import own_dimensions
from pdojo.passes.snitch.values import recompute
from pdojo.passes.snitch.windows import Window, split_steps

LANES = 2
"""Numbers of a word."""
COPIES = 4
"""Results computed at a time."""
WHY = "every second row begins in the middle of a word: even and odd rows are packed apart"


def pack_odd_rows(builder: PassBuilder, copies: int) -> None:
    """Pack numbers along rows of odd length; single sums get `copies` registers."""
    for identifier in [s.id for s in builder.nest.scopes]:
        scope = builder.find_scope(identifier)
        if scope is not None and _has_odd_rows(scope):
            builder.transact(lambda scope=scope: _packed(builder, scope, copies))


def align_sums(builder: PassBuilder) -> None:
    """Let sums over rows of odd length, with a result for each column, add up even and odd rows apart."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        window = _summed_rows(leaf) if isinstance(leaf, Leaf) else None
        if window is not None:
            builder.transact(lambda window=window: _summed_apart(builder, window))


def _summed_rows(leaf: Leaf) -> Window | None:
    """The rows that a sum adds up, with a result for each column; None if it does something else."""
    own = {v for e in leaf.output.index for v in e.variables()}
    if leaf.accumulate is None or any(a.array.dtype != JOINED for a in leaf.accesses):
        return None
    if not own or own != set(range(len(own))) or any(len(s.children) > 1 for s in leaf.chain[len(own) :]):
        return None
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    columns = leaf.chain[len(own) - 1]
    found = [row for row in _rows_of(leaf) if row.columns is columns]
    if len(found) != 2 or found[0].access is not leaf.output or _odd(found[0]):
        return None
    read = found[1]
    address = linear_address(read.access.index, read.access.array.shape)
    steps = [leaf.chain[v] for v in _odd(read)]
    if len(steps) != 1 or steps[0].depth < len(own) or address.constant % LANES:
        return None
    if min(columns.extent, steps[0].extent) < 2 * LANES:
        return None
    return Window(leaf.id, steps[0].id, len(own), read.access.array.name)


def _summed_apart(builder: PassBuilder, window: Window) -> None:
    """Make the moves: the sums of odd rows begin with the second column, in memory of their own."""
    odd = split_steps(builder, window)
    steps = builder.loop(odd, window.results)
    builder.make("swap_nodes", builder.nest.siblings(steps)[steps.position - 1], WHY)
    for level in reversed(range(window.results)):
        if len((loop := builder.loop(odd, level)).children) > 1:
            builder.make("split_scopes", loop, WHY, after=len(loop.children) - 1)
    columns = builder.loop(odd, window.results - 1)
    _whole_words(builder, _next(builder, columns.id), 0)
    inside, _ = _whole_words(builder, columns.id, 1)
    name = builder.scope(inside).leaves[0].output.array.name
    builder.make("stage_out", f"%{inside}", WHY, array=name, location="heap", form="box")


class _Row(NamedTuple):
    """The access along a row by a statement."""

    access: Access
    columns: Scope
    """The loop along the row."""


def _rows_of(leaf: Leaf) -> list[_Row]:
    """The accesses of a statement along contiguous memory, the output first."""
    found: list[_Row] = []
    for access in leaf.accesses:
        address = linear_address(access.index, access.array.shape)
        along = [s for s in leaf.chain if address.is_linear and address.coefficient(s.depth) == 1]
        is_whole = not any(access.array.buffer.reuse) and base_alignment(access.array.buffer) % WORD == 0
        if along and is_whole:
            found.append(_Row(access, along[-1]))
    return found


def _odd(row: _Row) -> set[int]:
    """The loops but that along a row whose next iteration is at an odd distance."""
    address = linear_address(row.access.index, row.access.array.shape)
    return {v for v in address.variables() if v != row.columns.depth and address.coefficient(v) % 2}


def _has_odd_rows(rows: Scope) -> bool:
    """True if the iterations of a loop are rows of an odd length, along which numbers could be packed."""
    leaves = rows.leaves
    if rows.mapping is not Mapping.SEQUENTIAL or rows.extent < LANES or any(leaf.guards for leaf in leaves):
        return False
    if any(a.array.dtype != JOINED for leaf in leaves for a in leaf.accesses) or all(map(is_copy, leaves)):
        # The core copies numbers that are no words.
        return False
    found = [[row for row in _rows_of(leaf) if row.columns.depth > rows.depth] for leaf in leaves]
    inside = [(leaf, accesses) for leaf, accesses in zip(leaves, found, strict=True) if accesses]
    if not inside or any(accesses[0].columns.extent < 2 * LANES for _, accesses in inside):
        return False
    if not all(_odd(accesses[0]) == {rows.depth} and _reads_rows(leaf, accesses) for leaf, accesses in inside):
        return False
    return all(_odd(row) <= {rows.depth} for _, accesses in inside for row in accesses)


def _reads_rows(leaf: Leaf, rows: Sequence[_Row]) -> bool:
    """True if a statement reads along rows whatever differs from column to column."""
    columns = rows[0].columns
    along = [row.access for row in rows if row.columns is columns]
    return all(a in along for a in leaf.reads if any(e.uses(columns.depth) for e in a.index))


def _packed(builder: PassBuilder, rows: Scope, copies: int) -> bool:
    """Make the moves; False if numbers of some part cannot be packed."""
    found = [_words(builder, part) for part in _split(builder, rows)]
    collapse_unit_loops(builder)
    for loops in found:
        if not loops:
            return False
        for loop in loops:
            vectorize(builder, loop, copies)
    return True


def _split(builder: PassBuilder, rows: Scope) -> list[str]:
    """Split a loop over rows into the even ones, the odd ones, and perhaps the last one; returns the loops."""
    identifier, last = rows.id, None
    if rows.extent % LANES:
        builder.make("peel_scope", rows, WHY, after=rows.extent - 1)
        last = _next(builder, identifier)
    tiles = tile(builder, identifier, LANES, WHY)
    builder.make("peel_scope", f"%{tiles.inner}", WHY, after=1)
    builder.make("split_scopes", f"%{tiles.outer}", WHY, after=1)
    parts = [tiles.outer, _next(builder, tiles.outer)]
    for place, part in enumerate(parts):
        known = builder.nest.by_id.keys()
        builder.make("collapse_scopes", f"%{part}", WHY)
        parts[place] = next(s.id for s in builder.nest.scopes if s.id not in known)
    if last is not None and builder.scope(parts[0]).extent % COPIES:
        # A whole number of groups stays alone.
        builder.make("swap_nodes", f"%{parts[1]}", WHY)
        builder.make("unpeel_scope", f"%{parts[0]}", WHY)
        last = None
    own_dimensions(builder, parts[1])
    if last is not None:
        own_dimensions(builder, last)
    return [*parts, *([] if last is None else [last])]


def _words(builder: PassBuilder, part: str) -> list[str]:
    """Let loops along rows begin and end with whole words; returns the loops, none if a row has no known place."""
    rows = builder.scope(part)
    found: list[str] = []
    for column in dict.fromkeys(row.columns.id for leaf in rows.leaves for row in _rows_of(leaf)[:1]):
        leaf = builder.scope(column).leaves[0]
        row = _rows_of(leaf)[0]
        if _odd(row):
            return []
        address = linear_address(row.access.index, row.access.array.shape)
        column, others = _whole_words(builder, column, address.constant % LANES)
        for other in [*others, *([column] if address.constant % LANES else [])]:
            own_dimensions(builder, other)
            for identifier in [leaf.id for leaf in builder.scope(other).leaves]:
                builder.transact(lambda identifier=identifier: recompute(builder, identifier))
        found.append(column)
        around = builder.scope(column).parent
        if around is not None and len(around.children) == 1 + len(others):
            for after in reversed(range(1, len(around.children))):
                builder.make("split_scopes", around, WHY, after=after)
    return found


def _whole_words(builder: PassBuilder, column: str, first: int) -> tuple[str, list[str]]:
    """Peel a loop that begins `first` numbers before a word; returns the loop over whole words, and those beside it."""
    others: list[str] = []
    if first:
        builder.make("peel_scope", f"%{column}", WHY, after=first)
        others.append(column)
        column = _next(builder, column)
    rest = builder.scope(column).extent % LANES
    if rest:
        builder.make("peel_scope", f"%{column}", WHY, after=builder.scope(column).extent - rest)
        others.append(_next(builder, column))
    return column, others


def _next(builder: PassBuilder, identifier: str) -> str:
    """The scope behind another one."""
    behind = builder.nest.next_sibling(builder.scope(identifier))
    assert behind is not None
    return behind.id
