"""Panels of columns: statistics of columns, and the values computed from them, for a part of the columns at a time.

A softmax over a middle axis is an example: its maxima and sums have neighbouring results of neighbouring elements, and
all its statements are contiguous along the columns. The columns of a panel stay in the core's cache from the first
statement to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import gcd, prod

from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Leaf, Scope, leaves_of
from pdojo.dialect.view.nodes import is_plain
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.dimensions import Dimension, indexed_by, indices, loop_variable, spread
from pdojo.passes.common.loops import isolate, peel_rest, reorder, tile
from pdojo.passes.cpu.block_plans import WAYS
from pdojo.passes.cpu.columns import SMALL
from pdojo.passes.cpu.threads import EVEN, balance
from pdojo.passes.cpu.vectors import ACCUMULATORS, part_temporaries

LEAST = 128
"""Fewest bytes of a panel's row."""
LONG = 2048
"""Bytes of a panel's row from which a panel that does not fit the cache is no worse than whole rows."""
WHY = "a panel of columns stays in the cache from its statistics to its results"


@dataclass(frozen=True)
class ColumnFamily:
    """The statements that compute statistics of columns and values from them."""

    columns: dict[str, int]
    """The depth of the loop over columns, keyed by statement."""
    outer: dict[str, tuple[int, ...]]
    """The depths of the loops that the statistic's other dimensions index, in their order."""

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements in order."""
        return tuple(self.columns)


def panel_columns(builder: PassBuilder) -> set[str]:
    """Cut the columns of every family into panels; returns the names of the arrays of statistics."""
    found: set[str] = set()
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        name = builder.leaf(identifier).output.array.name
        if name in found:
            continue
        family = _family(builder, builder.leaf(identifier))
        size = None if family is None else _size(builder, family)
        if family is not None and size is not None:
            builder.transact(lambda f=family, n=size: _cut(builder, f, n, found))
    return found


def _family(builder: PassBuilder, leaf: Leaf) -> ColumnFamily | None:
    """The statements of the columns of a statistic that wider statements read; None if there are none."""
    depths = [loop_variable(e) for e in leaf.output.index]
    columns = next((d for d in depths if d is not None and _is_along(leaf, d)), None)
    if columns is None or None in depths or len(set(depths)) < len(depths) or len(depths) == len(leaf.chain):
        return None
    name = leaf.output.array.name
    places = {d: spread(builder, (name, k)) for k, d in enumerate(depths) if d is not None}
    others = [d for d in places if d != columns]
    column_of: dict[str, int] = {}
    outer_of: dict[str, tuple[int, ...]] = {}
    for other in builder.nest.leaves:
        column, *outer = (_loops(other, places[d]) for d in (columns, *others))
        if len(column) != 1 or any(len(loops) != 1 for loops in outer):
            continue
        depth = column[0].depth
        if not all(map(is_plain, other.chain)) or builder.is_sealed(other):
            return None
        if not _is_along(other, depth):
            return None
        column_of[other.id] = depth
        outer_of[other.id] = tuple(loops[0].depth for loops in outer)
    family = ColumnFamily(column_of, outer_of)
    later = _dependent(builder, name)
    wide = any(_is_wide(builder, i, family) and i in later for i in family.statements)
    return family if wide and leaf.id in family.columns else None


def _dependent(builder: PassBuilder, name: str) -> set[str]:
    """The statements that read an array, or what is computed from it, without those that accumulate."""
    known, found = {name}, set[str]()
    for leaf in builder.nest.leaves:
        if leaf.output.array.name != name and any(read.array.name in known for read in leaf.reads):
            known.add(leaf.output.array.name)
            if leaf.accumulate is None:
                found.add(leaf.id)
    return found


def _is_along(leaf: Leaf, depth: int) -> bool:
    """True if a statement writes along the loop at `depth`, and reads along it or the same for all its iterations."""
    strides = [lane_stride(a.index, a.array.shape, depth) for a in leaf.accesses]
    return strides[0] is Stride.CONTIGUOUS and set(strides[1:]) <= {Stride.CONTIGUOUS, Stride.BROADCAST}


def _loops(leaf: Leaf, dimensions: set[Dimension]) -> list[Scope]:
    """The loops of a statement that index any of the dimensions."""
    depths = {depth for place, depth in indices(leaf) if place in dimensions}
    return [leaf.chain[depth] for depth in sorted(depths)]


def _rows(builder: PassBuilder, identifier: str, family: ColumnFamily) -> int:
    """The instances of a statement for one column."""
    used = {family.columns[identifier], *family.outer[identifier]}
    return prod(s.extent for s in builder.leaf(identifier).chain if s.depth not in used)


def _is_wide(builder: PassBuilder, identifier: str, family: ColumnFamily) -> bool:
    """True if a statement has other loops than those over the statistics."""
    return _rows(builder, identifier, family) > 1


def _size(builder: PassBuilder, family: ColumnFamily) -> int | None:
    """The columns of a panel: as many as stay in the core's cache, and enough panels for the threads; None if none."""
    machine = builder.game.machine
    leaves = [builder.leaf(i) for i in family.statements if _is_wide(builder, i, family)]
    rows = max(_rows(builder, leaf.id, family) for leaf in leaves)
    arrays = {a.array.name: a.array for leaf in leaves for a in leaf.accesses if a.array.buffer.op is None}
    widths = [byte_width(a.dtype) for a in arrays.values() if prod(a.shape) > rows]
    first = leaves[0]
    columns = first.chain[family.columns[first.id]].extent
    outer = prod(first.chain[d].extent for d in family.outer[first.id])
    if rows * columns * outer < SMALL:
        return None
    unit = builder.lanes(first) * ACCUMULATORS
    threads = 1 if balance(outer, machine.threads) >= EVEN else machine.threads
    bytes_each = max(widths, default=1)
    whole = _panel(columns, threads, unit)
    sizes = (_panel(columns, count, unit) for count in range(threads, columns + 1, threads))
    wide = takewhile(lambda size: size * bytes_each >= min(LEAST, whole * bytes_each), sizes)
    fitting = list(dict.fromkeys(size for size in wide if _fits(builder, rows, columns, size, widths)))
    if not fitting:
        return whole if whole * bytes_each >= LONG else None
    return next((size for size in fitting if columns % size == 0 and 2 * size >= fitting[0]), fitting[0])


