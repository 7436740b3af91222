"""Tiles of contractions for tensor units, which a warp's threads use together (as CUTLASS does with `mma.sync`).

A block computes a tile of results, and each of its warps a part of the tile, in steps over the terms. Both operands of
a step lie in shared memory in their heap layout. A warp keeps its results in registers, in the fragments of the
instruction; the statements that zero and store the results run over lanes and slots of the fragments.

If several warps run an instruction, they share a part of the tile. If the unit itself reads the operands, these lie in
the layout that it demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.machines.shared_operand import Atom
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Leaf
from pdojo.errors import IllegalMove
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import narrow_factors, uses
from pdojo.passes.common.loops import reorder, tile
from pdojo.passes.common.units import ProductUnit, matrix_units
from pdojo.passes.gpu.copies import (
    BlockTile,
    SharedCopy,
    fastest_first,
    map_copies,
    neutral_tails,
    overlap,
    staged,
    tile_cost,
    to_registers,
)

SCALAR = "multiply-adds"
"""Option value: use no tensor instruction."""
STEP_BYTES = 64
"""Bytes of a step's terms in one row of an operand."""
LOAD = 16
"""Time of a load from shared memory in multiply-adds of one result."""
TILES = (
    BlockTile(128, 128, 64, 64),
    BlockTile(128, 128, 64, 32),
    BlockTile(128, 64, 32, 32),
    BlockTile(64, 64, 32, 32),
    BlockTile(32, 128, 32, 32),
)


def use_tensor_units(builder: PassBuilder, identifier: str) -> bool:
    """Map a contraction of loops over rows, columns and terms to a tensor unit; False if none is wanted, or none fits.

    A tuning parameter selects the unit, or none.
    """
    leaf = builder.leaf(identifier)
    units = [unit for unit in matrix_units(builder.game.machine) if unit.computes(builder, leaf)]
    found = {unit.intrinsic.name: unit for unit in units if not unit.pattern.shared or _plans(builder, leaf, unit)}
    if not found:
        return False
    exact = [name for name, unit in found.items() if is_preferred(unit)]
    # Units that read shared memory themselves are the fastest; their tiles are as large as the instruction's.
    exact.sort(key=lambda name: _cost(builder, leaf, found[name]))
    others = [name for name in found if name not in exact]
    name = leaf.output.array.name
    chosen = builder.choices.choose(f"products of {name}", [*exact, SCALAR, *others])
    if chosen == SCALAR:
        return False
    unit = found[chosen]
    plans = {plan.title("warp"): plan for plan in _plans(builder, leaf, unit)}
    if not plans:
        return False
    title = builder.choices.choose(f"tile of {name} for {chosen}", plans)
    ordered = [(unit, plans[title]), *((unit, plan) for other, plan in plans.items() if other != title)]
    if unit.pattern.shared:
        # The operands may not fit the layout that the unit demands.
        rest = (found[other] for other in exact if other != chosen)
        ordered += [(other, plan) for other in rest for plan in _plans(builder, leaf, other)]
    return any(builder.transact(lambda u=one, p=plan: _tile(builder, identifier, u, p)) for one, plan in ordered)


def _cost(builder: PassBuilder, leaf: Leaf, unit: ProductUnit) -> tuple[bool, float]:
    """The order of preference among units: those that read shared memory themselves first, the fastest tile first."""
    if not unit.pattern.shared:
        return True, 0.0
    best = _plans(builder, leaf, unit)[0]
    return False, tile_cost(builder, best, leaf.chain, LOAD)


def is_preferred(unit: ProductUnit) -> bool:
    """True if the instruction computes exactly what multiply-adds would, or if the kernel permits TF32."""
    return bool(unit.casts) or Numerics.TF32.value in unit.intrinsic.numerics


def _plans(builder: PassBuilder, leaf: Leaf, unit: ProductUnit) -> list[BlockTile]:
    """The tiles of blocks and warps that fit, the fastest first."""
    high, wide = _sides(leaf, unit)
    most = builder.game.machine.gpu.block_threads
    if unit.pattern.shared:
        whole = [BlockTile(2 * high, wide, high, wide), BlockTile(high, wide, high, wide)]
    else:
        whole = [plan for plan in TILES if plan.height % high == plan.width % wide == 0]
    fitting = (plan for plan in whole if plan.parts * unit.intrinsic.threads <= most)
    return fastest_first(builder, fitting, leaf.chain, LOAD)


def _sides(leaf: Leaf, unit: ProductUnit) -> tuple[int, int]:
    """Rows and columns of an instruction's tile."""
    first, second, _ = (s.extent for s in unit.product.chain)
    return (first, second) if uses(leaf.reads[0], leaf.chain[-3]) else (second, first)


