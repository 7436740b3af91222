"""Tiles of contractions for tensor units, which a warp's threads use together (as CUTLASS does with `mma.sync`).

A block computes a tile of results, and each of its warps a part of the tile, in steps over the terms. Both operands of
a step lie in shared memory in their heap layout. A warp keeps its results in registers, in the fragments of the
instruction; the statements that zero and store the results run over lanes and slots of the fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.machines.intrinsic import Intrinsic
from pdojo.dialect.machines.pattern import Pattern, pattern_of
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.view.nest import Access, Leaf
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.cpu.contraction import loop_at, reorder, uses
from pdojo.search.kinds.gpu.copies import Copy, cut, map_copies, neutral_tails, overlap, staged, to_registers
from pdojo.search.kinds.gpu.launches import multiprocessors

SCALAR = "multiply-adds"
"""Option value: use no tensor instruction."""
STEP_BYTES = 64
"""Bytes of a step's terms in one row of an operand."""


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
        """The fragment in which a warp holds results."""
        (name,) = (n for n, a in self.pattern.operands.items() if self.pattern.writes(a))
        return self.pattern.fragments[name]

    @property
    def casts(self) -> list[Leaf]:
        """The statements that cast the factors."""
        return self.pattern.nest.leaves[:-1]


@dataclass(frozen=True, slots=True)
class Part:
    """Sizes of a block's tile and of a warp's part of the tile: rows and columns."""

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


def use_tensor_units(builder: PassBuilder, identifier: str) -> bool:
    """Map a contraction of loops over rows, columns and terms to a tensor unit; False if none is wanted, or none fits.

    A tuning parameter selects the unit, or none.
    """
    leaf = builder.leaf(identifier)
    found = {unit.intrinsic.name: unit for unit in _units(builder, leaf)}
    if not found:
        return False
    exact = [name for name, unit in found.items() if _is_preferred(unit)]
    others = [name for name in found if name not in exact]
    name = leaf.output.array.name
    chosen = builder.choices.choose(f"products of {name}", [*exact, SCALAR, *others])
    if chosen == SCALAR:
        return False
    unit = found[chosen]
    parts = {part.title: part for part in _parts(builder, leaf, unit)}
    if not parts:
        return False
    title = builder.choices.choose(f"tile of {name} for {chosen}", parts)
    ordered = [parts[title], *(part for other, part in parts.items() if other != title)]
    return any(builder.transact(lambda p=part: _tile(builder, identifier, unit, p)) for part in ordered)


def _is_preferred(unit: Unit) -> bool:
    """True if the instruction computes exactly what multiply-adds would, or if the kernel permits TF32."""
    return bool(unit.casts) or Numerics.TF32.value in unit.intrinsic.numerics


def _units(builder: PassBuilder, leaf: Leaf) -> list[Unit]:
    """The instructions that can compute the statement, in the order of the machine description."""
    program = builder.game.program
    found: list[Unit] = []
    for intrinsic in available(program.machine).values():
        if intrinsic.threads and all(program.permits(Numerics(n)) for n in intrinsic.numerics):
            unit = _unit(intrinsic)
            if unit is not None and _computes(builder, leaf, unit):
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
    """The access to memory behind a factor; None if the factor is no cast."""
    if not casts:
        return read
    return next((c.reads[0] for c in casts if c.output.array is read.array and len(c.reads) == 1), None)


def _computes(builder: PassBuilder, leaf: Leaf, unit: Unit) -> bool:
    """True if the unit's meaning has the functions and types of a statement, and of its factors' casts."""
    product = unit.pattern.nest.leaves[-1]
    same = (leaf.accumulate, leaf.contracted, leaf.function) == (
        product.accumulate,
        product.contracted,
        product.function,
    )
    if not same or [a.array.dtype for a in leaf.accesses] != [a.array.dtype for a in product.accesses]:
        return False
    for read, cast in zip(leaf.reads, unit.casts, strict=False):
        writers = builder.nest.writers[read.array.name]
        if len(writers) != 1 or (writers[0].function, writers[0].accumulate) != (cast.function, None):
            return False
        if [a.array.dtype for a in writers[0].accesses] != [a.array.dtype for a in cast.accesses]:
            return False
    return True


