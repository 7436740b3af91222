"""Tiles of contractions for tensor units, which the threads of a warp use together (as CUTLASS does with `mma.sync`).

A block computes a tile of results, each of its warps a part, in steps over the terms. Both operands of a step lie in
shared memory as they lie in the heap. A warp has its results in registers, by the fragments of the instruction; zeros,
and what stores the results, run over lanes and slots of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from pdojo.dialect.analysis.tensor import available
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.machines.intrinsic import Intrinsic
from pdojo.dialect.machines.pattern import Pattern, pattern_of
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.search.kinds.common.player import Player
from pdojo.search.kinds.cpu.contraction import loop_at, reorder, uses
from pdojo.search.kinds.gpu.copies import Copy, cut, map_copies, neutral_tails, overlap, staged, to_registers
from pdojo.search.kinds.gpu.launches import multiprocessors

SCALAR = "multiply-adds"
"""The answer to the question for the instruction that takes none."""
STEP_BYTES = 64
"""Bytes of the terms of a step, in one row of an operand."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An instruction of a warp that adds products of two matrices to a third."""

    intrinsic: Intrinsic
    pattern: Pattern
    first: int
    """Extent along the results that share a row of the first factor."""
    second: int
    terms: int
    dtype: str
    """Element type of the factors in memory."""

    @property
    def results(self) -> Fragment:
        """How a warp holds results."""
        (name,) = (n for n, a in self.pattern.operands.items() if self.pattern.writes(a))
        return self.pattern.fragments[name]

    @property
    def casts(self) -> list[Leaf]:
        """The statements that cast the factors."""
        return self.pattern.nest.leaves[:-1]


@dataclass(frozen=True, slots=True)
class Part:
    """Sizes of a block's tile and of a warp's part of it: rows and columns."""

    rows: int
    columns: int
    high: int
    wide: int

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.rows // self.high * (self.columns // self.wide)

    @property
    def title(self) -> str:
        """The sizes in a few words."""
        return f"{self.rows} x {self.columns} results of a block, {self.high} x {self.wide} of a warp"


PARTS = (
    Part(128, 128, 64, 64),
    Part(128, 128, 64, 32),
    Part(128, 64, 32, 32),
    Part(64, 64, 32, 32),
    Part(32, 128, 32, 32),
)


def use_tensor_units(player: Player, identifier: str) -> bool:
    """Give a contraction of loops over rows, columns and terms to a tensor unit; False if none is wanted, or none fits.

    Whether it is one, and which, is left open.
    """
    leaf = player.leaf(identifier)
    found = {unit.intrinsic.name: unit for unit in _units(player, leaf)}
    if not found:
        return False
    exact = [name for name, unit in found.items() if _is_preferred(unit)]
    others = [name for name in found if name not in exact]
    name = leaf.output.array.name
    chosen = player.choices.choose(f"products of {name}", [*exact, SCALAR, *others])
    if chosen == SCALAR:
        return False
    unit = found[chosen]
    parts = {part.title: part for part in _parts(player, leaf, unit)}
    if not parts:
        return False
    title = player.choices.choose(f"tile of {name} for {chosen}", parts)
    ordered = [parts[title], *(part for other, part in parts.items() if other != title)]
    return any(player.transact(lambda p=part: _tile(player, identifier, unit, p)) for part in ordered)


def _is_preferred(unit: Unit) -> bool:
    """Whether an instruction does nothing else than multiply-adds of the same factors would, or is asked for."""
    return bool(unit.casts) or Numerics.TF32.value in unit.intrinsic.numerics


def _units(player: Player, leaf: Leaf) -> list[Unit]:
    """The instructions that can compute the statement, in the order of the machine description."""
    program = player.game.program
    found: list[Unit] = []
    for intrinsic in available(program.machine).values():
        if intrinsic.threads and all(program.permits(Numerics(n)) for n in intrinsic.numerics):
            unit = _unit(intrinsic)
            if unit is not None and _computes(player, leaf, unit):
                found.append(unit)
    return found


def _unit(intrinsic: Intrinsic) -> Unit | None:
    """The unit of an intrinsic whose meaning is a product of matrices, perhaps of numbers that are cast first."""
    pattern = pattern_of(intrinsic)
    *casts, product = pattern.nest.leaves
    chain = product.chain
    if len(chain) != 3 or len(product.reads) != 2 or any(leaf.parent is not product.parent for leaf in casts):
        return None
    factors = [one for read in product.reads if (one := _source(casts, read)) is not None]
    if len(casts) not in (0, 2) or len(factors) != 2 or factors[0].array.dtype != factors[1].array.dtype:
        return None
    using = [(uses(factors[0], s), uses(factors[1], s), uses(product.output, s)) for s in chain]
    if using != [(True, False, True), (False, True, True), (True, True, False)]:
        return None
    first, second, terms = (s.extent for s in chain)
    return Unit(intrinsic, pattern, first, second, terms, factors[0].array.dtype)