def _tile(builder: PassBuilder, identifier: str, unit: ProductUnit, plan: BlockTile) -> None:
    depth = len(builder.leaf(identifier).chain) - 3
    zero = builder.nest.leaves[builder.leaf(identifier).order - 1].id
    is_first = uses(builder.leaf(identifier).reads[0], builder.loop(identifier, depth))
    # Temporaries of casts have all loops in their indices, so the factors are told apart before.
    sides = _sides(builder.leaf(identifier), unit)
    if unit.casts:
        narrow_factors(builder, identifier)
    _in_warps(builder, identifier, sides, unit, plan, depth)
    results = to_registers(builder, identifier, depth)
    _with_units(builder, results, [s.extent for s in builder.leaf(zero).chain], depth + 2)
    shared = [_share(builder, identifier, unit, k, depth) for k in (0, 1)]
    _map_warps(builder, (zero, results), identifier, depth)
    copies = map_copies(builder, shared, plan.parts * unit.intrinsic.threads, depth)
    overlap(builder, identifier, copies, depth, further=bool(unit.pattern.shared))
    place_copies(builder, copies, unit)
    if unit.casts:
        _widen(builder, identifier)
    builder.transact(lambda: neutral_tails(builder, zero, identifier, copies))
    _one_instruction(builder, identifier, unit, depth, is_first=is_first)
    for statement in (zero, results):
        _by_lanes(builder, statement, unit, depth + 4, is_first=is_first)
    name = builder.leaf(identifier).output.array.name
    builder.make("set_location", name, "each thread keeps its own part", location="register")


def _with_units(builder: PassBuilder, statement: str, extents: Sequence[int], first: int) -> None:
    """Add loops of one iteration to a copy, from depth `first` on, wherever `extents` has a 1."""
    for depth, extent in enumerate(extents[first:], first):
        scope = builder.loop(statement, depth)
        if extent == 1 and scope.extent > 1:
            builder.attempt("tile_scope", scope, "loops as those of the zeros", size=scope.extent)


def _widen(builder: PassBuilder, identifier: str) -> None:
    """Extend the casts of factors to whole tiles; indices beyond the operands are filled with zeros."""
    leaf = builder.leaf(identifier)
    why = "tiles reach beyond the operands"
    for read in leaf.reads:
        name, whole = read.array.name, [e.bounds(leaf.extents)[1] + 1 for e in read.index]
        if all(size <= extent for size, extent in zip(whole, read.array.shape, strict=True)):
            continue
        # Dimensions with one slot have no extent to pad.
        slots = [d for d, reused in enumerate(read.array.buffer.reuse) if reused]
        builder.attempt("set_location", name, why, location="heap")
        for dimension in slots:
            builder.attempt("materialize_dims", f"{name}:{dimension}", why)
        for dimension, size in enumerate(whole):
            builder.attempt("pad_dim", f"{name}:{dimension}", why, to=size)
        for dimension in slots:
            builder.attempt("reuse_dims", f"{name}:{dimension}", "used where it is written")
        builder.attempt("set_location", name, "each thread has its own", location="stack")


def _in_warps(
    builder: PassBuilder, identifier: str, sides: tuple[int, int], unit: ProductUnit, plan: BlockTile, depth: int
) -> None:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {warps {instructions {tile}}}}]."""
    why = plan.title("warp")
    leaf = builder.leaf(identifier)
    outer, rows, columns = [s.id for s in leaf.chain[:depth]], leaf.chain[depth].id, leaf.chain[depth + 1].id
    high, wide = sides
    levels: list[list[str]] = [[], [], [], []]
    for loop, sizes in ((rows, (plan.rows, plan.height, high)), (columns, (plan.columns, plan.width, wide))):
        inner = loop
        for level, size in enumerate(sizes):
            tiles = tile(builder, inner, size, why)
            levels[level].append(tiles.outer)
            inner = tiles.inner
        levels[3].append(inner)
    reorder(builder, identifier, [*outer, *(s for level in levels for s in level)])
    for level in reversed(range(depth + 2, depth + 8)):
        builder.make("split_scopes", builder.loop(identifier, level), why, after=1)
    step = _step_bytes(unit) // byte_width(unit.factor(0).array.dtype)
    steps = tile(builder, builder.loop(identifier, -1), step, f"{step} terms at a time")
    tile(builder, steps.inner, unit.terms, "the terms of an instruction")
    ids = [s.id for s in builder.leaf(identifier).chain]
    inside, terms = ids[depth + 2 : depth + 8], ids[depth + 8 :]
    reorder(builder, identifier, [*ids[: depth + 2], terms[0], *inside[:2], terms[1], *inside[2:], terms[2]])


def _step_bytes(unit: ProductUnit) -> int:
    """Bytes of a step's terms in one row of an operand."""
    return max([STEP_BYTES, *(atom.row_bytes for atom in unit.pattern.shared.values())])


