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

from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of, same_form
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.common.threads import balance, work
from pdojo.search.kinds.cpu.contraction import (
    MOST_STRAIGHT,
    VECTORS,
    WORTH_CHOOSING,
    can_pack,
    has_terms,
    is_alone,
    loop_at,
    reorder,
    spatial_loops,
    uses,
)
from pdojo.search.kinds.cpu.units import Unit, units

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

    unit: Unit
    outer: tuple[str, ...]
    rows: str | None
    columns: str
    group: str
    """The loop of terms to cut into the instruction's loops."""
    height: int
    """Rows of a block, in tiles."""
    vectors: int
    """Columns of a block, in tiles."""

    @property
    def why(self) -> str:
        """The note for the moves that make blocks."""
        return f"blocks of {self.height} by {self.vectors} accumulators of {self.unit.intrinsic.name} stay in registers"


def use_dot_units(builder: PassBuilder) -> None:
    """Give each contraction of narrow numbers to the largest instruction that fits, and its rest to smaller ones."""
    for unit in units(builder.game.machine):
        for identifier in [leaf.id for leaf in builder.nest.leaves]:
            if (
                identifier in builder.nest.by_id
                and has_terms(builder.leaf(identifier))
                and _is_wanted(builder, identifier, unit)
            ):
                builder.transact(lambda identifier=identifier, unit=unit: _tile(builder, identifier, unit))


def _is_wanted(builder: PassBuilder, identifier: str, unit: Unit) -> bool:
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


def _narrow(builder: PassBuilder, leaf: Leaf, unit: Unit) -> bool:
    """True if the statement is the unit's accumulation of casts of the same types."""
    product = unit.product
    same = (leaf.accumulate, leaf.contracted, leaf.function) == (
        product.accumulate,
        product.contracted,
        product.function,
    )
    if not same or len(leaf.reads) != 2 or leaf.output.array.dtype != product.output.array.dtype:
        return False
    for read, cast in zip(leaf.reads, unit.casts, strict=True):
        writers = builder.nest.writers[read.array.name]
        if len(writers) != 1 or (writers[0].function, writers[0].accumulate) != (cast.function, None):
            return False
        dtypes = [[a.array.dtype for a in one.accesses] for one in (writers[0], cast)]
        if dtypes[0] != dtypes[1]:
            return False
    return True


def _plan(builder: PassBuilder, leaf: Leaf, unit: Unit) -> DotPlan | None:
    """The contraction's loops for the unit's loops, and the block of accumulators; None if the unit does not fit."""
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    program = builder.game.program
    if not _narrow(builder, leaf, unit) or not all(program.permits(Numerics(n)) for n in unit.intrinsic.numerics):
        return None
    panel, other = leaf.reads[unit.columns], leaf.reads[1 - unit.columns]
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    columns = [s for s in spatial if uses(panel, s) and not uses(other, s) and s.extent >= unit.lanes]
    rows = [s for s in spatial if uses(other, s) and not uses(panel, s) and s.extent >= unit.height]
    terms = [s for s in leaf.chain if s not in spatial and uses(panel, s) and uses(other, s) and s.extent >= unit.terms]
    if not columns or not terms or not rows or not can_pack(leaf, panel):
        return None
    column, row, group = (max(found, key=lambda s: (s.extent, s.depth)) for found in (columns, rows, terms))
    rest = group.extent % unit.terms
    if unit.height > 1 and rest * FEW > group.extent:
        return None
    alone = not any(s.extent > 1 for s in spatial if s not in (row, column))
    height, vectors = _block(builder, unit, row.extent, column.extent, share=alone)
    outer = tuple(s.id for s in spatial if s not in (row, column))
    return DotPlan(unit, outer, row.id, column.id, group.id, height, vectors)


