"""Sums over rows: reductions with neighbouring results of neighbouring elements.

The pass reads whole rows one after the other, instead of one column of every row. Each thread has partial results for a
part of the rows. Several rows are added to a vector of results at a time (`join_terms`), which saves loads of the
vector.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_plain, run_time_extent
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import contraction_shape, spatial_loops
from pdojo.passes.common.dimensions import indices, loop_variable, spread
from pdojo.passes.common.loops import isolate, jam, peel_rest, reorder
from pdojo.passes.common.sums import split_terms
from pdojo.passes.cpu.contraction import MOST_TERMS
from pdojo.passes.cpu.threads import small, work

SMALL = 16384
"""Statement instances below which the order of loops does not matter, as all arrays are near."""
ROWS = 4
"""Rows that are added to a vector of results at a time."""
BESIDE = "rows are added up while they are in registers"
WHY = "whole rows are read one after the other"


def sum_columns(builder: PassBuilder, done: set[str]) -> set[str]:
    """Give reductions over rows, except those into the arrays `done`, their own nests, in parts for the threads.

    The rows are outermost.

    Returns the names of the arrays of (partial) results.
    """
    found: set[str] = set()
    cut: dict[int, list[str]] = {}
    for identifier in [leaf.id for leaf in builder.nest.leaves if leaf.accumulate is not None]:
        leaf = builder.leaf(identifier)
        if leaf.output.array.name in done or builder.is_sealed(leaf) or not _is_of_columns(builder, leaf):
            continue
        if not builder.transact(lambda i=identifier: _beside_rows(builder, i, cut)):
            builder.transact(lambda i=identifier: _rows_outside(builder, i, found))
    return found


def _is_of_columns(builder: PassBuilder, leaf: Leaf) -> bool:
    """True for a reduction of one operand over one loop, with result and operand contiguous along another loop.

    False for a few terms of an array that no statement writes, whose sum stays in registers.
    """
    shape = contraction_shape(leaf)
    if shape is None or len(shape.terms) != 1 or len(leaf.inputs) != len(leaf.reads) or len(leaf.reads) != 1:
        return False
    if shape.terms[0].extent <= MOST_TERMS and not builder.nest.writers.get(leaf.reads[0].array.name):
        return False
    large = prod(s.extent for s in leaf.chain) >= SMALL
    return leaf.function is None and _columns(leaf) is not None and large


def _columns(leaf: Leaf) -> Scope | None:
    """The loop along which the result and the operand are contiguous; None if there is none."""
    strides = ((s, [lane_stride(a.index, a.array.shape, s.depth) for a in leaf.accesses]) for s in leaf.chain)
    return next((s for s, found in strides if all(stride is Stride.CONTIGUOUS for stride in found)), None)


def _rows_outside(builder: PassBuilder, identifier: str, found: set[str]) -> bool:
    isolate(builder, identifier, WHY)
    leaf = builder.leaf(identifier)
    columns = _columns(leaf)
    assert columns is not None
    spatial = [s.id for s in leaf.chain if s.depth in spatial_loops(leaf)]
    (terms,) = (s for s in leaf.chain if s.id not in spatial)
    outer = [s for s in spatial if s != columns.id]
    reorder(builder, identifier, [*outer, columns.id, terms.id])
    total = identifier
    machine = builder.game.machine
    results = prod(s.extent for s in leaf.chain if s.id in spatial)
    size = machine.threads * results * byte_width(leaf.output.array.dtype)
    large = prod(s.extent for s in leaf.chain) >= small(machine) and run_time_extent(terms) is None
    if machine.threads > 1 and large and terms.extent >= machine.threads * ROWS and size <= machine.usable_cache // 2:
        parts = split_terms(builder, identifier, machine.threads, WHY)
        for statement in (parts.zero, parts.total, parts.combined):
            isolate(builder, statement, WHY)
        total = parts.total
    leaf = builder.leaf(total)
    columns = _columns(leaf)
    if columns is None:
        return False
    spatial = sorted(spatial_loops(leaf) - {columns.depth})
    rows = [s.id for s in leaf.chain if s.depth not in (*spatial, columns.depth)]
    parts_first = [leaf.chain[d].id for d in spatial[:: -1 if total != identifier else 1]]
    reorder(builder, total, [*parts_first, *rows, columns.id])
    builder.sealed.add(builder.loop(total, -2).id)
    found.add(builder.leaf(total).output.array.name)
    return True


def _beside_rows(builder: PassBuilder, identifier: str, cut: dict[int, list[str]]) -> bool:
    """Add rows up where other nests compute or read them, so that they are in registers; False if no nest does so.

    Each thread takes a part of the rows of all these nests. `cut` has a statement of each nest that was cut for other
    sums, by the number of rows.
    """
    isolate(builder, identifier, BESIDE)
    leaf, machine = builder.leaf(identifier), builder.game.machine
    count, columns = machine.threads, _columns(leaf)
    (rows,) = (s for s in leaf.chain if s.depth not in spatial_loops(leaf))
    if count < 2 or columns is None or len(leaf.chain) > 2 or run_time_extent(rows) is not None or rows.extent % count:
        return False
    if count * columns.extent * byte_width(leaf.output.array.dtype) > machine.private_cache // 2:
        return False
    reorder(builder, identifier, [columns.id, rows.id])
    leaf = builder.leaf(identifier)
    family = _nests_of_rows(builder, leaf)
    members = [builder.scope(loop).leaves[0].id for loop in family] or cut.get(rows.extent, [])
    nests = [builder.loop(statement, 0) for statement in members]
    if not any(_uses(nest, leaf.reads[0]) for nest in nests) or sum(map(work, nests)) < small(machine):
        return False
    parts = split_terms(builder, identifier, count, BESIDE)
    for statement in (parts.zero, parts.total, parts.combined):
        isolate(builder, statement, BESIDE)
    for statement in (parts.zero, parts.total, parts.combined):
        chain, output = builder.leaf(statement).chain, builder.leaf(statement).output
        part = [s.id for s in chain if s.extent == count and s.depth != _columns_depth(output)]
        columns = [s.id for s in chain if s.depth == _columns_depth(output)]
        others = [s.id for s in chain if s.id not in (*part, *columns)]
        reorder(builder, statement, [*part, *others, *columns])
    # The parts are combined after the last row, not beside the threads' loops.
    builder.sealed.add(builder.loop(parts.combined, 0).id)
    for loop in family:
        builder.make("tile_scope", f"%{loop}", BESIDE, size=rows.extent // count)
    first = min(builder.loop(statement, 0).position for statement in members)
    while (zero := builder.loop(parts.zero, 0)).position > first:
        builder.make("swap_nodes", builder.nest.siblings(zero)[zero.position - 1], BESIDE)
    cut[rows.extent] = members
    return True


def _uses(root: Scope, read: Access) -> bool:
    """True if a statement in a nest accesses the array that is read."""
    return any(access.array.name == read.array.name for leaf in root.leaves for access in leaf.accesses)


def _columns_depth(output: Access) -> int | None:
    """The depth of the loop along which results lie side by side."""
    return loop_variable(output.index[-1])


def _nests_of_rows(builder: PassBuilder, leaf: Leaf) -> list[str]:
    """The outermost loops of other nests over the rows that a sum adds up."""
    places = {place for place, depth in indices(leaf) if depth == len(leaf.chain) - 1}
    dimensions = {each for place in places for each in spread(builder, place)}
    found: list[str] = []
    for node in builder.nest.children:
        if not isinstance(node, Scope) or not is_plain(node) or node.extent != leaf.chain[-1].extent:
            continue
        over = [other for other in node.leaves if any(place in dimensions and d == 0 for place, d in indices(other))]
        if len(over) < len(node.leaves) or node in leaf.chain or node.id in builder.sealed:
            continue
        found.append(node.id)
    return found


def join_terms(builder: PassBuilder, arrays: set[str]) -> None:
    """Add several rows to each vector of results at a time, for sums into these arrays."""
    sums = [leaf for leaf in builder.nest.leaves if leaf.accumulate is not None and leaf.output.array.name in arrays]
    for identifier in [leaf.id for leaf in sums]:
        rows = _rows_around(builder.leaf(identifier))
        if rows is not None and rows.extent > ROWS:
            builder.transact(lambda i=rows.id: _join(builder, i))


def _rows_around(leaf: Leaf) -> Scope | None:
    """The loop over terms around loops over whole vectors of results; None if a statement has another form."""
    if leaf.parent is None or leaf.parent.mapping is not Mapping.VECTOR:
        return None
    inner = [s for s in leaf.chain if not any(e.uses(s.depth) for e in leaf.output.index)]
    return inner[-1] if inner and inner[-1].depth < leaf.parent.depth else None


def _join(builder: PassBuilder, identifier: str) -> bool:
    loop = builder.scope(identifier)
    why = f"{ROWS} rows at a time: a vector of results is loaded and stored once for all"
    peel_rest(builder, loop, ROWS, why)
    loop = builder.find_scope(identifier)
    if loop is None or loop.extent <= ROWS:
        return False
    jam(builder, loop, ROWS, why)
    return True
