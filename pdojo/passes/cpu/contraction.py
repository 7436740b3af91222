"""Register tiles for contractions: sums of products whose operands are each used by many results.

The plan is the usual one of fast matrix products. A block of rows by vectors of columns stays in registers over the
whole sum. The operand that the columns index (the *panel*) is packed, so that the sum reads contiguous memory. The rest
that fills no block is peeled off and gets smaller blocks. Sizes follow from extents, vector length and registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_whole, run_time_extent
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import (
    MOST_STRAIGHT,
    ONCE,
    WORTH_CHOOSING,
    ContractionShape,
    arrange_copy,
    can_pack,
    contractions,
    is_bound,
    is_packed,
    own_block,
    pack_box,
    peel,
    peel_tiles,
    spatial_loops,
    uses,
)
from pdojo.passes.common.dimensions import loop_variable
from pdojo.passes.common.loops import is_copy, reorder, tile
from pdojo.passes.common.siblings import fuse_siblings
from pdojo.passes.cpu.audit import slow_part
from pdojo.passes.cpu.block_plans import (
    WORTH_PACKING,
    BlockPlan,
    block_plans,
    copies_of,
    dots_cost,
    evict_each_other,
    is_repaid,
    least_rest,
    tallest,
    times_read,
)
from pdojo.passes.cpu.channels import cast_inside, is_read_again
from pdojo.passes.cpu.epilogue import absorb_epilogue, results_behind, split_epilogue
from pdojo.passes.cpu.narrow import expand_inside
from pdojo.passes.cpu.squares import copy_squares
from pdojo.passes.cpu.threads import EVEN, balance, work

MOST_TERMS = 64
"""Greatest number of vector operations of a block's whole sum that is unrolled."""
CLOSE, MOST_PLANS = 1.25, 3
"""Greatest estimate of a tried block, as a multiple of the least one; greatest number of tried blocks."""
UNLIKE = 2.0
"""The best plan with another panel or other columns is tried if its estimate is at most this multiple of the least."""
MOST_TRIED = 4
"""Most plans whose products are audited."""
NEAR_ROWS = 4
"""Rows of a block are packed if they fill at least this many first-level caches."""


def tile_contractions(builder: PassBuilder) -> None:
    """Tile every contraction of calls so that a block of results stays in registers over the whole sum."""
    for shape in contractions(builder):
        if _adds_parts(builder, shape.leaf) or shape.leaf.output.array.buffer.constant:
            continue
        plans = block_plans(builder, shape)
        if plans and dots_cost(builder, shape) >= plans[0].cost:
            _tile_well(builder, shape.leaf.id, _ordered(builder, shape, plans))


def _tile_well(builder: PassBuilder, identifier: str, plans: Sequence[BlockPlan]) -> None:
    """Apply the first plan whose product the audit does not refuse; of `MOST_TRIED` plans, else the least bad one."""
    found: list[tuple[float, int]] = []

    def tile(number: int, *, refuses: bool) -> bool:
        before = builder.nest.by_id.keys()
        _tile(builder, identifier, plans[number])
        made = [leaf for leaf in builder.nest.leaves if leaf.id == identifier or leaf.id not in before]
        bad = slow_part(builder.game, made) if refuses else 0.0
        if bad:
            found.append((bad, number))
        return not bad

    for number in range(len(plans)):
        if builder.transact(lambda k=number: tile(k, refuses=True)):
            return
        if len(found) == MOST_TRIED:
            break
    if found:
        builder.transact(lambda: tile(min(found)[1], refuses=False))


