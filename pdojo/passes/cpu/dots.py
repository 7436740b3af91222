"""Dot products of narrow numbers: contractions computed by an instruction of the machine, tile by tile.

The machine description gives each instruction a meaning: an accumulation of products of two operands, cast to a wider
type, over loops that index the first operand, the second (the columns) or both (the terms). In a contraction of that
form, the casts move to the product, and loops of the instruction's extents move innermost. The operand of the columns
is packed into panels in the instruction's layout, and blocks of accumulators stay in registers over the whole sum. The
rest that fills no tile does not use the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of, same_form
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import (
    MOST_STRAIGHT,
    ONCE,
    VECTORS,
    WORTH_CHOOSING,
    Block,
    accumulations,
    arrange_copy,
    best_blocks,
    can_pack,
    contraction_shape,
    has_terms,
    is_alone,
    is_bound,
    is_packed,
    narrow_factors,
    own_block,
    pack_box,
    peel,
    spatial_loops,
    steps_around,
    tiles_of,
    uses,
)
from pdojo.passes.common.loops import peel_rest, reorder, tile
from pdojo.passes.common.units import ProductUnit, dot_units
from pdojo.passes.cpu.epilogue import absorb_epilogue, results_behind, split_epilogue
from pdojo.passes.cpu.threads import balance, work

TILES = (1.0, 2.0, 4.0)
"""Costs of tile registers, in units of one instruction's time: issue of an instruction, issue of a load, latency of a
sum (Intel Optimization Reference Manual, AMX: TDPBF16PS 16 cycles, TILELOADD 8, sums 52).
"""
FEW = 8
"""Fewest terms in tiles per term left to vectors; a smaller unit leaves fewer."""
STORING = 4
"""Cycles to zero and to store an accumulator, besides the sum."""


@dataclass(frozen=True, slots=True)
class DotPlan:
    """The mapping of a contraction to a unit, with loops by identifier."""

    unit: ProductUnit
    outer: tuple[str, ...]
    steps: int
    """The number of outermost loops that hold other statements, too."""
    rows: str | None
    """None for a single row."""
    columns: str
    group: str
    """The loop of terms to cut into the instruction's loops."""
    block: Block
    """The block of accumulators; its rows and columns are tiles."""

    @property
    def why(self) -> str:
        """The note for the moves that make blocks."""
        size = f"{self.block.height} by {self.block.vectors}"
        return f"blocks of {size} accumulators of {self.unit.intrinsic.name} stay in registers"


def use_dot_units(builder: PassBuilder) -> None:
    """Give each contraction of narrow numbers to the largest instruction that fits, and its rest to smaller ones."""
    for unit in dot_units(builder.game.machine):
        for identifier in [leaf.id for leaf in builder.nest.leaves]:
            if (
                identifier in builder.nest.by_id
                and has_terms(builder.leaf(identifier))
                and _is_wanted(builder, identifier, unit)
            ):
                builder.transact(lambda identifier=identifier, unit=unit: _tile(builder, identifier, unit))


def _is_wanted(builder: PassBuilder, identifier: str, unit: ProductUnit) -> bool:
    """True unless vectors of the wide type are chosen, which some processors run faster than the instruction."""
    leaf = builder.leaf(identifier)
    if _plan(builder, leaf, unit) is None:
        return False
    options = (unit.intrinsic.name, "vectors")
    measured = builder.game.machine.measured.rates
    widest = max((rate for name, rate in measured.items() if name.startswith("fma_")), default=0.0)
    if 0 < measured.get(unit.intrinsic.name, 0.0) * unit.work < widest:
        options = options[::-1]
    return (
        work(leaf.chain[0]) < WORTH_CHOOSING
        or builder.choices.choose(f"products of {leaf.output.array.name}", options) == unit.intrinsic.name
    )