def _block(builder: PassBuilder, unit: Unit, rows: int, columns: int, *, share: bool = False) -> tuple[int, int]:
    """Rows and columns of a block in tiles: the cheapest block by estimate that fits the registers.

    With `share`, threads share the panels of columns.
    """
    registers = unit.intrinsic.registers or builder.game.machine.vector_registers
    high, wide = rows // unit.height, columns // unit.lanes
    best = (float("inf"), 1, 1)
    for vectors in VECTORS:
        for height in range(1, min(32, high) + 1):
            if vectors > wide or height * vectors + vectors + 1 > registers:
                break
            cycles = sum(
                a * b * _cycles(builder.game.machine, unit, h, v)
                for h, a in ((height, high // height), (high % height, 1))
                for v, b in ((vectors, wide // vectors), (wide % vectors, 1))
                if h * v
            )
            even = balance(-(-wide // vectors), builder.game.machine.threads) if share else 1
            best = min(best, (cycles / even, height, vectors))
    return best[1], best[2]


def _cycles(machine: Machine, unit: Unit, height: int, vectors: int) -> float:
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


def _tile(builder: PassBuilder, identifier: str, unit: Unit) -> bool:
    """Apply the plan to one contraction; returns False if a move is illegal."""
    leaf = builder.leaf(identifier)
    plan = _plan(builder, leaf, unit)
    if plan is None or plan.rows is None or not is_alone(builder, leaf):
        return False
    depth = len(plan.outer)
    if not reorder(builder, identifier, [*plan.outer, plan.columns, plan.rows]):
        return False
    if not all(
        _whole(builder, identifier, position, size, plan)
        for position, size in ((depth + 1, unit.height), (depth, unit.lanes))
    ):
        return False
    before = {other.id for other in builder.nest.leaves}
    sums = _cut_terms(builder, identifier, plan)
    later = set(sums[1:]) if sums and unit.height > 1 else set[str]()
    if sums is not None and unit.height > 1 and not _rest_later(builder, sums, plan):
        return False
    if sums is None or not _narrow_factors(builder, sums):
        return False
    width = plan.vectors * unit.lanes
    if not all(_columns(builder, piece, depth, plan) for piece in _peeled(builder, sums, depth, width, plan.why)):
        return False
    kept = {s.id for s in builder.leaf(identifier).chain[:depth]}
    for other in builder.nest.leaves:
        if other.id == identifier or (other.id not in before and other.id not in later):
            # Seal the loops of the blocks and of their copies against fusion.
            builder.sealed.update({s.id for s in other.chain} - kept)
    return True


def _whole(builder: PassBuilder, identifier: str, depth: int, size: int, plan: DotPlan) -> bool:
    """Peel off the part of the loop at `depth` that fills no tile, into its own nest."""
    scope = loop_at(builder, identifier, depth)
    if scope.extent % size == 0:
        return True
    if not builder.attempt("peel_scope", scope, f"{plan.why}; the rest without it", after=scope.extent // size * size):
        return False
    return all(
        builder.attempt("split_scopes", loop_at(builder, identifier, around), "the rest by itself", after=1)
        for around in reversed(range(depth))
    )


def _cut_terms(builder: PassBuilder, identifier: str, plan: DotPlan) -> list[str] | None:
    """Move the loop of grouped terms innermost; returns the sum, and the sum of the terms that fill no group."""
    spatial = len(plan.outer) + 2
    chain = [s.id for s in builder.leaf(identifier).chain]
    others = [s for s in chain[spatial:] if s != plan.group]
    if not reorder(builder, identifier, [*chain[:spatial], *others, plan.group]):
        return None
    terms, size = loop_at(builder, identifier, -1), plan.unit.terms
    if terms.extent % size == 0:
        return [identifier]
    before = _sums(builder, identifier)
    if not builder.attempt(
        "peel_scope", terms, f"{plan.why}; the last terms without it", after=terms.extent // size * size
    ):
        return None
    for depth in reversed(range(spatial, spatial + len(others))):
        if not builder.attempt("split_scopes", loop_at(builder, identifier, depth), "the last terms later", after=1):
            return None
    return [identifier, *_new(builder, identifier, before)]


def _rest_later(builder: PassBuilder, sums: list[str], plan: DotPlan) -> bool:
    """Sum up the last terms in their own nest, so that vector code does not interrupt tiles."""
    while len(sums) > 1:
        rest = sums.pop()
        spatial = len(plan.outer) + 2
        for depth in reversed(range(spatial)):
            scope = loop_at(builder, sums[0], depth)
            if not builder.attempt("split_scopes", scope, "the last terms later", after=len(scope.children) - 1):
                return False
        chain = [s.id for s in builder.leaf(rest).chain]
        rows = [*chain[: spatial - 2], chain[spatial - 1], *chain[spatial:], chain[spatial - 2]]
        if not reorder(builder, rest, rows):
            return False
    return True


def _sums(builder: PassBuilder, identifier: str) -> set[str]:
    """The accumulations into the array that a statement writes."""
    array = builder.leaf(identifier).output.array.name
    return {w.id for w in builder.nest.writers[array] if w.accumulate is not None}


def _new(builder: PassBuilder, identifier: str, before: set[str]) -> list[str]:
    """The accumulations that are not in `before`, in order."""
    return sorted(_sums(builder, identifier) - before, key=lambda i: builder.leaf(i).order)


def _narrow_factors(builder: PassBuilder, sums: list[str]) -> bool:
    """Inline the casts at the product, and delete casts without readers."""
    identifier = sums[0]
    wide = {read.array.name for read in builder.leaf(identifier).reads}
    why = "the instruction takes narrow numbers"
    if not all(builder.attempt("inline_op", builder.leaf(identifier), why, input=position) for position in (0, 1)):
        return False
    for name in sorted(wide):
        for writer in builder.nest.writers[name]:
            builder.attempt("delete_op", writer, "nobody reads it any more")
    return True


def _peeled(builder: PassBuilder, sums: list[str], depth: int, size: int, why: str) -> list[list[str]]:
    scope = loop_at(builder, sums[0], depth)
    whole = scope.extent // size * size
    if whole in (0, scope.extent):
        return [sums]
    before = _sums(builder, sums[0])
    if not builder.attempt("peel_scope", scope, f"{why}; the rest by itself", after=whole):
        return [sums]
    return [sums, _new(builder, sums[0], before)]


def _columns(builder: PassBuilder, sums: list[str], depth: int, plan: DotPlan) -> bool:
    """Tile one piece of the columns: [outer, columns, rows] to [outer, panels, rows, vectors, tile]; then its rows."""
    unit, main = plan.unit, sums[0]
    extent, width = loop_at(builder, main, depth).extent, unit.lanes * plan.vectors
    tiled = extent > width
    if tiled and not builder.attempt("tile_scope", loop_at(builder, main, depth), plan.why, size=width):
        return False
    inner = depth + tiled
    rows = loop_at(builder, main, inner + 1).extent
    height, _ = _block(builder, unit, rows, min(extent, width))
    if not builder.attempt("tile_scope", loop_at(builder, main, inner), "the columns of a tile", size=unit.lanes):
        return False
    for position in (inner + 1, inner):
        if not builder.attempt("swap_scopes", loop_at(builder, main, position), "a block is rows of tiles"):
            return False
    if unit.height > 1 and not (
        builder.attempt("tile_scope", loop_at(builder, main, inner), "the rows of a tile", size=unit.height)
        and builder.attempt("swap_scopes", loop_at(builder, main, inner + 1), "a block is rows of tiles")
    ):
        return False
    for position in range(len(unit.groups)):
        size = prod(unit.groups[position:])
        if not builder.attempt("tile_scope", loop_at(builder, main, -1), "the terms of a tile", size=size):
            return False
    if not (_pack(builder, main, depth, inner, unit.columns, plan) and _pack_rows(builder, main, depth, inner, plan)):
        return False
    return all(_rows(builder, piece, inner, height, plan) for piece in _peeled(builder, sums, inner, height, plan.why))


def _factor(builder: PassBuilder, identifier: str, position: int) -> Leaf:
    """The statement besides a product that casts one of its factors."""
    leaf = builder.leaf(identifier)
    return next(w for w in builder.nest.writers[leaf.reads[position].array.name] if w.parent is leaf.parent)


def _tile_loops(builder: PassBuilder, identifier: str, inner: int, unit: Unit) -> list[int]:
    """Depths of the loops for the instruction's loops, in the order of its meaning; rows of blocks are at `inner`."""
    last = len(builder.leaf(identifier).chain)
    height = unit.height > 1
    place = {"rows": inner + 2, "columns": inner + 2 + height}
    terms = iter(range(last - len(unit.groups), last))
    return [next(terms) if (role := unit.role(s)) == "terms" else place[role] for s in unit.product.chain]


def _pack(builder: PassBuilder, identifier: str, top: int, inner: int, position: int, plan: DotPlan) -> bool:
    """Copy a narrow operand into the layout of the sum and of the instruction."""
    unit = plan.unit
    read = _factor(builder, identifier, position).reads[0]
    chain = builder.leaf(identifier).chain
    around = next((s for s in chain[top:inner] if uses(read, s)), chain[inner])
    why = "the instruction reads contiguous memory"
    if not builder.attempt("stage_in", around, why, array=read.array.name, location="heap"):
        return False
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

    _arrange(builder, name, sorted(range(len(copied.index)), key=key))
    (writer,) = builder.nest.writers[name]
    if tensorize_copy(builder, writer.id):
        for scope in writer.chain[:-2][-1:]:
            builder.attempt("unroll", scope, "the tiles of one term")
    elif builder.attempt("swap_scopes", writer.chain[-2], "the lanes of a vector"):
        builder.attempt("vectorize", builder.leaf(writer.id).chain[-1], "the lanes of a vector")
    return True


def _arrange(builder: PassBuilder, name: str, wanted: list[int]) -> None:
    """Permute the dimensions of a copy, and the loops that write it, into the order `wanted`."""
    now = list(range(len(wanted)))
    for target, dimension in enumerate(wanted):
        for place in reversed(range(target, now.index(dimension))):
            builder.attempt("swap_dims", f"{name}:{place}", "in the order in which the instruction reads")
            (writer,) = builder.nest.writers[name]
            outside = len(writer.chain) - len(wanted)
            builder.attempt("swap_scopes", writer.chain[outside + place], "written in order")
            now[place], now[place + 1] = now[place + 1], now[place]


def _pack_rows(builder: PassBuilder, identifier: str, top: int, inner: int, plan: DotPlan) -> bool:
    """Copy the other operand too, if its terms are not contiguous."""
    unit = plan.unit
    position = 1 - unit.columns
    read = _factor(builder, identifier, position).reads[0]
    last = builder.leaf(identifier).chain[-1]
    if linear_address(read.index, read.array.shape).coefficient(last.depth) == 1:
        return True
    return _pack(builder, identifier, top, inner, position, plan)


def _rows(builder: PassBuilder, sums: list[str], inner: int, height: int, plan: DotPlan) -> bool:
    """Tile one piece of the rows: blocks of accumulators from their zeros to their last sum."""
    unit, main = plan.unit, sums[0]
    array = builder.leaf(main).output.array.name
    size = min(height, loop_at(builder, main, inner).extent)
    if not builder.attempt("tile_scope", loop_at(builder, main, inner), plan.why, size=size):
        return False
    root = _split(builder, sums, inner, unit)
    if root is None or not _own_memory(builder, sums, array, inner):
        return False
    for scope in builder.leaf(main).chain[-unit.loops - 2 : -unit.loops]:
        builder.attempt("unroll", scope, "the block is straight code")
    why = "one instruction for a tile"
    if not builder.attempt("tensorize", root, why, intrinsic=unit.intrinsic.name):
        return False
    # Blocks beyond the registers are on the stack, and the compiler loads them from there.
    copied = builder.leaf(main).output.array.name
    builder.attempt("set_location", copied, "the block is in registers until it is complete", location="register")
    return True


def _split(builder: PassBuilder, sums: list[str], inner: int, unit: Unit) -> str | None:
    """Split zeros, the sum and its last terms into nests; returns the location of the instruction's loops."""
    main = sums[0]
    count = 4 if unit.height > 1 else 3
    for depth in reversed(range(inner + 1, inner + 1 + count)):
        for _ in sums:
            why = "zeros first, then the sum"
            if not builder.attempt("split_scopes", loop_at(builder, main, depth), why, after=1):
                return None
    chain = [s.id for s in builder.leaf(main).chain]
    tile = [chain[d] for d in _tile_loops(builder, main, inner + 1, unit)]
    terms = [s for s in chain[inner + 1 + count :] if s not in tile]
    if not reorder(builder, main, [*chain[: inner + 1], *terms, *chain[inner + 1 : inner + 3], *tile]):
        return None
    for rest in sums[1:]:
        around = [s.id for s in builder.leaf(rest).chain]
        block = around[inner + 1 : inner + 1 + count]
        if not reorder(builder, rest, [*around[: inner + 1], *around[inner + 1 + count :], *block]):
            return None
    return f"%{tile[0]}"


def _own_memory(builder: PassBuilder, sums: list[str], array: str, depth: int) -> bool:
    """Keep the block in its own buffer from its zeros to its last sum; the loop over blocks is at `depth`."""
    main, why = sums[0], "the block is in registers until it is complete"
    if not builder.attempt("stage_out", loop_at(builder, main, depth), why, array=array, location="heap"):
        return False
    copied = builder.leaf(main).output.array.name
    (back,) = [w for w in builder.nest.writers[array] if any(r.array.name == copied for r in w.reads)]
    if loop_at(builder, main, depth).extent == 1:
        # Copies have no scopes of one iteration.
        beside = loop_at(builder, back.id, depth)
        builder.attempt("tile_scope", beside, why, size=beside.extent)
    if not builder.attempt("join_scopes", loop_at(builder, main, depth), why):
        return False
    builder.exhaust(lambda: [f"{copied}:{d}" for d in range(len(builder.nest.arrays[copied].shape))], "reuse_dims", why)
    first = next(w for w in builder.nest.writers[copied] if w.accumulate is None)
    for statement in (first.id, *sums[1:], back.id):
        _straight(builder, statement, depth)
    return True


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
