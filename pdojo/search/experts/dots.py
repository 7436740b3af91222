"""Dot products of narrow numbers: contractions that an instruction of the machine computes, tile by tile.

Which instructions there are, and what they mean, is read from the machine description: an accumulation of products of
two operands that are cast to a wider type, over loops of which some index the first operand, some the second (the
columns) and some both (the terms). A contraction of that form gets the casts where the product is, loops of the
instruction's extents innermost, the operand of the columns in panels that lie in memory as the instruction wants them,
and blocks of accumulators that stay in registers over the whole sum. What fills no tile is done without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pdojo.dialect.analysis.lanes import linear_address
from pdojo.dialect.analysis.tensor import available
from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.intrinsic import Intrinsic, Pattern, pattern_of, same_form
from pdojo.dialect.nest import Access, Leaf, Scope
from pdojo.search.experts.contraction import (
    MOST_STRAIGHT,
    NEAR,
    VECTORS,
    can_pack,
    has_terms,
    is_alone,
    loop_at,
    reorder,
    spatial_loops,
    uses,
)
from pdojo.search.experts.player import Player
from pdojo.search.experts.threads import balance

WAIT = 4.0
"""Cycles until a sum can be added to again."""
LOADS = 2.0
"""Operands that are loaded in a cycle."""
STORING = 4
"""Cycles to set an accumulator to zero and to store it, beside the sum."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An instruction that adds up products of narrow numbers."""

    intrinsic: Intrinsic
    pattern: Pattern
    product: Leaf
    """The accumulation in its meaning."""
    casts: tuple[Leaf, Leaf]
    """The statements that make the factors, in order."""
    columns: int
    """The factor that the innermost dimension of the accumulators indexes."""
    lanes: int
    """Columns of a tile."""
    height: int
    """Rows of a tile; 1 where no loop of the meaning is over rows."""
    groups: tuple[int, ...]
    """Extents of the loops over terms, outermost first."""

    @property
    def terms(self) -> int:
        """Terms of a sum that the instruction adds up at once."""
        return prod(self.groups)

    @property
    def loops(self) -> int:
        """Loops of the meaning."""
        return len(self.product.chain)

    @property
    def work(self) -> int:
        """Products of one instruction."""
        return self.terms * self.lanes * self.height

    def role(self, scope: Scope) -> str:
        """What a loop of the meaning is over."""
        in_columns, in_rows = (uses(self.factor(p), scope) for p in (self.columns, 1 - self.columns))
        return "terms" if in_columns and in_rows else "columns" if in_columns else "rows"

    def factor(self, position: int) -> Access:
        """The narrow operand of a factor, in the meaning."""
        return self.casts[position].reads[0]

    def layout(self, position: int) -> list[int]:
        """The depths of the loops that index a narrow operand, those with the longest steps in memory first."""
        access = self.factor(position)
        steps, free = self.pattern.address(access)
        depths = [s.depth for s in self.casts[position].chain if uses(access, s)]
        return sorted(depths, key=lambda d: (d not in free, -steps.coefficient(d)))


@dataclass(frozen=True, slots=True)
class Plan:
    """How a contraction is given to a unit; loops by identifier."""

    unit: Unit
    outer: tuple[str, ...]
    rows: str | None
    columns: str
    group: str
    """The loop of terms that is cut into the instruction's."""
    height: int
    """Rows of a block, in tiles."""
    vectors: int
    """Columns of a block, in tiles."""

    @property
    def why(self) -> str:
        """The reason for the moves that make blocks."""
        return f"blocks of {self.height} by {self.vectors} accumulators of {self.unit.intrinsic.name} stay in registers"


def units(player: Player) -> list[Unit]:
    """The machine's dot products of narrow numbers, the largest first."""
    found = (_unit(intrinsic) for intrinsic in available(player.game.machine).values())
    return sorted((u for u in found if u is not None), key=lambda u: -u.work)