def _plan(builder: PassBuilder, leaf: Leaf, unit: ProductUnit) -> DotPlan | None:
    """The contraction's loops for the unit's loops, and the block of accumulators; None if the unit does not fit."""
    shape = contraction_shape(leaf)
    if shape is None or not unit.computes(builder, leaf):
        return None
    panel, other = leaf.reads[unit.columns], leaf.reads[1 - unit.columns]
    steps = steps_around(leaf)
    columns = [s for s in shape.own[unit.columns] if s.extent >= unit.lanes and s.depth >= steps]
    rows = [s for s in shape.own[1 - unit.columns] if s.extent >= unit.height and s.depth >= steps]
    terms = [s for s in shape.terms if uses(panel, s) and uses(other, s) and s.extent >= unit.terms]
    if not columns or not terms or not (rows or unit.height == 1) or not can_pack(leaf, panel):
        return None
    column, row = (max(found, key=lambda s: (s.extent, s.depth), default=None) for found in (columns, rows))
    assert column is not None
    # As many terms as possible fill groups.
    group = max(terms, key=lambda s: (s.extent // unit.terms * unit.terms / s.extent, s.extent, s.depth))
    rest = group.extent % unit.terms
    if unit.height > 1 and rest * FEW > group.extent:
        return None
    outer = [s for s in shape.spatial if s not in (row, column)]
    share = all(s.extent == 1 for s in outer)
    block = _best_block(builder, unit, row.extent if row else 1, column.extent, share=share)
    return DotPlan(unit, tuple(s.id for s in outer), steps, row.id if row else None, column.id, group.id, block)


def _best_block(builder: PassBuilder, unit: ProductUnit, rows: int, columns: int, *, share: bool = False) -> Block:
    """Rows and columns of a block in tiles: the cheapest block by estimate that fits the registers.

    With `share`, threads share the panels of columns.
    """
    machine = builder.game.machine
    high, wide = rows // unit.height, columns // unit.lanes

    def cost(height: int, vectors: int) -> float:
        parts = [(h, v, a * b) for h, a in tiles_of(high, height) for v, b in tiles_of(wide, vectors) if h * v]
        even = balance(-(-wide // vectors), machine.threads) if share else 1
        return sum(count * _cycles(machine, unit, h, v) for h, v, count in parts) / even

    registers = unit.intrinsic.registers or machine.vector_registers
    fitting = (vectors for vectors in VECTORS if vectors <= wide)
    return min(best_blocks(high, fitting, registers, cost), default=Block(float("inf"), 1, 1))


def _cycles(machine: Machine, unit: ProductUnit, height: int, vectors: int) -> float:
    """Time of one instruction's terms for all tiles of a block, with a share of the fixed costs.

    The unit is cycles for vectors, and one instruction's time for tile registers.
    """
    rate, loads, wait = TILES
    if not unit.intrinsic.registers:
        passes = machine.cpu.passes(unit.lanes * byte_width(unit.product.output.array.dtype))
        rate, loads, wait = machine.cpu.fma_pipes / passes, machine.cpu.load_pipes / passes, machine.cpu.fma_latency
    work, operands = height * vectors, height + vectors
    # Loads take issue slots even if they are not the bound.
    return (
        max(work / rate, operands / loads, wait, machine.cpu.near_load * vectors) + operands / 16 + STORING * work / 64
    )


def _tile(builder: PassBuilder, identifier: str, unit: ProductUnit) -> bool:
    """Apply the plan to one contraction; returns False if there is none."""
    leaf = builder.leaf(identifier)
    plan = _plan(builder, leaf, unit)
    if plan is None or not is_alone(leaf, plan.steps):
        return False
    depth = len(plan.outer)
    if not plan.steps:
        absorb_epilogue(builder, identifier)
    rows, columns = plan.rows, plan.columns
    if rows is None:
        rows, columns = tile(builder, columns, builder.scope(columns).extent, "a loop of one row")
    reorder(builder, identifier, [*plan.outer, columns, rows])
    for position, size in ((depth + 1, unit.height), (depth, unit.lanes)):
        _whole(builder, identifier, position, size, plan)
    before = {other.id for other in builder.nest.leaves}
    sums = _cut_terms(builder, identifier, plan)
    later: set[str] = set()
    if unit.height > 1:
        later.update(sums[1:])
        _rest_later(builder, sums, plan)
    narrow_factors(builder, identifier)
    for piece in _peeled(builder, sums, depth, plan.block.vectors * unit.lanes, plan.why):
        _columns(builder, piece, depth, plan)
    kept = {s.id for s in builder.leaf(identifier).chain[:depth]}
    for other in builder.nest.leaves:
        if other.id == identifier or (other.id not in before and other.id not in later):
            # Seal the loops of the blocks and of their copies against fusion.
            builder.sealed.update({s.id for s in other.chain} - kept)
    return True


def _whole(builder: PassBuilder, identifier: str, depth: int, size: int, plan: DotPlan) -> None:
    """Peel off the part of the loop at `depth` that fills no tile, into its own nest."""
    if not peel_rest(builder, builder.loop(identifier, depth), size, f"{plan.why}; the rest without it"):
        return
    for around in reversed(range(plan.steps, depth)):
        builder.make("split_scopes", builder.loop(identifier, around), "the rest by itself", after=1)


def _cut_terms(builder: PassBuilder, identifier: str, plan: DotPlan) -> list[str]:
    """Move the loop of grouped terms innermost; returns the sum, and the sum of the terms that fill no group."""
    spatial = len(plan.outer) + 2
    chain = [s.id for s in builder.leaf(identifier).chain]
    others = [s for s in chain[spatial:] if s != plan.group]
    reorder(builder, identifier, [*chain[:spatial], *others, plan.group])
    terms, size = builder.loop(identifier, -1), plan.unit.terms
    before = accumulations(builder, identifier)
    if not peel_rest(builder, terms, size, f"{plan.why}; the last terms without it"):
        return [identifier]
    for depth in reversed(range(spatial, spatial + len(others))):
        builder.make("split_scopes", builder.loop(identifier, depth), "the last terms later", after=1)
    return [identifier, *(i for i in accumulations(builder, identifier) if i not in before)]


def _rest_later(builder: PassBuilder, sums: list[str], plan: DotPlan) -> None:
    """Sum up the last terms in their own nest, so that vector code does not interrupt tiles."""
    while len(sums) > 1:
        rest = sums.pop()
        spatial = len(plan.outer) + 2
        for depth in reversed(range(spatial)):
            scope = builder.loop(sums[0], depth)
            builder.make("split_scopes", scope, "the last terms later", after=len(scope.children) - 1)
        chain = [s.id for s in builder.leaf(rest).chain]
        reorder(builder, rest, [*chain[: spatial - 2], chain[spatial - 1], *chain[spatial:], chain[spatial - 2]])


def _peeled(builder: PassBuilder, sums: list[str], depth: int, size: int, why: str) -> list[list[str]]:
    """The sums of whole tiles, and of the remainder that is peeled off after them."""
    return peel(builder, sums, depth, builder.loop(sums[0], depth).extent // size * size, why)


def _columns(builder: PassBuilder, sums: list[str], depth: int, plan: DotPlan) -> None:
    """Tile one piece of the columns: [outer, columns, rows] to [outer, panels, rows, vectors, tile]; then its rows."""
    unit, main = plan.unit, sums[0]
    extent, width = builder.loop(main, depth).extent, unit.lanes * plan.block.vectors
    tiled = extent > width
    if tiled:
        builder.make("tile_scope", builder.loop(main, depth), plan.why, size=width)
    inner = depth + tiled
    height = _best_block(builder, unit, builder.loop(main, inner + 1).extent, min(extent, width)).height
    builder.make("tile_scope", builder.loop(main, inner), "the columns of a tile", size=unit.lanes)
    for position in (inner + 1, inner):
        builder.make("swap_scopes", builder.loop(main, position), "a block is rows of tiles")
    if unit.height > 1:
        builder.make("tile_scope", builder.loop(main, inner), "the rows of a tile", size=unit.height)
        builder.make("swap_scopes", builder.loop(main, inner + 1), "a block is rows of tiles")
    for position in range(len(unit.groups)):
        size = prod(unit.groups[position:])
        builder.make("tile_scope", builder.loop(main, -1), "the terms of a tile", size=size)
    _pack(builder, main, depth, inner, unit.columns, plan)
    _pack_rows(builder, main, depth, inner, plan)
    for piece in _peeled(builder, sums, inner, height, plan.why):
        _rows(builder, piece, inner, height, plan)


def _factor(builder: PassBuilder, identifier: str, position: int) -> Leaf:
    """The statement besides a product that casts one of its factors."""
    leaf = builder.leaf(identifier)
    return next(w for w in builder.nest.writers[leaf.reads[position].array.name] if w.parent is leaf.parent)


def _tile_loops(builder: PassBuilder, identifier: str, inner: int, unit: ProductUnit) -> list[int]:
    """Depths of the loops for the instruction's loops, in the order of its meaning; rows of blocks are at `inner`."""
    last = len(builder.leaf(identifier).chain)
    height = unit.height > 1
    place = {"rows": inner + 2, "columns": inner + 2 + height}
    terms = iter(range(last - len(unit.groups), last))
    return [next(terms) if (role := unit.role(s)) == "terms" else place[role] for s in unit.product.chain]


def _pack(builder: PassBuilder, identifier: str, top: int, inner: int, position: int, plan: DotPlan) -> None:
    """Copy a narrow operand into the layout of the sum and of the instruction."""
    unit = plan.unit
    read = _factor(builder, identifier, position).reads[0]
    chain = builder.leaf(identifier).chain
    bound = is_bound(builder.leaf(identifier), read)
    around = chain[0] if bound else next((s for s in chain[top:inner] if uses(read, s)), chain[inner])
    why = "the instruction reads contiguous memory"
    if is_packed(builder, read, (unit.lanes, *unit.groups)):
        return
    if not builder.attempt("stage_in", around, why, array=read.array.name, location="heap"):
        _pack_all(builder, identifier, inner, position, plan, around)
        if bound:
            builder.make("bind_array", _factor(builder, identifier, position).reads[0].array.name, ONCE)
        return
    copied = _factor(builder, identifier, position).reads[0]
    name, loops = copied.array.name, _tile_loops(builder, identifier, inner, unit)
    order = {loops[depth]: rank for rank, depth in enumerate(unit.layout(position))}
    spatial = spatial_loops(builder.leaf(identifier))

    def key(dimension: int) -> tuple[int, int]:
        depth = max(copied.index[dimension].variables(), default=0)
        if depth in order:
            return (3, order[depth])
        # First the loops outside of the blocks, then the terms, then the tiles of a block.
        return (1 if depth not in spatial else 2 if depth > inner else 0, depth)

    wanted = sorted(range(len(copied.index)), key=key)
    arrange_copy(builder, name, wanted, "in the order in which the instruction reads")
    (writer,) = builder.nest.writers[name]
    if tensorize_copy(builder, writer.id):
        for scope in writer.chain[:-2][-1:]:
            builder.attempt("unroll", scope, "the tiles of one term")
    elif builder.attempt("swap_scopes", writer.chain[-2], "the lanes of a vector"):
        builder.attempt("vectorize", builder.loop(writer.id, -1), "the lanes of a vector")
    if bound:
        builder.attempt("bind_array", name, ONCE)


def _pack_all(builder: PassBuilder, identifier: str, inner: int, position: int, plan: DotPlan, around: Scope) -> None:
    """Copy a narrow operand for all pieces of the columns, which one nest may contain, tile by tile."""
    unit, loops = plan.unit, _tile_loops(builder, identifier, inner, plan.unit)
    depths = [loops[depth] for depth in unit.layout(position)]
    sizes = [unit.lanes, *(prod(unit.groups[k:]) for k in range(len(unit.groups)))]
    tile = list(zip(depths, sizes, strict=True))
    why = "all columns in one copy, tile by tile"
    pack_box(builder, around, lambda: _factor(builder, identifier, position).reads[0], tile, why)


def _pack_rows(builder: PassBuilder, identifier: str, top: int, inner: int, plan: DotPlan) -> None:
    """Copy the other operand too, if its terms are not contiguous."""
    position = 1 - plan.unit.columns
    read = _factor(builder, identifier, position).reads[0]
    last = builder.loop(identifier, -1)
    if linear_address(read.index, read.array.shape).coefficient(last.depth) != 1:
        _pack(builder, identifier, top, inner, position, plan)


def _rows(builder: PassBuilder, sums: list[str], inner: int, height: int, plan: DotPlan) -> None:
    """Tile one piece of the rows: blocks of accumulators from their zeros to their last sum."""
    unit, main = plan.unit, sums[0]
    size = min(height, builder.loop(main, inner).extent)
    builder.make("tile_scope", builder.loop(main, inner), plan.why, size=size)
    root = _split(builder, sums, inner, unit)
    why = "the block is in registers until it is complete"
    first, back = own_block(builder, main, inner, why)
    for statement in (first, *sums[1:], *results_behind(builder, sums, inner, first, back)):
        _straight(builder, statement, inner)
    for scope in builder.leaf(main).chain[-unit.loops - 2 : -unit.loops]:
        builder.attempt("unroll", scope, "the block is straight code")
    builder.make("tensorize", root, "one instruction for a tile", intrinsic=unit.intrinsic.name)
    # Blocks beyond the registers are on the stack, and the compiler loads them from there.
    builder.attempt("set_location", builder.leaf(main).output.array.name, why, location="register")


def _split(builder: PassBuilder, sums: list[str], inner: int, unit: ProductUnit) -> str:
    """Give zeros, the sum and its last terms a nest each; returns the location of the instruction's loops."""
    main = sums[0]
    count = 4 if unit.height > 1 else 3
    for depth in reversed(range(inner + 1, inner + 1 + count)):
        for _ in sums:
            builder.make("split_scopes", builder.loop(main, depth), "zeros first, then the sum", after=1)
        split_epilogue(builder, sums[-1], depth, "the results of a complete block")
    chain = [s.id for s in builder.leaf(main).chain]
    tile = [chain[d] for d in _tile_loops(builder, main, inner + 1, unit)]
    terms = [s for s in chain[inner + 1 + count :] if s not in tile]
    reorder(builder, main, [*chain[: inner + 1], *terms, *chain[inner + 1 : inner + 3], *tile])
    for rest in sums[1:]:
        around = [s.id for s in builder.leaf(rest).chain]
        block = around[inner + 1 : inner + 1 + count]
        reorder(builder, rest, [*around[: inner + 1], *around[inner + 1 + count :], *block])
    return f"%{tile[0]}"


def _straight(builder: PassBuilder, identifier: str, depth: int) -> None:
    """Unroll a block, with one instruction for each tile, or vectors."""
    chain = builder.leaf(identifier).chain
    if not tensorize_copy(builder, identifier):
        builder.attempt("vectorize", chain[-1], "the lanes of a vector")
    for scope in builder.leaf(identifier).chain[depth + 1 :]:
        if scope.mapping is Mapping.SEQUENTIAL and scope.extent <= MOST_STRAIGHT:
            builder.attempt("unroll", scope, "the block is straight code")


def tensorize_copy(builder: PassBuilder, identifier: str) -> bool:
    """Tensorise a statement other than a sum by the first matching instruction, largest tile first."""
    leaf = builder.leaf(identifier)
    for scope in leaf.chain:
        for name, intrinsic in available(builder.game.machine).items():
            pattern = pattern_of(intrinsic)
            (*others, last) = pattern.nest.leaves
            if others or last.accumulate is not None or not same_form(pattern.root, scope):
                continue
            if builder.attempt("tensorize", scope, "one instruction for a tile", intrinsic=name):
                return True
    return False