def _share(builder: PassBuilder, identifier: str, unit: ProductUnit, position: int, depth: int) -> SharedCopy:
    """Copy the part of an operand that a step needs to shared memory, with space between rows.

    The copy has the layout of the heap, or the order of the loops if a factor's index has divisions (a convolution). A
    unit that reads shared memory itself demands rows of a fixed length: longer ones are cut to pieces.
    """
    leaf = builder.leaf(identifier)
    source = leaf.reads[position]
    casts = [w for w in builder.nest.writers[source.array.name] if w.parent is leaf.parent and len(w.reads) == 1]
    if casts:
        (source,) = casts[0].reads
    dtype = source.array.dtype
    form = "box" if all(e.is_linear for e in source.index) else "iteration"
    scope = leaf.chain[depth + 3]
    name, store = staged(builder, scope, source.array.name, form, "the threads of a block share it")
    if atom := unit.pattern.shared.get(unit.factor(position).array.name):
        _cut_rows(builder, name, atom)
        return _copy(builder, name, source.array.name, store)
    if form == "iteration" and builder.transact(lambda: _turn_tiles(builder, name, store)):
        return _copy(builder, name, source.array.name, store)
    along = any(leaf.chain[-1].depth in e.variables() for e in source.index[-1:])
    return shared_rows(builder, name, source.array.name, store, apart=not along and byte_width(dtype) >= 4)


def _cut_rows(builder: PassBuilder, name: str, atom: Atom) -> None:
    """Cut the rows of a copy to pieces of the length that the unit reads; the rows of a piece are neighbours."""
    array = builder.nest.arrays[name]
    last, row = len(array.shape) - 1, atom.row_bytes // byte_width(array.dtype)
    if array.shape[last] > row:
        builder.make("tile_dim", f"{name}:{last}", "the unit reads rows of a fixed length", size=row)
        builder.make("swap_dims", f"{name}:{last - 1}", "rows of a piece are neighbours")


def _turn_tiles(builder: PassBuilder, name: str, store: str) -> bool:
    """Give each term of a tile a row, if results are contiguous in memory but terms are not.

    Rows of a tile lie one after the other, so they are in different banks.
    """
    why = "neighbouring threads copy neighbouring elements"
    read = builder.leaf(store).reads[0]
    strides = [lane_stride(read.index, read.array.shape, s.depth) for s in builder.leaf(store).chain[-2:]]
    if strides[0] is not Stride.CONTIGUOUS or strides[1] is Stride.CONTIGUOUS:
        return False
    builder.make("swap_dims", f"{name}:{len(builder.nest.arrays[name].shape) - 2}", why)
    for level in (-2, -3):
        builder.make("swap_scopes", builder.loop(store, level), why)
    return True


