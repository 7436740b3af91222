"""Blocks of rows that go through tiles of columns, with products on tensor units (attention in one launch).

A block owns some rows, and each of its warps 16 of them. In steps it multiplies its rows with tiles of other operands,
and passes results from statement to statement and from step to step. All of that stays in registers, in the fragments
of the instruction: a thread has the same rows in every statement, so sums over a row are trees of few threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.errors import IllegalMove
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import delete_unread, has_terms
from pdojo.passes.common.loops import is_copy, reorder, tile
from pdojo.passes.common.units import ProductUnit, matrix_units
from pdojo.passes.gpu.copies import SharedCopy, map_copies, overlap, staged
from pdojo.passes.gpu.matrices import digits_of, is_preferred, place_copies, shared_rows

WARP = "rows of a warp"
HELD = "a warp holds its rows in the fragments of the instruction"


def map_row_blocks(builder: PassBuilder) -> None:
    """Map every nest whose steps have several products of the same rows to blocks of these rows."""
    _inline_copies(builder)
    for top in [node.id for node in builder.nest.children if isinstance(node, Scope)]:
        found = _row_block(builder, builder.scope(top))
        if found is not None and builder.transact(lambda b=found: _map(builder, b)):
            builder.sealed.add(builder.leaf(found.products[0].leaf).chain[0].id)


def _inline_copies(builder: PassBuilder) -> None:
    """Let products read their factors themselves, not copies made for one product (casts to the operand's own type)."""
    for identifier in [leaf.id for leaf in builder.nest.leaves if len(leaf.reads) == 2 and has_terms(leaf)]:
        for position in (0, 1):
            leaf = builder.leaf(identifier)
            name = leaf.reads[position].array.name
            writers = builder.nest.writers.get(name, [])
            if len(writers) == 1 and writers[0].parent is leaf.parent and is_copy(writers[0]):
                builder.attempt("inline_op", leaf, "a copy of one element", input=position)
                delete_unread(builder, name)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of rows and a tile of another operand."""

    leaf: str
    unit: ProductUnit
    is_fed: bool
    """Whether a step computes the rows, in the threads and slots of another product's results."""

    @property
    def rows(self) -> Fragment:
        """The fragment of the rows."""
        return self.unit.pattern.fragments[self.unit.factor(0).array.name]

    @property
    def turns(self) -> bool:
        """Whether terms change places in a tile, so that threads have the rows' elements where results have them."""
        rows, results = (digits_of(f, 1)[0].lane for f in (self.rows, self.unit.results))
        return self.is_fed and rows != results


@dataclass(frozen=True, slots=True)
class _RowBlock:
    """A nest over blocks of rows, with a loop over steps in each."""

    depth: int
    """The number of loops around a block."""
    steps: str
    products: tuple[_Product, ...]
    rows: int

    @property
    def fragment(self) -> Fragment:
        """The fragment of results, which says how a warp holds rows."""
        return self.products[0].unit.results


def _row_block(builder: PassBuilder, top: Scope) -> _RowBlock | None:
    """The blocks of a nest; None if its steps have fewer than two products that an instruction computes."""
    body = top
    while len(body.children) == 1 and isinstance(body.children[0], Scope):
        body = body.children[0]
    depth = body.depth + 1
    units = [u for u in matrix_units(builder.game.machine) if u.intrinsic.threads]
    products: list[_Product] = []
    for leaf in body.leaves:
        if len(leaf.chain) != depth + 4 or not has_terms(leaf):
            continue
        fitting = sorted(
            (u for u in units if u.computes(builder, leaf) and not u.pattern.shared), key=lambda u: not is_preferred(u)
        )
        if not fitting:
            return None
        rows = _source(builder, leaf, fitting[0], 0).array.name
        is_fed = any(writer.chain[:1] == (top,) for writer in builder.nest.writers[rows])
        products.append(_Product(leaf.id, fitting[0], is_fed))
    steps = {builder.leaf(p.leaf).chain[depth].id for p in products}
    extents = {leaf.chain[_level(leaf, depth, steps)].extent for leaf in body.leaves if _has_rows(leaf, depth, steps)}
    if len(products) < 2 or len(steps) != 1 or len(extents) != 1:
        return None
    return _RowBlock(depth, steps.pop(), tuple(products), extents.pop())


def _level(leaf: Leaf, depth: int, steps: set[str]) -> int:
    """The depth of a statement's loop over rows."""
    return depth + 1 if len(leaf.chain) > depth and leaf.chain[depth].id in steps else depth


def _has_rows(leaf: Leaf, depth: int, steps: set[str]) -> bool:
    return len(leaf.chain) > _level(leaf, depth, steps)


def _map(builder: PassBuilder, block: _RowBlock) -> None:
    for leaf in [leaf.id for leaf in builder.nest.leaves if not leaf.reads]:
        builder.attempt("delete_op", builder.leaf(leaf), "nobody reads it: every element is written again")
    for product in block.products:
        _isolate(builder, product.leaf, block.depth + 1)
    shared = [_stage(builder, block, product) for product in block.products]
    stores = {copy.store for copy in shared}
    multiplied = {leaf.id for p in block.products for leaf in builder.loop(p.leaf, -1).leaves}
    others = [leaf.id for leaf in builder.nest.leaves if leaf.id not in stores | multiplied]
    _cut(builder, block, others)
    for loop in [s.id for s in builder.leaf(block.products[0].leaf).chain[: block.depth]]:
        builder.make("map_grid", f"%{loop}", "independent: a block for each iteration")
    for leaf in others:
        _map_element(builder, block, leaf)
    for product in block.products:
        _map_product(builder, product, block.depth + 1)
    threads = block.rows // _rows_of(block) * block.products[0].unit.intrinsic.threads
    mapped = map_copies(builder, shared, threads, block.depth - 2)
    overlap(builder, block.products[0].leaf, mapped, block.depth - 2)
    place_copies(builder, mapped)
    _to_registers(builder, {copy.shared for copy in shared})


def _cut(builder: PassBuilder, block: _RowBlock, others: Sequence[str]) -> None:
    """Cut the loops of all statements, and the dimensions of the arrays that warps hold, into tiles."""
    held = _held(builder, block)
    for scope in _row_loops(builder, block, others):
        _by_digits(builder, tile(builder, scope, _rows_of(block), WARP).inner, block.fragment, 0)
    for leaf in others:
        _cut_columns(builder, block, leaf, held)
    for product in block.products:
        _cut_product(builder, product, block.depth + 1)
    for name, fragment in held.items():
        _cut_dimensions(builder, name, fragment)
    for product in block.products:
        if product.turns:
            _turn(builder, product)


def _rows_of(block: _RowBlock) -> int:
    """Rows of a warp."""
    return block.fragment.shape[0]


def _isolate(builder: PassBuilder, leaf: str, level: int) -> None:
    """Give a product loops over rows and columns of its own."""
    for depth in (level + 1, level):
        while len((scope := builder.loop(leaf, depth)).children) > 1:
            position = builder.loop(leaf, depth + 1).position
            builder.make("split_scopes", scope, "a nest that an instruction computes", after=position or 1)


def _source(builder: PassBuilder, leaf: Leaf, unit: ProductUnit, position: int) -> Access:
    """The operand of a product's factor, before a cast."""
    read = leaf.reads[position]
    return builder.nest.writers[read.array.name][0].reads[0] if unit.casts else read


def _stage(builder: PassBuilder, block: _RowBlock, product: _Product) -> SharedCopy:
    """Copy the rows of a product to registers unless a step computes them, and its other operand to shared memory."""
    leaf, unit = product.leaf, product.unit
    if not product.is_fed:
        rows = _source(builder, builder.leaf(leaf), unit, 0).array.name
        staged(builder, builder.scope(block.steps), rows, "box", "each warp keeps its rows")
    operand = _source(builder, builder.leaf(leaf), unit, 1).array.name
    scope = builder.loop(product.leaf, block.depth + 1)
    name, store = staged(builder, scope, operand, "box", "the threads of a block share it")
    return shared_rows(builder, name, operand, store, apart=False)


def _held(builder: PassBuilder, block: _RowBlock) -> dict[str, Fragment]:
    """The fragments of the arrays that warps hold, keyed by their names."""
    found: dict[str, Fragment] = {}
    for product in block.products:
        leaf = builder.leaf(product.leaf)
        found[leaf.output.array.name] = product.unit.results
        found[_source(builder, leaf, product.unit, 0).array.name] = product.rows
    return found


def _row_loops(builder: PassBuilder, block: _RowBlock, statements: Sequence[str]) -> list[str]:
    """The loops over rows of some statements."""
    found = dict[str, None]()
    for leaf in map(builder.leaf, statements):
        if _has_rows(leaf, block.depth, {block.steps}):
            found[leaf.chain[_level(leaf, block.depth, {block.steps})].id] = None
    return list(found)


def _by_digits(builder: PassBuilder, scope: str, fragment: Fragment, dimension: int) -> list[tuple[str, bool]]:
    """Cut a loop along a dimension of a tile into its digits, highest first; each with whether it is over threads."""
    found: list[tuple[str, bool]] = []
    digits = digits_of(fragment, dimension)
    for number, digit in reversed(list(enumerate(digits))):
        size = prod(lower.size for lower in digits[:number])
        loop, scope = tile(builder, scope, size, HELD) if number else (scope, "")
        found.append((loop, digit.lane != 0))
    return found


def _cut_columns(builder: PassBuilder, block: _RowBlock, statement: str, held: dict[str, Fragment]) -> None:
    """Cut a statement's loop over columns by the tile of an array that it accesses, threads outermost."""
    level = _inside(builder, block, statement)
    chain = builder.leaf(statement).chain
    if len(chain) != level + 1:
        return
    accessed = [held[a.array.name] for a in builder.leaf(statement).accesses if a.array.name in held]
    if not accessed:
        raise IllegalMove("a statement over columns accesses no array that a warp holds")
    widest = max(accessed, key=lambda f: (f.shape[1], f is block.fragment))
    tiles = tile(builder, chain[level].id, widest.shape[1], HELD)
    loops = _by_digits(builder, tiles.inner, widest, 1)
    inner = [loop for loop, is_lane in loops if is_lane], [loop for loop, is_lane in loops if not is_lane]
    around = [s.id for s in builder.leaf(statement).chain[:level]]
    reorder(builder, statement, [*around, *inner[0], tiles.outer, *inner[1]], HELD)


def _inside(builder: PassBuilder, block: _RowBlock, statement: str) -> int:
    """The depth of a statement's loop over columns, behind warps and the digits of rows."""
    level = _level(builder.leaf(statement), block.depth, {block.steps})
    return level + 1 + len(digits_of(block.fragment, 0))


def _cut_product(builder: PassBuilder, product: _Product, level: int) -> None:
    """[rows, columns, terms] to [warps, terms, columns {a tile}]."""
    unit, chain = product.unit, builder.leaf(product.leaf).chain
    around = [s.id for s in chain[:level]]
    sizes = (unit.results.shape[0], unit.results.shape[1], unit.terms)
    rows, columns, terms = (
        tile(builder, scope.id, size, WARP) for scope, size in zip(chain[level:], sizes, strict=True)
    )
    wanted = [*around, rows.outer, terms.outer, columns.outer, rows.inner, columns.inner, terms.inner]
    reorder(builder, product.leaf, wanted)
    if product.turns:
        tile(builder, terms.inner, _pairs(product), HELD)
        builder.make("swap_scopes", builder.loop(product.leaf, -2), HELD)


def _pairs(product: _Product) -> int:
    """Neighbouring results that a thread has, which as rows of a product are apart."""
    return digits_of(product.unit.results, 1)[0].size


def _cut_dimensions(builder: PassBuilder, name: str, fragment: Fragment) -> None:
    """Give an array a dimension for each dimension of a tile."""
    last = len(builder.nest.arrays[name].shape) - 1
    for dimension, size in ((last, fragment.shape[1]), (last - 1, fragment.shape[0])):
        builder.make("tile_dim", f"{name}:{dimension}", HELD, size=size)


def _turn(builder: PassBuilder, product: _Product) -> None:
    """Give the terms in a tile of the rows the places in which the product adds them up."""
    array = _source(builder, builder.leaf(product.leaf), product.unit, 0).array
    last = f"{array.name}:{len(array.shape) - 1}"
    builder.make("tile_dim", last, HELD, size=_pairs(product))
    builder.make("swap_dims", last, HELD)
    builder.make("collapse_dims", last, HELD)
    builder.make("collapse_scopes", builder.loop(product.leaf, -2), HELD)


def _map_element(builder: PassBuilder, block: _RowBlock, statement: str) -> None:
    """Map the loops of a statement to the threads and slots of the warp that holds its rows."""
    level = _level(builder.leaf(statement), block.depth, {block.steps})
    chain = builder.leaf(statement).chain[level:]
    if not chain or chain[0].mapping is not Mapping.SEQUENTIAL:
        chain = chain[_inside(builder, block, statement) - level :]
    else:
        warps, *rows = chain[: _inside(builder, block, statement) - level]
        builder.make("map_block", f"%{warps.id}", WARP)
        for scope, digit in zip(rows, reversed(digits_of(block.fragment, 0)), strict=True):
            builder.make("map_block" if digit.lane else "unroll", f"%{scope.id}", HELD)
        chain = chain[1 + len(rows) :]
    columns = [s.id for s in chain]
    if not columns or builder.scope(columns[0]).mapping is not Mapping.SEQUENTIAL:
        return
    builder.make("map_warp", f"%{columns[0]}", HELD)
    outside = any(a.array.intent is not None for a in builder.leaf(statement).accesses)
    if outside and builder.attempt("vectorize", f"%{columns[-1]}", "neighbours in one access"):
        columns.pop()
    for loop in columns[1:]:
        builder.make("unroll", f"%{loop}", HELD)


def _map_product(builder: PassBuilder, product: _Product, level: int) -> None:
    warps, terms, columns, rows, *_ = (s.id for s in builder.leaf(product.leaf).chain[level:])
    builder.make("map_block", f"%{warps}", WARP)
    why = f"one {product.unit.intrinsic.name} for a tile"
    builder.make("tensorize", f"%{rows}", why, intrinsic=product.unit.intrinsic.name)
    for loop in (terms, columns):
        builder.make("unroll", f"%{loop}", "a warp's tiles are in registers")


def _to_registers(builder: PassBuilder, shared: set[str]) -> None:
    """Keep one slot of each temporary per block, in the registers of threads."""
    for buffer in list(builder.nest.buffers):
        name = buffer.names[0]
        if buffer.op is None or name in shared or buffer.memory is not Memory.HEAP:
            continue
        for dimension in range(len(builder.nest.arrays[name].shape)):
            builder.attempt("reuse_dims", f"{name}:{dimension}", "a block needs its own part only")
        builder.make("set_location", name, HELD, location="register")