def _unit(intrinsic: Intrinsic) -> Unit | None:
    """What the meaning of an intrinsic says, where it is a dot product of numbers that are cast first."""
    pattern = pattern_of(intrinsic)
    *casts, last = pattern.nest.leaves
    alone = all(len(s.children) == 1 for s in last.chain[:-1])
    if not alone or len(casts) != 2 or last.accumulate is None or len(last.reads) != 2:
        return None
    by_name = {leaf.output.array.name: leaf for leaf in casts}
    factors = [by_name.get(read.array.name) for read in last.reads]
    first, second = factors[0], factors[1]
    if first is None or second is None or first is second or not (_widens(first) and _widens(second)):
        return None
    inner = last.output.index[-1].variables()
    return _shaped(Unit(intrinsic, pattern, last, (first, second), 1, 1, 1, ()), set(inner))


def _widens(leaf: Leaf) -> bool:
    """Whether a statement is a cast to a wider type."""
    return (
        leaf.accumulate is None
        and len(leaf.inputs) == len(leaf.reads) == 1
        and byte_width(leaf.reads[0].array.dtype) < byte_width(leaf.output.array.dtype)
    )


def _shaped(unit: Unit, inner: set[int]) -> Unit | None:
    """The unit with its tile: one loop of columns, at most one of rows, the others of terms."""
    chain, output = unit.product.chain, unit.product.output
    using = [[s for s in chain if uses(unit.factor(p), s)] for p in (0, 1)]
    summed = [s for s in chain if not uses(output, s)]
    columns = next((p for p in (0, 1) if any(s.depth in inner for s in using[p])), None)
    if columns is None or len(inner) != 1:
        return None
    spatial = [[s for s in using[p] if s not in summed] for p in (columns, 1 - columns)]
    if len(spatial[0]) != 1 or len(spatial[1]) > 1 or spatial[0] == spatial[1] or not summed:
        return None
    if any(s not in using[0] or s not in using[1] for s in summed):
        return None
    height = spatial[1][0].extent if spatial[1] else 1
    groups = tuple(s.extent for s in summed)
    return Unit(unit.intrinsic, unit.pattern, unit.product, unit.casts, columns, spatial[0][0].extent, height, groups)


def use_dot_units(player: Player) -> None:
    """Give every contraction of narrow numbers to the largest instruction that takes it, the rest to smaller ones."""
    for unit in units(player):
        for identifier in [leaf.id for leaf in player.nest.leaves]:
            if identifier in player.nest.by_id and has_terms(player.leaf(identifier)):
                player.transact(lambda identifier=identifier, unit=unit: _tile(player, identifier, unit))


def _narrow(player: Player, leaf: Leaf, unit: Unit) -> bool:
    """Whether the statement is the unit's accumulation of casts of the same types."""
    product = unit.product
    same = (leaf.accumulate, leaf.contracted, leaf.function) == (
        product.accumulate,
        product.contracted,
        product.function,
    )
    if not same or len(leaf.reads) != 2 or leaf.output.array.dtype != product.output.array.dtype:
        return False
    for read, cast in zip(leaf.reads, unit.casts, strict=True):
        writers = player.nest.writers[read.array.name]
        if len(writers) != 1 or (writers[0].function, writers[0].accumulate) != (cast.function, None):
            return False
        dtypes = [[a.array.dtype for a in one.accesses] for one in (writers[0], cast)]
        if dtypes[0] != dtypes[1]:
            return False
    return True