def _source(casts: Sequence[Leaf], read: Access) -> Access | None:
    """What is read from memory for a factor; None if that is no cast."""
    if not casts:
        return read
    return next((c.reads[0] for c in casts if c.output.array is read.array and len(c.reads) == 1), None)


def _computes(player: Player, leaf: Leaf, unit: Unit) -> bool:
    """Whether the unit's meaning has the functions and types of a statement, and of the casts of its factors."""
    product = unit.pattern.nest.leaves[-1]
    same = (leaf.accumulate, leaf.contracted, leaf.function) == (
        product.accumulate,
        product.contracted,
        product.function,
    )
    if not same or [a.array.dtype for a in leaf.accesses] != [a.array.dtype for a in product.accesses]:
        return False
    for read, cast in zip(leaf.reads, unit.casts, strict=False):
        writers = player.nest.writers[read.array.name]
        if len(writers) != 1 or (writers[0].function, writers[0].accumulate) != (cast.function, None):
            return False
        if [a.array.dtype for a in writers[0].accesses] != [a.array.dtype for a in cast.accesses]:
            return False
    return True


def _parts(player: Player, leaf: Leaf, unit: Unit) -> list[Part]:
    """The sizes that fit, the fastest first, by loads from shared memory and idle multiprocessors."""
    rows, columns = (s.extent for s in leaf.chain[-3:-1])
    outer = prod(s.extent for s in leaf.chain[:-3])
    high, wide = _sides(leaf, unit)
    most = player.game.machine.gpu.block_threads

    def cost(part: Part) -> float:
        blocks = outer * -(-rows // part.rows) * -(-columns // part.columns)
        rounds = -(-blocks // multiprocessors(player))
        return rounds * part.rows * part.columns * (1 + 16 / part.high + 16 / part.wide)

    fitting = [
        part
        for part in PARTS
        if part.high % high == part.wide % wide == 0
        and part.warps * unit.intrinsic.threads <= most
        and part.rows <= rows
        and part.columns <= columns
    ]
    return sorted(fitting, key=cost)


def _sides(leaf: Leaf, unit: Unit) -> tuple[int, int]:
    """Rows and columns of an instruction's tile."""
    first = uses(leaf.reads[0], leaf.chain[-3])
    return (unit.first, unit.second) if first else (unit.second, unit.first)


def _tile(player: Player, identifier: str, unit: Unit, part: Part) -> bool:
    depth = len(player.leaf(identifier).chain) - 3
    zero = player.nest.leaves[player.leaf(identifier).order - 1].id
    result = player.leaf(identifier).output.array.name
    is_first = uses(player.leaf(identifier).reads[0], player.leaf(identifier).chain[depth])
    if unit.casts and not _narrow(player, identifier):
        return False
    if not _in_warps(player, identifier, unit, part, depth):
        return False
    results = to_registers(player, identifier, result, depth)
    if results is None:
        return False
    _with_units(player, results, [s.extent for s in player.leaf(zero).chain], depth + 2)
    copies = [_share(player, identifier, k, depth) for k in (0, 1)]
    if None in copies:
        return False
    shared = [copy for copy in copies if copy is not None]
    if not _map_warps(player, (zero, results), identifier, depth):
        return False
    mapped = map_copies(player, shared, part.warps * unit.intrinsic.threads, depth)
    if mapped is None or not overlap(player, identifier, mapped, depth) or not _place(player, mapped):
        return False
    if unit.casts:
        _widen(player, identifier)
    player.transact(lambda: neutral_tails(player, zero, identifier, mapped))
    return (
        _one_instruction(player, identifier, unit, depth, is_first=is_first)
        and all(
            _by_lanes(player, statement, unit.results, depth + 4, is_first=is_first) for statement in (zero, results)
        )
        and player.attempt(
            "set_location",
            player.leaf(identifier).output.array.name,
            "each thread keeps its own part",
            location="register",
        )
    )


def _with_units(player: Player, statement: str, extents: Sequence[int], first: int) -> None:
    """Give a copy, which has no loops of one iteration, those of other loops of these extents, from a depth on."""
    for depth, extent in enumerate(extents[first:], first):
        scope = loop_at(player, statement, depth)
        if extent == 1 and scope.extent > 1:
            player.attempt("tile_scope", scope, "loops as those of the zeros", size=scope.extent)


def _narrow(player: Player, identifier: str) -> bool:
    """Inline the casts at the product, and delete casts that nothing reads any more."""
    wide = {read.array.name for read in player.leaf(identifier).reads}
    why = "the instruction takes narrow numbers"
    if not all(player.attempt("inline_op", player.leaf(identifier), why, input=position) for position in (0, 1)):
        return False
    for name in sorted(wide):
        for writer in player.nest.writers[name]:
            player.attempt("delete_op", writer, "nobody reads it any more")
    return True


def _widen(player: Player, identifier: str) -> None:
    """Give the casts of factors indices for whole tiles, beyond the operands too, which are filled with zeros there."""
    leaf = player.leaf(identifier)
    why = "tiles reach beyond the operands"
    for read in leaf.reads:
        name, whole = read.array.name, [e.bounds(leaf.extents)[1] + 1 for e in read.index]
        if all(size <= extent for size, extent in zip(whole, read.array.shape, strict=True)):
            continue
        # Dimensions that take one slot have no extent to be padded.
        slots = [d for d, reused in enumerate(read.array.buffer.reuse) if reused]
        player.attempt("set_location", name, why, location="heap")
        for dimension in slots:
            player.attempt("materialize_dims", f"{name}:{dimension}", why)
        for dimension, size in enumerate(whole):
            player.attempt("pad_dim", f"{name}:{dimension}", why, to=size)
        for dimension in slots:
            player.attempt("reuse_dims", f"{name}:{dimension}", "used where it is written")
        player.attempt("set_location", name, "each thread has its own", location="stack")


def _in_warps(player: Player, identifier: str, unit: Unit, part: Part, depth: int) -> bool:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {warps {instructions {tile}}}}]."""
    why = part.title
    leaf = player.leaf(identifier)
    outer, rows, columns = [s.id for s in leaf.chain[:depth]], leaf.chain[depth].id, leaf.chain[depth + 1].id
    high, wide = _sides(leaf, unit)
    levels: list[list[str]] = [[], [], [], []]
    for loop, sizes in ((rows, (part.rows, part.high, high)), (columns, (part.columns, part.wide, wide))):
        inner = loop
        for level, size in enumerate(sizes):
            tiles = cut(player, inner, size, why)
            if tiles is None:
                return False
            levels[level].append(tiles.outer)
            inner = tiles.inner
        levels[3].append(inner)
    spatial = [s for level in levels for s in level]
    if not reorder(player, identifier, [*outer, *spatial]):
        return False
    for level in reversed(range(depth + 2, depth + 8)):
        if not player.attempt("split_scopes", loop_at(player, identifier, level), why, after=1):
            return False
    step = STEP_BYTES // byte_width(unit.dtype)
    steps = cut(player, loop_at(player, identifier, -1).id, step, f"{step} terms at a time")
    turns = None if steps is None else cut(player, steps.inner, unit.terms, "the terms of an instruction")
    if steps is None or turns is None:
        return False
    ids = [s.id for s in player.leaf(identifier).chain]
    inside, terms = ids[depth + 2 : depth + 8], ids[depth + 8 :]
    return reorder(player, identifier, [*ids[: depth + 2], terms[0], *inside[:2], terms[1], *inside[2:], terms[2]])


def _share(player: Player, identifier: str, position: int, depth: int) -> Copy | None:
    """Copy what a step needs of an operand to shared memory, with space between rows.

    It lies there as in the heap, or, if the index of a factor has divisions (a convolution), as the loops go.
    """
    leaf = player.leaf(identifier)
    read = leaf.reads[position]
    source = _source([w for w in player.nest.writers[read.array.name] if w.parent is leaf.parent], read)
    if source is None:
        source = read
    dtype = source.array.dtype
    form = "box" if all(e.is_linear for e in source.index) else "iteration"
    made = staged(player, leaf.chain[depth + 3], source.array.name, form, "the threads of a block share it")
    if made is None:
        return None
    name, store = made
    shape = player.nest.arrays[name].shape
    elements = 16 // byte_width(dtype)
    along = any(leaf.chain[-1].depth in e.variables() for e in source.index[-1:])
    space = elements if along or byte_width(dtype) < 4 else 2 * elements
    player.attempt(
        "pad_dim",
        f"{name}:{len(shape) - 1}",
        "rows are in different banks",
        to=-(-shape[-1] // elements) * elements + space,
    )
    through = False if byte_width(dtype) in player.game.machine.gpu.async_copy_bytes else None
    return Copy(name, source.array.name, store, is_transposed=False, through=through)


def _map_warps(player: Player, others: Sequence[str], identifier: str, depth: int) -> bool:
    """Blocks of the grid, and warps of a block."""
    ids = [s.id for s in player.leaf(identifier).chain[: depth + 2]]
    if not all(player.attempt("map_grid", f"%{i}", "independent: a block for each iteration") for i in ids):
        return False
    levels = [(identifier, depth + 3), *((other, depth + 2) for other in others)]
    return all(
        player.attempt("map_block", loop_at(player, statement, level + k), "a part of the tile for each warp")
        for statement, level in levels
        for k in (0, 1)
    )


def _place(player: Player, copies: Sequence[Copy]) -> bool:
    """Tiles of the block to shared memory, what goes through registers to these."""
    for copy in copies:
        if not player.attempt("set_location", copy.shared, "the threads of a block share it", location="shared"):
            return False
        if copy.load is None:
            player.attempt("async_copy", copy.shared, "the copy runs while the block computes")
            continue
        name = player.leaf(copy.load).output.array.name
        if not player.attempt("set_location", name, "each thread keeps its own part", location="register"):
            return False
    return True


def _one_instruction(player: Player, identifier: str, unit: Unit, depth: int, *, is_first: bool) -> bool:
    """The innermost loops are one instruction; those around, straight code."""
    why = f"one {unit.intrinsic.name} for a tile"
    chain = player.leaf(identifier).chain
    if not is_first and not player.attempt("swap_scopes", chain[-3], why):
        return False
    chain = player.leaf(identifier).chain
    if not player.attempt("tensorize", chain[-3], why, intrinsic=unit.intrinsic.name):
        return False
    around = [s.id for s in player.leaf(identifier).chain[-6:-3]]
    return all(player.attempt("unroll", f"%{loop}", "accumulators are in registers") for loop in around)


@dataclass(frozen=True, slots=True)
class _Digit:
    """Consecutive bits of an index within a tile: part of the number of a lane, or of a slot."""

    size: int
    lane: int
    """What the number of the lane grows by with the digit; 0 for a slot."""


def _digits(fragment: Fragment, dimension: int) -> list[_Digit]:
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


def _by_lanes(player: Player, statement: str, fragment: Fragment, level: int, *, is_first: bool) -> bool:
    """Run a statement over the elements of tiles by lanes and slots; the loops over tiles are at `level`."""
    why = "each thread has its elements of the tile"
    around = [s.id for s in player.leaf(statement).chain[: level + 2]]
    loops = [s.id for s in player.leaf(statement).chain[level + 2 :]]
    found = _Loops()
    if len(loops) != 2:
        return False
    for loop, dimension in zip(loops, (0, 1) if is_first else (1, 0), strict=True):
        if not _cut_digits(player, loop, _digits(fragment, dimension), found, why):
            return False
    # The last slot is the lowest digit of the columns, if neighbours belong to one thread: a vector.
    columns = _digits(fragment, 1 if is_first else 0)
    tail = found.slots[-1:] if columns[0].lane == 0 else []
    head = found.slots[: len(found.slots) - len(tail)]
    lanes = [loop for _, loop in sorted(found.lanes, reverse=True)]
    if not reorder(player, statement, [*around, *head, *lanes, *tail]):
        return False
    first = len(around) + len(head)
    merged = all(player.attempt("collapse_scopes", loop_at(player, statement, first), why) for _ in lanes[1:])
    if not merged or not player.attempt("map_warp", loop_at(player, statement, first), why):
        return False
    if tail and player.attempt("vectorize", loop_at(player, statement, -1), why):
        tail = []
    inside = [s.id for s in player.leaf(statement).chain[level:] if s.depth != first]
    straight = inside if tail or first + 1 == len(player.leaf(statement).chain) else inside[:-1]
    return all(player.attempt("unroll", f"%{loop}", "accumulators are in registers") for loop in straight)


@dataclass
class _Loops:
    """The loops over the elements of a tile."""

    lanes: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """With what the number of the lane grows by."""
    slots: list[str] = field(default_factory=list[str])


def _cut_digits(player: Player, loop: str, digits: Sequence[_Digit], found: _Loops, why: str) -> bool:
    """Cut a loop into a loop for each digit of its variable, noted by what it counts."""
    for place in reversed(range(len(digits))):
        outer = loop
        if place:
            tiles = cut(player, loop, prod(digit.size for digit in digits[:place]), why)
            if tiles is None:
                return False
            outer, loop = tiles
        if digits[place].lane:
            found.lanes.append((digits[place].lane, outer))
        else:
            found.slots.append(outer)
    return True