def _adds_parts(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if a statement adds up neighbouring results of other sums, such as those of the parts of a row."""
    if len(leaf.reads) != 1 or not leaf.reads[0].index:
        return False
    (read,) = leaf.reads
    depth = loop_variable(read.index[-1])
    of_sums = any(writer.accumulate is not None for writer in builder.nest.writers.get(read.array.name, ()))
    return of_sums and depth is not None and depth not in spatial_loops(leaf)


def _ordered(builder: PassBuilder, shape: ContractionShape, plans: list[BlockPlan]) -> list[BlockPlan]:
    """The plans for a contraction, the cheapest first; a tuning parameter chooses among the cheapest ones."""
    leaf = shape.leaf
    close = [plan for plan in plans if plan.cost <= CLOSE * plans[0].cost][:MOST_PLANS]
    unlike = {(plan.panel, plan.columns): plan for plan in reversed(plans) if plan.cost <= UNLIKE * plans[0].cost}
    tried = {plan.title(leaf): plan for plan in (*unlike.values(), *reversed(close))}
    titles = sorted(tried, key=lambda title: tried[title].cost)
    if len(titles) < 2 or work(leaf.chain[0]) < WORTH_CHOOSING:
        return plans
    chosen = tried[builder.choices.choose(f"block of {leaf.output.array.name}", titles)]
    return [chosen, *(plan for plan in plans if plan is not chosen)]


def _tile(builder: PassBuilder, identifier: str, plan: BlockPlan) -> None:
    """Apply the plan to one contraction."""
    absorb_epilogue(builder, identifier)
    depth = len(plan.outer)
    if plan.rows is not None:
        reorder(builder, identifier, [*plan.outer, plan.columns, plan.rows])
    else:
        reorder(builder, identifier, [*plan.outer, plan.columns])
        _lone_row(builder, identifier, depth)
    builder.transact(lambda: _pairs_outside(builder, identifier, depth + 1))
    why = f"blocks of {plan.height} rows of {plan.vectors} vectors of {plan.lanes} stay in registers"
    before = {other.id for other in builder.nest.leaves}
    pieces = _pieces(builder, identifier, depth, plan, why)
    is_flat = plan.rows is not None and _is_flat(builder, identifier, plan)
    for piece in pieces:
        _columns(builder, piece, depth, plan, why, whole=is_flat, even=is_flat and len(pieces) > 1)
    _seal(builder, identifier, before, depth)
    if is_flat:
        _rows_first(builder, [*pieces, *_rests(builder, identifier, before)], depth)
        for piece in pieces[1:]:
            first, second = (builder.loop(each, depth).id for each in (identifier, piece))
            fuse_siblings(builder, first, second, "whole rows of results are stored, with the rest of their columns")


def _pairs_outside(builder: PassBuilder, identifier: str, rows: int) -> None:
    """Put loops over two terms of windows that overlap by rows around longer ones; the rows are at the depth `rows`.

    LLVM keeps what two iterations read of such windows in registers, which blocks of results need.
    """
    leaf = builder.leaf(identifier)
    before, terms = leaf.chain[: rows + 1], leaf.chain[rows + 1 :]
    windows = [e for read in leaf.reads for e in read.index if e.uses(rows)]
    pairs = [s for s in terms if s.extent == 2 and any(e.uses(s.depth) for e in windows)]
    reorder(builder, identifier, [s.id for s in (*before, *pairs, *(s for s in terms if s not in pairs))])


def _pieces(builder: PassBuilder, identifier: str, depth: int, plan: BlockPlan, why: str) -> list[str]:
    """Cut the columns, at `depth`, into whole panels and rests of at most as many vectors as a block has, or two.

    Columns whose number depends on sizes become panels of half as many vectors each time, and less than a vector.
    """
    width = plan.lanes * plan.vectors
    if run_time_extent(builder.loop(identifier, depth)) is not None:
        return _cut_tiles(builder, identifier, depth, [plan.lanes * n for n in _halves(plan.vectors)], why)
    pieces = _cut(builder, identifier, depth, width, least_rest(builder, identifier, depth, plan), why)
    rest = builder.loop(pieces[-1], depth).extent
    beyond = (-(-rest // plan.lanes) - max(2, plan.vectors)) * plan.lanes
    if rest % width and beyond > 0:
        pieces[-1:] = [s for part in peel(builder, pieces[-1:], depth, beyond, why) for s in part]
    return pieces


def _halves(number: int) -> list[int]:
    """A number and its halves, rounded down, to 1."""
    return [number >> times for times in range(number.bit_length())]


def _vectors_of(columns: Scope, plan: BlockPlan) -> int:
    """The vectors of a block whose panels are all columns of a piece, or of one block for the whole piece."""
    if run_time_extent(columns) is not None:
        return next((n for n in _halves(plan.vectors) if is_whole(columns, plan.lanes * n)), 1)
    width = plan.lanes * plan.vectors
    return plan.vectors if is_whole(columns, width) and columns.extent > width else -(-columns.extent // plan.lanes)


def _is_flat(builder: PassBuilder, identifier: str, plan: BlockPlan) -> bool:
    """True if the sum is short and has many results: all panels stay in a core's cache, and the results do not."""
    leaf = builder.leaf(identifier)
    machine, output = builder.game.machine, leaf.output.array
    panels = prod(s.extent for s in leaf.chain if uses(leaf.reads[plan.panel], s))
    results = prod(output.shape) * byte_width(output.dtype)
    return panels * byte_width(output.dtype) <= machine.private_cache // 2 and results > machine.private_cache


def _rests(builder: PassBuilder, identifier: str, before: set[str]) -> list[str]:
    """The sums of the peeled rests of a contraction."""
    like = builder.leaf(identifier)
    return [
        leaf.id
        for leaf in builder.nest.leaves
        if leaf.id not in before and leaf.accumulate is not None and leaf.reads[0].array is like.reads[0].array
    ]


def _rows_first(builder: PassBuilder, pieces: Sequence[str], depth: int) -> None:
    """Put the loops over blocks of rows around those over panels, so that results are stored row by row."""
    why = "all panels are in the cache: whole rows of results are stored"
    for identifier in pieces:
        while len((panels := builder.loop(identifier, depth)).children) > 1:
            if not builder.attempt("split_scopes", panels, why, after=1):
                return
        builder.attempt("swap_scopes", panels, why)


def _lone_row(builder: PassBuilder, identifier: str, depth: int) -> None:
    """Put a loop of one iteration inside the columns, in place of the missing rows."""
    columns = builder.loop(identifier, depth)
    why = "a block of one row"
    builder.make("tile_scope", columns, why, size=columns.extent)
    builder.make("swap_scopes", builder.loop(identifier, depth), why)


def _seal(builder: PassBuilder, identifier: str, before: set[str], depth: int) -> None:
    """Seal the loops of the blocks and of their copies against fusion."""
    array, sealed = builder.leaf(identifier).output.array.name, set[str]()
    for leaf in builder.nest.leaves:
        if leaf.id == identifier or leaf.id not in before or leaf.output.array.name == array:
            sealed.update(scope.id for scope in leaf.chain[depth:])
    for leaf in builder.nest.leaves:
        if any(scope.id in sealed for scope in leaf.chain[depth:]):
            sealed.update(scope.id for scope in leaf.chain[depth:])
    builder.sealed |= sealed


def _cut(builder: PassBuilder, identifier: str, depth: int, size: int, least: int, why: str) -> list[str]:
    """Peel off the remainder after whole tiles, but at least `least` iterations; returns the sums of both parts."""
    extent = builder.loop(identifier, depth).extent
    whole = extent // size * size
    if 0 < extent - whole < least:
        whole -= size
    return [statement for part in peel(builder, [identifier], depth, whole, why) for statement in part]


def _cut_tiles(builder: PassBuilder, identifier: str, depth: int, sizes: Sequence[int], why: str) -> list[str]:
    """Peel off the rest after whole tiles of an extent known at run time, from each rest the tiles of the next size."""
    pieces = [identifier]
    for size in dict.fromkeys(sizes):
        pieces[-1:] = [s for part in peel_tiles(builder, pieces[-1:], depth, size, why) for s in part]
    return pieces


def _columns(
    builder: PassBuilder, identifier: str, depth: int, plan: BlockPlan, why: str, *, whole: bool, even: bool
) -> None:
    """Tile one piece of the columns: [outer, columns, rows] to [outer, panels, rows, vectors, lanes]; then its rows.

    The panels are packed one by one, or all before the first one is used if `whole`. Blocks of few columns have more
    rows, unless `even`.
    """
    columns, height = builder.loop(identifier, depth), plan.height
    vectors, is_open = _vectors_of(columns, plan), run_time_extent(columns) is not None
    width = plan.lanes * vectors
    tiled = is_whole(columns, width) and (columns.extent > width or is_open)
    if tiled:
        builder.make("tile_scope", columns, why, size=width)
    # A plan that leaves half of the registers free found taller blocks no better.
    is_tall = not even and 2 * height > tallest(builder.game.machine, plan.vectors, masked=False)
    if is_tall and (vectors != plan.vectors or not is_whole(columns, plan.lanes)):
        height = tallest(builder.game.machine, vectors, masked=not is_whole(columns, plan.lanes))
        if not (is_open or tiled):
            height = _shared_height(builder, identifier, depth, height)
    inner = depth + tiled
    builder.make("tile_scope", builder.loop(identifier, inner), f"vectors of {plan.lanes} lanes", size=plan.lanes)
    for position in (inner + 1, inner):
        builder.make("swap_scopes", builder.loop(identifier, position), "a block is rows of vectors")
    _pack(builder, identifier, inner, plan, whole=whole)
    _pack_rows(builder, identifier, inner, plan)
    if run_time_extent(builder.loop(identifier, inner)) is not None:
        # Rests of a power of two have blocks of half as many rows each time, and no others.
        heights = _halves(height if vectors == plan.vectors else 1 << height.bit_length() - 1)[:3]
        for piece in _cut_tiles(builder, identifier, inner, heights, why):
            _block(builder, piece, inner, _height_of(builder.loop(piece, inner), heights), why, plan.panel)
        return
    for piece in _cut(builder, identifier, inner, height, 1, why):
        _block(builder, piece, inner, height, why, plan.panel)


def _shared_height(builder: PassBuilder, identifier: str, depth: int, tallest: int) -> int:
    """The height of blocks of one panel, whose columns are at `depth`, next to the rows.

    It is at most `tallest`. If threads share these blocks only, each gets the same number.
    """
    around, rows = builder.leaf(identifier).chain[:depth], builder.loop(identifier, depth + 1).extent
    threads = builder.game.machine.threads
    if rows <= tallest or any(balance(scope.extent, threads) >= EVEN for scope in around):
        return tallest
    return -(-rows // (-(-rows // (tallest * threads)) * threads))


def _height_of(rows: Scope, heights: Sequence[int]) -> int:
    """The greatest height whose whole blocks are all rows of a piece; 1 for the last rows."""
    return next((height for height in heights if height > 1 and is_whole(rows, height)), 1)


def _pack(builder: PassBuilder, identifier: str, rows: int, plan: BlockPlan, *, whole: bool) -> None:
    """Copy the panel in the order of the sum's reads: once, at binding, if it is constant, or if that pays."""
    leaf = builder.leaf(identifier)
    panel = leaf.reads[plan.panel]
    if is_packed(builder, panel, [plan.lanes]):
        return
    if is_bound(leaf, panel):
        if not _pack_panel(builder, identifier, leaf.chain[0], rows, plan):
            _pack_all(builder, identifier, rows, plan)
        builder.make("bind_array", builder.leaf(identifier).reads[plan.panel].array.name, ONCE)
        return
    is_contiguous = lane_stride(panel.index, panel.array.shape, rows + 2) is Stride.CONTIGUOUS
    count = leaf.chain[rows].extent
    if not is_repaid(builder.game.machine, leaf, panel, count, plan.height, apart=not is_contiguous):
        return
    # One copy serves all iterations that do not index it, and all blocks of rows.
    again = copies_of(leaf.chain[: len(plan.outer)], panel)
    inner = next((s for s in leaf.chain[len(plan.outer) : rows] if uses(panel, s)), leaf.chain[rows])
    line = builder.game.machine.cache_line
    narrow = is_contiguous and plan.lanes * plan.vectors * byte_width(panel.array.dtype) < line
    if not can_pack(leaf, panel) or (again == len(plan.outer) and not whole and not narrow):
        # Windows are larger than the array. A panel of its own is still in the core's cache when it is used, but
        # narrow panels would read each line several times.
        again, inner = len(plan.outer), leaf.chain[rows]
    around = leaf.chain[again] if again < len(plan.outer) else inner
    if not _pack_panel(builder, identifier, around, rows, plan) and around is leaf.chain[0]:
        _pack_all(builder, identifier, rows, plan)


def _pack_panel(builder: PassBuilder, identifier: str, around: Scope, rows: int, plan: BlockPlan) -> bool:
    """Copy the panel before the loop `around`; returns True if that was possible.

    The loop over rows of blocks is at the depth `rows`, around those over the vectors and the lanes of a block.
    """
    name = builder.leaf(identifier).reads[plan.panel].array.name
    if not builder.attempt("stage_in", around, "the sum reads contiguous memory", array=name, location="heap"):
        return False
    read = builder.leaf(identifier).reads[plan.panel]
    copied = read.array.name

    def place(dimension: int) -> int:
        depth = max(read.index[dimension].variables(), default=0)
        return 0 if depth <= rows else 2 if depth <= rows + 2 else 1

    order = sorted(range(len(read.index)), key=place)
    arrange_copy(builder, copied, order, "vectors of one term lie together")
    (writer,) = builder.nest.writers[copied]
    builder.attempt("vectorize", writer.chain[-1], "the lanes of a vector")
    if copy_squares(builder, writer.id):
        return True
    for scope in writer.chain[-2:-1]:
        if scope.extent <= plan.vectors + 1:
            builder.attempt("unroll", scope, "the vectors of one term")
    return True


def _pack_all(builder: PassBuilder, identifier: str, rows: int, plan: BlockPlan) -> None:
    """Copy the panel for all pieces of the columns, which one nest may contain, vector by vector."""
    why = "all columns in one copy: vectors of one term lie together"
    around = builder.loop(identifier, 0)
    pack_box(builder, around, lambda: builder.leaf(identifier).reads[plan.panel], [(rows + 2, plan.lanes)], why)


def _pack_rows(builder: PassBuilder, identifier: str, rows: int, plan: BlockPlan) -> None:
    """Copy the other operand with the rows of a block side by side, if rows are long and many blocks reuse them.

    The loop over rows is at the depth `rows`.
    """
    leaf = builder.leaf(identifier)
    if plan.rows is None:
        return
    scalar = leaf.reads[1 - plan.panel]
    name, outer = scalar.array.name, leaf.chain[:rows]
    near = _are_near(builder.game.machine, leaf, scalar, rows, plan.height)
    bound = is_bound(leaf, scalar)
    if (times_read(outer, scalar) < WORTH_PACKING and not bound) or near or not can_pack(leaf, scalar):
        return
    if builder.choices.choose("rows of blocks", ("packed", "in place")) == "in place":
        return
    if _read_copy(builder, identifier, 1 - plan.panel, plan.height):
        return
    why = "the rows of a block lie side by side, not pages apart"
    top = leaf.chain[0 if bound else copies_of(outer, scalar)]
    if not builder.attempt("stage_in", top, why, array=name, location="heap"):
        return
    copied = builder.leaf(identifier).reads[1 - plan.panel].array.name
    index = builder.leaf(identifier).reads[1 - plan.panel].index
    dimension = next(d for d, e in enumerate(index) if e.uses(rows))
    if builder.attempt("tile_dim", f"{copied}:{dimension}", why, size=plan.height):
        for d in range(dimension + 1, len(index)):
            builder.attempt("swap_dims", f"{copied}:{d}", why)
        _write_in_order(builder, copied, plan.height)
    if bound:
        builder.attempt("bind_array", copied, ONCE)


def _write_in_order(builder: PassBuilder, name: str, height: int) -> None:
    """Write a copy of rows block by block, if neighbouring rows lie side by side in the operand."""
    (writer,) = builder.nest.writers[name]
    source = writer.reads[0]
    beside = (s for s in writer.chain if lane_stride(source.index, source.array.shape, s.depth) is Stride.CONTIGUOUS)
    rows = next(beside, None)
    if rows is None or rows is writer.chain[-1]:
        return
    why = "the rows of a block are read together"
    tiles = tile(builder, rows, height, why) if rows.extent > height else None
    inner = rows.id if tiles is None else tiles.inner
    while builder.leaf(writer.id).chain[-1].id != inner and builder.attempt("swap_scopes", f"%{inner}", why):
        pass
    builder.attempt("unroll", f"%{inner}", why)


def _are_near(machine: Machine, leaf: Leaf, scalar: Access, rows: int, height: int) -> bool:
    """True if the rows of a block stay in near caches for the next panel; the loop over rows is at `rows`."""
    terms = prod(s.extent for s in leaf.chain if s.depth not in spatial_loops(leaf))
    width = byte_width(scalar.array.dtype)
    step = linear_address(scalar.index, scalar.array.shape).coefficient(rows)
    if step == 1:
        # Rows side by side: each term lies in another line, and often in another page.
        return terms * max(machine.cache_line, height * width) <= machine.cache_bytes[0]
    if evict_each_other(machine, step * width, height):
        return False
    return height * terms * width <= NEAR_ROWS * machine.cache_bytes[0]


def _read_copy(builder: PassBuilder, identifier: str, position: int, height: int) -> bool:
    """Read an operand from a copy that an earlier contraction packed in blocks of `height` rows, if there is one."""
    leaf = builder.leaf(identifier)
    read = leaf.reads[position]
    for writer in builder.nest.leaves[: leaf.order]:
        if not is_copy(writer) or writer.reads[0].array is not read.array or writer.output.array.shape[-1] != height:
            continue
        index = _index_in_copy(writer, read, leaf)
        why = "an earlier contraction has packed these rows"
        params = {"input": leaf.inputs.index(read), "array": writer.output.array.name, "index": index}
        if index and builder.attempt("outline_op", leaf, why, **params):
            return True
    return False


def _index_in_copy(writer: Leaf, read: Access, leaf: Leaf) -> str:
    """Location in a copy of an element that a statement reads; '' if the copy's loops do not run by elements."""
    places: dict[int, Expr] = {}
    for source, wanted in zip(writer.reads[0].index, read.index, strict=True):
        (variable, step), *others = source.terms or ((None, 0),)
        if isinstance(variable, int) and step == 1 and not others and not source.constant:
            places[variable] = wanted
        elif source != wanted:
            return ""
    if any(not places.keys() >= e.variables() for e in writer.output.index):
        return ""
    index = (e.substitute(places, leaf.extents) for e in writer.output.index)
    return ",".join(e.render(lambda d: f"{{{d}}}") for e in index)


def _block(builder: PassBuilder, identifier: str, rows: int, height: int, why: str, panel: int) -> None:
    """Tile one piece of the rows: [rows, vectors, lanes] around initialisation and sum becomes blocks in registers.

    `panel` is the read that is the panel.
    """
    size = min(height, builder.loop(identifier, rows).extent)
    builder.make("tile_scope", builder.loop(identifier, rows), why, size=size)
    for depth in (rows + 3, rows + 2, rows + 1):
        builder.make("split_scopes", builder.loop(identifier, depth), "zeros first, then the sum", after=1)
        split_epilogue(builder, identifier, depth, why)
    chain = [s.id for s in builder.leaf(identifier).chain]
    block, terms = chain[rows + 1 : rows + 4], chain[rows + 4 :]
    reorder(builder, identifier, [*chain[: rows + 1], *terms, *block])
    _to_registers(builder, identifier, rows, panel)


def _to_registers(builder: PassBuilder, identifier: str, depth: int, panel: int) -> None:
    """Keep the block in registers from its zeros to its last sum; the loop over blocks is at `depth`."""
    why = "the block is in registers until it is complete"
    first, back = own_block(builder, identifier, depth, why)
    overlaps = is_read_again(builder.leaf(identifier), panel)
    before = [*expand_inside(builder, identifier, depth, panel), *cast_inside(builder, identifier, panel)]
    for statement in (first, *before, identifier, *results_behind(builder, [identifier], depth, first, back)):
        chain = builder.leaf(statement).chain
        builder.attempt("vectorize", chain[-1], "the lanes of a vector")
        for scope in chain[-3:-1]:
            if scope.mapping is Mapping.SEQUENTIAL and scope.depth > depth and scope.extent <= MOST_STRAIGHT:
                builder.attempt("unroll", scope, "the block is straight code")
    terms = builder.leaf(identifier).chain[depth + 1 : -3]
    if prod(s.extent for s in builder.leaf(identifier).chain[depth + 1 : -1]) <= MOST_TERMS:
        for scope in reversed(terms):
            builder.attempt("unroll", f"%{scope.id}", "few terms: the sum is straight code")
    elif overlaps:
        builder.attempt("unroll", f"%{terms[-1].id}", "neighbouring rows read the same elements")
    builder.make("set_location", builder.leaf(identifier).output.array.name, why, location="register")