def _plan(player: Player, leaf: Leaf, unit: Unit) -> Plan | None:
    """The loops that the unit's are cut from, and the block of accumulators."""
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return None
    program = player.game.program
    if not _narrow(player, leaf, unit) or not all(program.permits(Numerics(n)) for n in unit.intrinsic.numerics):
        return None
    panel, other = leaf.reads[unit.columns], leaf.reads[1 - unit.columns]
    spatial = [s for s in leaf.chain if s.depth in spatial_loops(leaf)]
    columns = [s for s in spatial if uses(panel, s) and not uses(other, s) and s.extent >= unit.lanes]
    rows = [s for s in spatial if uses(other, s) and not uses(panel, s) and s.extent >= unit.height]
    terms = [s for s in leaf.chain if s not in spatial and uses(panel, s) and uses(other, s) and s.extent >= unit.terms]
    if not columns or not terms or not rows or not can_pack(leaf, panel):
        return None
    column, row, group = (max(found, key=lambda s: (s.extent, s.depth)) for found in (columns, rows, terms))
    alone = not any(s.extent > 1 for s in spatial if s not in (row, column))
    height, vectors = _block(player, unit, row.extent, column.extent, share=alone)
    outer = tuple(s.id for s in spatial if s not in (row, column))
    return Plan(unit, outer, row.id, column.id, group.id, height, vectors)