def _parts(builder: PassBuilder, leaf: Leaf, unit: Unit) -> list[Part]:
    """The sizes that fit, the fastest first by loads from shared memory and idle multiprocessors."""
    rows, columns = (s.extent for s in leaf.chain[-3:-1])
    outer = prod(s.extent for s in leaf.chain[:-3])
    high, wide = _sides(leaf, unit)
    most = builder.game.machine.gpu.block_threads

    def cost(part: Part) -> float:
        blocks = outer * -(-rows // part.rows) * -(-columns // part.columns)
        rounds = -(-blocks // multiprocessors(builder))
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


def _tile(builder: PassBuilder, identifier: str, unit: Unit, part: Part) -> bool:
    depth = len(builder.leaf(identifier).chain) - 3
    zero = builder.nest.leaves[builder.leaf(identifier).order - 1].id
    result = builder.leaf(identifier).output.array.name
    is_first = uses(builder.leaf(identifier).reads[0], builder.leaf(identifier).chain[depth])
    if unit.casts and not _narrow(builder, identifier):
        return False
    if not _in_warps(builder, identifier, unit, part, depth):
        return False
    results = to_registers(builder, identifier, result, depth)
    if results is None:
        return False
    _with_units(builder, results, [s.extent for s in builder.leaf(zero).chain], depth + 2)
    copies = [_share(builder, identifier, k, depth) for k in (0, 1)]
    if None in copies:
        return False
    shared = [copy for copy in copies if copy is not None]
    if not _map_warps(builder, (zero, results), identifier, depth):
        return False
    mapped = map_copies(builder, shared, part.warps * unit.intrinsic.threads, depth)
    if mapped is None or not overlap(builder, identifier, mapped, depth) or not _place(builder, mapped):
        return False
    if unit.casts:
        _widen(builder, identifier)
    builder.transact(lambda: neutral_tails(builder, zero, identifier, mapped))
    return (
        _one_instruction(builder, identifier, unit, depth, is_first=is_first)
        and all(
            _by_lanes(builder, statement, unit.results, depth + 4, is_first=is_first) for statement in (zero, results)
        )
        and builder.attempt(
            "set_location",
            builder.leaf(identifier).output.array.name,
            "each thread keeps its own part",
            location="register",
        )
    )


def _with_units(builder: PassBuilder, statement: str, extents: Sequence[int], first: int) -> None:
    """Add loops of one iteration to a copy, from depth `first` on, wherever `extents` has a 1."""
    for depth, extent in enumerate(extents[first:], first):
        scope = loop_at(builder, statement, depth)
        if extent == 1 and scope.extent > 1:
            builder.attempt("tile_scope", scope, "loops as those of the zeros", size=scope.extent)


def _narrow(builder: PassBuilder, identifier: str) -> bool:
    """Inline the casts at the product, and delete casts that nothing reads any more."""
    wide = {read.array.name for read in builder.leaf(identifier).reads}
    why = "the instruction takes narrow numbers"
    if not all(builder.attempt("inline_op", builder.leaf(identifier), why, input=position) for position in (0, 1)):
        return False
    for name in sorted(wide):
        for writer in builder.nest.writers[name]:
            builder.attempt("delete_op", writer, "nobody reads it any more")
    return True


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


def _in_warps(builder: PassBuilder, identifier: str, unit: Unit, part: Part, depth: int) -> bool:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {warps {instructions {tile}}}}]."""
    why = part.title
    leaf = builder.leaf(identifier)
    outer, rows, columns = [s.id for s in leaf.chain[:depth]], leaf.chain[depth].id, leaf.chain[depth + 1].id
    high, wide = _sides(leaf, unit)
    levels: list[list[str]] = [[], [], [], []]
    for loop, sizes in ((rows, (part.rows, part.high, high)), (columns, (part.columns, part.wide, wide))):
        inner = loop
        for level, size in enumerate(sizes):
            tiles = cut(builder, inner, size, why)
            if tiles is None:
                return False
            levels[level].append(tiles.outer)
            inner = tiles.inner
        levels[3].append(inner)
    spatial = [s for level in levels for s in level]
    if not reorder(builder, identifier, [*outer, *spatial]):
        return False
    for level in reversed(range(depth + 2, depth + 8)):
        if not builder.attempt("split_scopes", loop_at(builder, identifier, level), why, after=1):
            return False
    step = STEP_BYTES // byte_width(unit.dtype)
    steps = cut(builder, loop_at(builder, identifier, -1).id, step, f"{step} terms at a time")
    turns = None if steps is None else cut(builder, steps.inner, unit.terms, "the terms of an instruction")
    if steps is None or turns is None:
        return False
    ids = [s.id for s in builder.leaf(identifier).chain]
    inside, terms = ids[depth + 2 : depth + 8], ids[depth + 8 :]
    return reorder(builder, identifier, [*ids[: depth + 2], terms[0], *inside[:2], terms[1], *inside[2:], terms[2]])


def _share(builder: PassBuilder, identifier: str, position: int, depth: int) -> Copy | None:
    """Copy the part of an operand that a step needs to shared memory, with space between rows.

    The copy has the layout of the heap, or the order of the loops if a factor's index has divisions (a convolution).
    """
    leaf = builder.leaf(identifier)
    read = leaf.reads[position]
    source = _source([w for w in builder.nest.writers[read.array.name] if w.parent is leaf.parent], read)
    if source is None:
        source = read
    dtype = source.array.dtype
    form = "box" if all(e.is_linear for e in source.index) else "iteration"
    made = staged(builder, leaf.chain[depth + 3], source.array.name, form, "the threads of a block share it")
    if made is None:
        return None
    name, store = made
    shape = builder.nest.arrays[name].shape
    elements = 16 // byte_width(dtype)
    along = any(leaf.chain[-1].depth in e.variables() for e in source.index[-1:])
    space = elements if along or byte_width(dtype) < 4 else 2 * elements
    builder.attempt(
        "pad_dim",
        f"{name}:{len(shape) - 1}",
        "rows are in different banks",
        to=-(-shape[-1] // elements) * elements + space,
    )
    through = False if byte_width(dtype) in builder.game.machine.gpu.async_copy_bytes else None
    return Copy(name, source.array.name, store, is_transposed=False, through=through)


def _map_warps(builder: PassBuilder, others: Sequence[str], identifier: str, depth: int) -> bool:
    """Map loops to blocks of the grid, and to warps of a block."""
    ids = [s.id for s in builder.leaf(identifier).chain[: depth + 2]]
    if not all(builder.attempt("map_grid", f"%{i}", "independent: a block for each iteration") for i in ids):
        return False
    levels = [(identifier, depth + 3), *((other, depth + 2) for other in others)]
    return all(
        builder.attempt("map_block", loop_at(builder, statement, level + k), "a part of the tile for each warp")
        for statement, level in levels
        for k in (0, 1)
    )


def _place(builder: PassBuilder, copies: Sequence[Copy]) -> bool:
    """Put tiles of the block into shared memory, and copies through registers into registers."""
    for copy in copies:
        if not builder.attempt("set_location", copy.shared, "the threads of a block share it", location="shared"):
            return False
        if copy.load is None:
            builder.attempt("async_copy", copy.shared, "the copy runs while the block computes")
            continue
        name = builder.leaf(copy.load).output.array.name
        if not builder.attempt("set_location", name, "each thread keeps its own part", location="register"):
            return False
    return True


def _one_instruction(builder: PassBuilder, identifier: str, unit: Unit, depth: int, *, is_first: bool) -> bool:
    """Make the innermost loops one instruction, and unroll the loops around it."""
    why = f"one {unit.intrinsic.name} for a tile"
    chain = builder.leaf(identifier).chain
    if not is_first and not builder.attempt("swap_scopes", chain[-3], why):
        return False
    chain = builder.leaf(identifier).chain
    if not builder.attempt("tensorize", chain[-3], why, intrinsic=unit.intrinsic.name):
        return False
    around = [s.id for s in builder.leaf(identifier).chain[-6:-3]]
    return all(builder.attempt("unroll", f"%{loop}", "accumulators are in registers") for loop in around)


@dataclass(frozen=True, slots=True)
class _Digit:
    """Consecutive bits of an index within a tile: a part of the lane number or of the slot number."""

    size: int
    lane: int
    """Increment of the lane number per digit; 0 for a slot."""


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


def _by_lanes(builder: PassBuilder, statement: str, fragment: Fragment, level: int, *, is_first: bool) -> bool:
    """Run a statement over the elements of tiles by lanes and slots; the loops over tiles are at `level`."""
    why = "each thread has its elements of the tile"
    around = [s.id for s in builder.leaf(statement).chain[: level + 2]]
    loops = [s.id for s in builder.leaf(statement).chain[level + 2 :]]
    found = _Loops()
    if len(loops) != 2:
        return False
    for loop, dimension in zip(loops, (0, 1) if is_first else (1, 0), strict=True):
        if not _cut_digits(builder, loop, _digits(fragment, dimension), found, why):
            return False
    # The last slot is the lowest digit of the columns if neighbours belong to one thread, and becomes a vector.
    columns = _digits(fragment, 1 if is_first else 0)
    tail = found.slots[-1:] if columns[0].lane == 0 else []
    head = found.slots[: len(found.slots) - len(tail)]
    lanes = [loop for _, loop in sorted(found.lanes, reverse=True)]
    if not reorder(builder, statement, [*around, *head, *lanes, *tail]):
        return False
    first = len(around) + len(head)
    merged = all(builder.attempt("collapse_scopes", loop_at(builder, statement, first), why) for _ in lanes[1:])
    if not merged or not builder.attempt("map_warp", loop_at(builder, statement, first), why):
        return False
    if tail and builder.attempt("vectorize", loop_at(builder, statement, -1), why):
        tail = []
    inside = [s.id for s in builder.leaf(statement).chain[level:] if s.depth != first]
    straight = inside if tail or first + 1 == len(builder.leaf(statement).chain) else inside[:-1]
    return all(builder.attempt("unroll", f"%{loop}", "accumulators are in registers") for loop in straight)


@dataclass
class _Loops:
    """The loops over the elements of a tile."""

    lanes: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Increment of the lane number, and the loop."""
    slots: list[str] = field(default_factory=list[str])


def _cut_digits(builder: PassBuilder, loop: str, digits: Sequence[_Digit], found: _Loops, why: str) -> bool:
    """Cut a loop into one loop per digit of its variable; `found` records each loop as lane or slot."""
    for place in reversed(range(len(digits))):
        outer = loop
        if place:
            tiles = cut(builder, loop, prod(digit.size for digit in digits[:place]), why)
            if tiles is None:
                return False
            outer, loop = tiles
        if digits[place].lane:
            found.lanes.append((digits[place].lane, outer))
        else:
            found.slots.append(outer)
    return True