def shared_rows(builder: PassBuilder, name: str, operand: str, store: str, *, apart: bool) -> SharedCopy:
    """A copy that will be in shared memory, with space between rows; twice as much if `apart`."""
    array = builder.nest.arrays[name]
    elements = 16 // byte_width(array.dtype)
    space = 2 * elements if apart else elements
    width = -(-array.shape[-1] // elements) * elements + space
    builder.attempt("pad_dim", f"{name}:{len(array.shape) - 1}", "rows are in different banks", to=width)
    return _copy(builder, name, operand, store)


def _copy(builder: PassBuilder, name: str, operand: str, store: str) -> SharedCopy:
    narrow = byte_width(builder.nest.arrays[name].dtype) not in builder.game.machine.gpu.async_copy_bytes
    return SharedCopy(name, operand, store, is_transposed=False, through=None if narrow else False)


def _map_warps(builder: PassBuilder, others: Sequence[str], identifier: str, depth: int) -> None:
    """Map loops to blocks of the grid, and to warps of a block."""
    for loop in [s.id for s in builder.leaf(identifier).chain[: depth + 2]]:
        builder.make("map_grid", f"%{loop}", "independent: a block for each iteration")
    for statement, level in ((identifier, depth + 3), *((other, depth + 2) for other in others)):
        for warps in (level, level + 1):
            builder.make("map_block", builder.loop(statement, warps), "a part of the tile for each warp")


def place_copies(builder: PassBuilder, copies: Sequence[SharedCopy], unit: ProductUnit | None = None) -> None:
    """Put tiles of the block into shared memory, and copies through registers into registers."""
    for position, copy in enumerate(copies):
        builder.make("set_location", copy.shared, "the threads of a block share it", location="shared")
        if unit is not None and (atom := unit.pattern.shared.get(unit.factor(position).array.name)):
            array = builder.nest.arrays[copy.shared]
            last, granule = len(array.shape) - 1, atom.granule_bytes // byte_width(array.dtype)
            why = "the unit reads rows with exchanged granules"
            builder.make("swizzle_dim", f"{copy.shared}:{last}", why, by=last - 1, granule=granule)
        if copy.load is None:
            builder.attempt("async_copy", copy.shared, "the copy runs while the block computes")
        else:
            name = builder.leaf(copy.load).output.array.name
            builder.make("set_location", name, "each thread keeps its own part", location="register")


def _one_instruction(builder: PassBuilder, identifier: str, unit: ProductUnit, depth: int, *, is_first: bool) -> None:
    """Make the innermost loops one instruction, and unroll the loops around it."""
    why = f"one {unit.intrinsic.name} for a tile"
    if not is_first:
        builder.make("swap_scopes", builder.loop(identifier, -3), why)
    builder.make("tensorize", builder.loop(identifier, -3), why, intrinsic=unit.intrinsic.name)
    for loop in [s.id for s in builder.leaf(identifier).chain[-6:-3]]:
        builder.make("unroll", f"%{loop}", "accumulators are in registers")


@dataclass(frozen=True, slots=True)
class _Digit:
    """Consecutive bits of an index within a tile: a part of the lane number or of the slot number."""

    size: int
    lane: int
    """Increment of the lane number per digit; 0 for a slot."""


def digits_of(fragment: Fragment, dimension: int) -> list[_Digit]:
    """The digits of an index within a tile, the lowest first."""
    lanes = {step[dimension]: 1 << k for k, step in enumerate(fragment.bits) if step[dimension]}
    found: list[_Digit] = []
    weight = 1
    while weight < fragment.shape[dimension]:
        lane = lanes.get(weight, 0)
        last = found[-1] if found else None
        if last is not None and (lane == last.lane * last.size if lane else last.lane == 0):
            found[-1] = _Digit(2 * last.size, last.lane)
        else:
            found.append(_Digit(2, lane))
        weight *= 2
    return found


def _by_lanes(builder: PassBuilder, statement: str, unit: ProductUnit, level: int, *, is_first: bool) -> None:
    """Run a statement over the elements of tiles by lanes and slots; the loops over tiles are at `level`."""
    why, fragment = "each thread has its elements of the tile", unit.results
    around = [s.id for s in builder.leaf(statement).chain[: level + 2]]
    loops = [s.id for s in builder.leaf(statement).chain[level + 2 :]]
    if len(loops) != 2:
        raise IllegalMove("a tile's rows and columns are not two loops")
    found = _Loops()
    for loop, dimension in zip(loops, (0, 1) if is_first else (1, 0), strict=True):
        _cut_digits(builder, loop, digits_of(fragment, dimension), found, why)
    # The last slot is the lowest digit of the columns if neighbours belong to one thread, and becomes a vector.
    columns = digits_of(fragment, 1 if is_first else 0)
    tail = found.slots[-1:] if columns[0].lane == 0 else []
    head = found.slots[: len(found.slots) - len(tail)]
    each = fragment.threads // unit.intrinsic.warps
    lanes = [loop for weight, loop in sorted(found.lanes, reverse=True) if weight < each]
    warps = [loop for weight, loop in sorted(found.lanes, reverse=True) if weight >= each]
    reorder(builder, statement, [*around, *warps, *head, *lanes, *tail])
    for _ in warps[1:]:
        builder.make("collapse_scopes", builder.loop(statement, len(around)), why)
    if warps:
        builder.make("map_block", builder.loop(statement, len(around)), "a part of the tile for each warp")
    first = len(around) + min(1, len(warps)) + len(head)
    for _ in lanes[1:]:
        builder.make("collapse_scopes", builder.loop(statement, first), why)
    builder.make("map_warp", builder.loop(statement, first), why)
    if tail and builder.attempt("vectorize", builder.loop(statement, -1), why):
        tail = []
    threads = {first, *range(len(around), len(around) + min(1, len(warps)))}
    inside = [s.id for s in builder.leaf(statement).chain[level:] if s.depth not in threads]
    for loop in inside if tail or first + 1 == len(builder.leaf(statement).chain) else inside[:-1]:
        builder.make("unroll", f"%{loop}", "accumulators are in registers")


@dataclass
class _Loops:
    """The loops over the elements of a tile."""

    lanes: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Increment of the lane number, and the loop."""
    slots: list[str] = field(default_factory=list[str])


def _cut_digits(builder: PassBuilder, loop: str, digits: Sequence[_Digit], found: _Loops, why: str) -> None:
    """Cut a loop into one loop per digit of its variable; `found` records each loop as lane or slot."""
    for place in reversed(range(len(digits))):
        outer = loop
        if place:
            outer, loop = tile(builder, loop, prod(digit.size for digit in digits[:place]), why)
        if digits[place].lane:
            found.lanes.append((digits[place].lane, outer))
        else:
            found.slots.append(outer)