def _block(player: Player, unit: Unit, rows: int, columns: int, *, share: bool = False) -> tuple[int, int]:
    """Rows and columns of a block in tiles: the cheapest estimate of those that fit the registers.

    Threads share the panels where nothing else is there to `share`.
    """
    registers = unit.intrinsic.registers or player.game.machine.vector_registers
    high, wide = rows // unit.height, columns // unit.lanes
    best = (float("inf"), 1, 1)
    for vectors in VECTORS:
        for height in range(1, min(32, high) + 1):
            if vectors > wide or height * vectors + vectors + 1 > registers:
                break
            cycles = sum(
                a * b * _cycles(h, v)
                for h, a in ((height, high // height), (high % height, 1))
                for v, b in ((vectors, wide // vectors), (wide % vectors, 1))
                if h * v
            )
            even = balance(-(-wide // vectors), player.game.machine.threads) if share else 1
            best = min(best, (cycles / even, height, vectors))
    return best[1], best[2]


def _cycles(height: int, vectors: int) -> float:
    """Cycles for the terms of one instruction in all tiles of a block, and a part of what is done once."""
    # Loads take slots even where they are not the bound.
    bound = max(height * vectors, (height + vectors) / LOADS, WAIT, NEAR * vectors)
    return bound + (height + vectors) / 16 + STORING * height * vectors / 64


def _tile(player: Player, identifier: str, unit: Unit) -> bool:
    """The whole plan for one contraction; whether all of it could be done."""
    leaf = player.leaf(identifier)
    plan = _plan(player, leaf, unit)
    if plan is None or plan.rows is None or not is_alone(player, leaf):
        return False
    depth = len(plan.outer)
    if not reorder(player, identifier, [*plan.outer, plan.columns, plan.rows]):
        return False
    if not all(
        _whole(player, identifier, position, size, plan)
        for position, size in ((depth + 1, unit.height), (depth, unit.lanes))
    ):
        return False
    before = {other.id for other in player.nest.leaves}
    sums = _cut_terms(player, identifier, plan)
    if sums is None or not _narrow_factors(player, sums):
        return False
    width = plan.vectors * unit.lanes
    if not all(_columns(player, piece, depth, plan) for piece in _peeled(player, sums, depth, width, plan.why)):
        return False
    kept = {s.id for s in player.leaf(identifier).chain[:depth]}
    for other in player.nest.leaves:
        if other.id == identifier or other.id not in before:
            # Nothing is fused with the loops of the blocks, nor with what was copied for them.
            player.sealed.update({s.id for s in other.chain} - kept)
    return True


def _whole(player: Player, identifier: str, depth: int, size: int, plan: Plan) -> bool:
    """Cut off what does not fill a tile of the loop at `depth`, as a nest of its own."""
    scope = loop_at(player, identifier, depth)
    if scope.extent % size == 0:
        return True
    if not player.attempt("peel_scope", scope, f"{plan.why}; the rest without it", after=scope.extent // size * size):
        return False
    return all(
        player.attempt("split_scopes", loop_at(player, identifier, around), "the rest by itself", after=1)
        for around in reversed(range(depth))
    )


def _cut_terms(player: Player, identifier: str, plan: Plan) -> list[str] | None:
    """Make the loop that is cut into groups the innermost; the sum, and the one of the terms that fill no group."""
    spatial = len(plan.outer) + 2
    chain = [s.id for s in player.leaf(identifier).chain]
    others = [s for s in chain[spatial:] if s != plan.group]
    if not reorder(player, identifier, [*chain[:spatial], *others, plan.group]):
        return None
    terms, size = loop_at(player, identifier, -1), plan.unit.terms
    if terms.extent % size == 0:
        return [identifier]
    before = _sums(player, identifier)
    if not player.attempt(
        "peel_scope", terms, f"{plan.why}; the last terms without it", after=terms.extent // size * size
    ):
        return None
    for depth in reversed(range(spatial, spatial + len(others))):
        if not player.attempt("split_scopes", loop_at(player, identifier, depth), "the last terms later", after=1):
            return None
    return [identifier, *_new(player, identifier, before)]


def _sums(player: Player, identifier: str) -> set[str]:
    """The accumulations into what a statement writes."""
    array = player.leaf(identifier).output.array.name
    return {w.id for w in player.nest.writers[array] if w.accumulate is not None}


def _new(player: Player, identifier: str, before: set[str]) -> list[str]:
    """The accumulations that there were not before, in order."""
    return sorted(_sums(player, identifier) - before, key=lambda i: player.leaf(i).order)


def _narrow_factors(player: Player, sums: list[str]) -> bool:
    """Cast where the product is; what is cast elsewhere and nobody reads goes."""
    identifier = sums[0]
    wide = {read.array.name for read in player.leaf(identifier).reads}
    why = "the instruction takes narrow numbers"
    if not all(player.attempt("inline_op", player.leaf(identifier), why, input=position) for position in (0, 1)):
        return False
    for name in sorted(wide):
        for writer in player.nest.writers[name]:
            player.attempt("delete_op", writer, "nobody reads it any more")
    return True


def _peeled(player: Player, sums: list[str], depth: int, size: int, why: str) -> list[list[str]]:
    scope = loop_at(player, sums[0], depth)
    whole = scope.extent // size * size
    if whole in (0, scope.extent):
        return [sums]
    before = _sums(player, sums[0])
    if not player.attempt("peel_scope", scope, f"{why}; the rest by itself", after=whole):
        return [sums]
    return [sums, _new(player, sums[0], before)]


def _columns(player: Player, sums: list[str], depth: int, plan: Plan) -> bool:
    """One piece of the columns: [outer, columns, rows] to [outer, panels, rows, vectors, tile], then its rows."""
    unit, main = plan.unit, sums[0]
    extent, width = loop_at(player, main, depth).extent, unit.lanes * plan.vectors
    tiled = extent > width
    if tiled and not player.attempt("tile_scope", loop_at(player, main, depth), plan.why, size=width):
        return False
    inner = depth + tiled
    rows = loop_at(player, main, inner + 1).extent
    height, _ = _block(player, unit, rows, min(extent, width))
    if not player.attempt("tile_scope", loop_at(player, main, inner), "the columns of a tile", size=unit.lanes):
        return False
    for position in (inner + 1, inner):
        if not player.attempt("swap_scopes", loop_at(player, main, position), "a block is rows of tiles"):
            return False
    if unit.height > 1 and not (
        player.attempt("tile_scope", loop_at(player, main, inner), "the rows of a tile", size=unit.height)
        and player.attempt("swap_scopes", loop_at(player, main, inner + 1), "a block is rows of tiles")
    ):
        return False
    for position in range(len(unit.groups)):
        size = prod(unit.groups[position:])
        if not player.attempt("tile_scope", loop_at(player, main, -1), "the terms of a tile", size=size):
            return False
    if not (_pack(player, main, depth, inner, unit.columns, plan) and _pack_rows(player, main, depth, inner, plan)):
        return False
    return all(_rows(player, piece, inner, height, plan) for piece in _peeled(player, sums, inner, height, plan.why))


def _factor(player: Player, identifier: str, position: int) -> Leaf:
    """The statement that casts a factor of a product, beside it."""
    leaf = player.leaf(identifier)
    return next(w for w in player.nest.writers[leaf.reads[position].array.name] if w.parent is leaf.parent)


def _tile_loops(player: Player, identifier: str, inner: int, unit: Unit) -> list[int]:
    """The depths in a contraction of the instruction's loops, as its meaning has them; rows of blocks at `inner`."""
    last = len(player.leaf(identifier).chain)
    height = unit.height > 1
    place = {"rows": inner + 2, "columns": inner + 2 + height}
    terms = iter(range(last - len(unit.groups), last))
    return [next(terms) if (role := unit.role(s)) == "terms" else place[role] for s in unit.product.chain]


def _pack(player: Player, identifier: str, top: int, inner: int, position: int, plan: Plan) -> bool:
    """Copy a narrow operand, so that it lies in memory as the sum and the instruction read it."""
    unit = plan.unit
    read = _factor(player, identifier, position).reads[0]
    chain = player.leaf(identifier).chain
    around = next((s for s in chain[top:inner] if uses(read, s)), chain[inner])
    why = "the instruction reads contiguous memory"
    if not player.attempt("stage_in", around, why, array=read.array.name, location="heap"):
        return False
    copied = _factor(player, identifier, position).reads[0]
    name, loops = copied.array.name, _tile_loops(player, identifier, inner, unit)
    order = {loops[depth]: rank for rank, depth in enumerate(unit.layout(position))}
    spatial = spatial_loops(player.leaf(identifier))

    def key(dimension: int) -> tuple[int, int]:
        depth = max(copied.index[dimension].variables(), default=0)
        if depth in order:
            return (3, order[depth])
        # What is outside of the blocks, the terms, the tiles of a block.
        return (1 if depth not in spatial else 2 if depth > inner else 0, depth)

    _arrange(player, name, sorted(range(len(copied.index)), key=key))
    (writer,) = player.nest.writers[name]
    if tensorize_copy(player, writer.id):
        for scope in writer.chain[:-2][-1:]:
            player.attempt("unroll", scope, "the tiles of one term")
    elif player.attempt("swap_scopes", writer.chain[-2], "the lanes of a vector"):
        player.attempt("vectorize", player.leaf(writer.id).chain[-1], "the lanes of a vector")
    return True


def _arrange(player: Player, name: str, wanted: list[int]) -> None:
    """Bring the dimensions of a copy into an order, and the loops of the nest that makes it."""
    now = list(range(len(wanted)))
    for target, dimension in enumerate(wanted):
        for place in reversed(range(target, now.index(dimension))):
            player.attempt("swap_dims", f"{name}:{place}", "in the order in which the instruction reads")
            (writer,) = player.nest.writers[name]
            outside = len(writer.chain) - len(wanted)
            player.attempt("swap_scopes", writer.chain[outside + place], "written in order")
            now[place], now[place + 1] = now[place + 1], now[place]


def _pack_rows(player: Player, identifier: str, top: int, inner: int, plan: Plan) -> bool:
    """Copy the other operand too, where its terms do not lie side by side."""
    unit = plan.unit
    position = 1 - unit.columns
    read = _factor(player, identifier, position).reads[0]
    last = player.leaf(identifier).chain[-1]
    if linear_address(read.index, read.array.shape).coefficient(last.depth) == 1:
        return True
    return _pack(player, identifier, top, inner, position, plan)


def _rows(player: Player, sums: list[str], inner: int, height: int, plan: Plan) -> bool:
    """One piece of the rows: blocks of accumulators from their zeros to their last sum."""
    unit, main = plan.unit, sums[0]
    array = player.leaf(main).output.array.name
    size = min(height, loop_at(player, main, inner).extent)
    if not player.attempt("tile_scope", loop_at(player, main, inner), plan.why, size=size):
        return False
    root = _split(player, sums, inner, unit)
    if root is None or not _own_memory(player, sums, array, inner):
        return False
    for scope in player.leaf(main).chain[-unit.loops - 2 : -unit.loops]:
        player.attempt("unroll", scope, "the block is straight code")
    why = "one instruction for a tile"
    if not player.attempt("tensorize", root, why, intrinsic=unit.intrinsic.name):
        return False
    # What does not fit is on the stack, from where the compiler takes it.
    copied = player.leaf(main).output.array.name
    player.attempt("set_location", copied, "the block is in registers until it is complete", location="register")
    return True


def _split(player: Player, sums: list[str], inner: int, unit: Unit) -> str | None:
    """Zeros, the sum and its last terms as nests, terms around blocks; where the instruction's loops are."""
    main = sums[0]
    count = 4 if unit.height > 1 else 3
    for depth in reversed(range(inner + 1, inner + 1 + count)):
        for _ in sums:
            why = "zeros first, then the sum"
            if not player.attempt("split_scopes", loop_at(player, main, depth), why, after=1):
                return None
    chain = [s.id for s in player.leaf(main).chain]
    tile = [chain[d] for d in _tile_loops(player, main, inner + 1, unit)]
    terms = [s for s in chain[inner + 1 + count :] if s not in tile]
    if not reorder(player, main, [*chain[: inner + 1], *terms, *chain[inner + 1 : inner + 3], *tile]):
        return None
    for rest in sums[1:]:
        around = [s.id for s in player.leaf(rest).chain]
        block = around[inner + 1 : inner + 1 + count]
        if not reorder(player, rest, [*around[: inner + 1], *around[inner + 1 + count :], *block]):
            return None
    return f"%{tile[0]}"


def _own_memory(player: Player, sums: list[str], array: str, depth: int) -> bool:
    """Keep the block in a buffer of its own from its zeros to its last sum; the scope over blocks is at `depth`."""
    main, why = sums[0], "the block is in registers until it is complete"
    if not player.attempt("stage_out", loop_at(player, main, depth), why, array=array, location="stack"):
        return False
    copied = player.leaf(main).output.array.name
    (back,) = [w for w in player.nest.writers[array] if any(r.array.name == copied for r in w.reads)]
    if loop_at(player, main, depth).extent == 1:
        # Copies have no scopes of one iteration.
        beside = loop_at(player, back.id, depth)
        player.attempt("tile_scope", beside, why, size=beside.extent)
    if not player.attempt("join_scopes", loop_at(player, main, depth), why):
        return False
    player.exhaust(lambda: [f"{copied}:{d}" for d in range(len(player.nest.arrays[copied].shape))], "reuse_dims", why)
    first = next(w for w in player.nest.writers[copied] if w.accumulate is None)
    for statement in (first.id, *sums[1:], back.id):
        _straight(player, statement, depth)
    return True


def _straight(player: Player, identifier: str, depth: int) -> None:
    """Run through a block by an instruction for each tile, or by vectors, in straight code."""
    chain = player.leaf(identifier).chain
    if not tensorize_copy(player, identifier):
        player.attempt("vectorize", chain[-1], "the lanes of a vector")
    for scope in player.leaf(identifier).chain[depth + 1 :]:
        if scope.mapping is Mapping.SEQUENTIAL and scope.extent <= MOST_STRAIGHT:
            player.attempt("unroll", scope, "the block is straight code")


def tensorize_copy(player: Player, identifier: str) -> bool:
    """Let an instruction of the machine do what a statement does that is no sum, for the largest tile there is."""
    leaf = player.leaf(identifier)
    for scope in leaf.chain:
        for name, intrinsic in available(player.game.machine).items():
            pattern = pattern_of(intrinsic)
            (*others, last) = pattern.nest.leaves
            if others or last.accumulate is not None or not same_form(pattern.root, scope):
                continue
            if player.attempt("tensorize", scope, "one instruction for a tile", intrinsic=name):
                return True
    return False