def _panel(columns: int, count: int, unit: int) -> int:
    """The columns of each of `count` whole panels; a multiple of the unit if there is more than one panel."""
    return columns if count == 1 else min(columns, max(1, columns // (count * unit)) * unit)


def _fits(builder: PassBuilder, rows: int, columns: int, size: int, widths: list[int]) -> bool:
    """True if the rows of a panel lie in the core's cache together."""
    cache, width = builder.game.machine.private_cache, max(widths, default=1)
    if rows * size * sum(widths) > cache // 2:
        return False
    # Rows at a multiple of a large power of two share the sets of the cache.
    way = cache // WAYS
    apart = gcd(columns * width, way)
    return size * width >= apart or -(-rows // (way // apart)) * len(widths) <= WAYS


def _cut(builder: PassBuilder, family: ColumnFamily, size: int, sums: set[str]) -> None:
    """Give every statement its own nest, [outer, panels, rows, columns]; adds the arrays of sums to `sums`."""
    rests: list[str] = []
    for identifier in family.statements:
        isolate(builder, identifier, WHY)
        chain = [s.id for s in builder.leaf(identifier).chain]
        columns, outer = chain[family.columns[identifier]], [chain[d] for d in family.outer[identifier]]
        rows = [s for s in chain if s not in (columns, *outer)]
        reorder(builder, identifier, [*outer, columns, *rows])
        for statement in _peeled(builder, identifier, len(outer), size):
            _arrange(builder, statement, len(outer), size)
            rests += [statement] if statement != identifier else []
    for rest in reversed(rests):
        _move_last(builder, rest, rests)
    part_temporaries(builder)
    cut = [*family.statements, *rests]
    for name, dimension in _indexed(builder, cut):
        # The values of a panel can then overwrite the values of the previous panel.
        builder.attempt("tile_dim", f"{name}:{dimension}", WHY, size=size)
    leaves = (builder.leaf(identifier) for identifier in cut)
    sums |= {leaf.output.array.name for leaf in leaves if leaf.accumulate is not None}


def _indexed(builder: PassBuilder, statements: Sequence[str]) -> list[Dimension]:
    """The dimensions of temporaries that the innermost loops index, the loops over columns."""
    mine = set(builder.temporaries())
    found = [place for leaf in map(builder.leaf, statements) for place in indexed_by(leaf, len(leaf.chain) - 1)]
    return [place for place in dict.fromkeys(found) if place[0] in mine]


def _peeled(builder: PassBuilder, identifier: str, depth: int, size: int) -> list[str]:
    """The statement, and its copy for the columns after the whole panels, in a nest of its own."""
    before = builder.nest.by_id.keys()
    if not peel_rest(builder, builder.loop(identifier, depth), size, WHY):
        return [identifier]
    (rest,) = (leaf.id for leaf in builder.nest.leaves if leaf.id not in before)
    isolate(builder, rest, WHY)
    return [identifier, rest]


def _arrange(builder: PassBuilder, identifier: str, depth: int, size: int) -> None:
    """Rewrite [outer, columns, rows] to [outer, panels, rows, columns of a panel]; the columns are at `depth`."""
    columns = builder.loop(identifier, depth)
    inner = columns.id if columns.extent <= size else tile(builder, columns, size, WHY).inner
    others = [s.id for s in builder.leaf(identifier).chain if s.id != inner]
    reorder(builder, identifier, [*others, inner])


def _move_last(builder: PassBuilder, identifier: str, rests: list[str]) -> None:
    """Move a statement's nest after all nests except the nests of later remainders."""
    later = set(rests[rests.index(identifier) + 1 :])
    while True:
        nest = builder.leaf(identifier).chain[0]
        following = builder.nest.next_sibling(nest)
        if following is None or any(leaf.id in later for leaf in leaves_of(following)):
            return
        builder.make("swap_nodes", nest, WHY)
