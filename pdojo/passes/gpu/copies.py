"""Tiles of operands in shared memory, and of results in registers: the common part of all plans for contractions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.rules.async_copies import async_copy_problem
from pdojo.dialect.rules.lanes import Stride, lane_stride
from pdojo.dialect.view.nest import Array, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import own_buffer
from pdojo.passes.gpu.launches import multiprocessors
from pdojo.passes.gpu.threads import collapse, spread

PADDING = 4
"""Padding elements between rows of shared memory, so that columns are in different banks."""


@dataclass(frozen=True, slots=True)
class BlockTile:
    """Sizes of a block's tile of results, and of a thread's or a warp's part of it."""

    rows: int
    columns: int
    height: int
    width: int

    @property
    def parts(self) -> int:
        """Number of parts of a tile."""
        return -(-self.rows // self.height) * (self.columns // self.width)

    def title(self, owner: str) -> str:
        """The sizes in a few words; `owner` has a part."""
        return f"{self.rows} x {self.columns} results of a block, {self.height} x {self.width} of a {owner}"


def fastest_first(
    builder: PassBuilder, tiles: Iterable[BlockTile], chain: Sequence[Scope], load: int
) -> list[BlockTile]:
    """The tiles that fit the loops over rows and columns, sorted by loads from shared memory and idle multiprocessors.

    The loops end with those over rows, columns and terms; `load` is the time of a load in multiply-adds of one result.
    """
    *_, rows, columns, _ = (s.extent for s in chain)
    fitting = (tile for tile in tiles if tile.rows <= rows and tile.columns <= columns)
    return sorted(fitting, key=lambda tile: tile_cost(builder, tile, chain, load))


def tile_cost(builder: PassBuilder, tile: BlockTile, chain: Sequence[Scope], load: int) -> float:
    """The time of a contraction in tiles, in multiply-adds of a multiprocessor, up to a factor."""
    *outer, rows, columns, _ = (s.extent for s in chain)
    blocks = prod(outer) * -(-rows // tile.rows) * -(-columns // tile.columns)
    rounds = -(-blocks // multiprocessors(builder))
    return rounds * tile.rows * tile.columns * (1 + load / tile.height + load / tile.width)


def to_registers(builder: PassBuilder, identifier: str, depth: int) -> str:
    """Keep a block's results in their own buffer until complete; returns the statement that stores them."""
    stored = own_buffer(builder, identifier, depth + 1, "each thread keeps its results in registers")
    name = builder.leaf(identifier).output.array.name
    for dimension in range(depth + 2):
        builder.attempt("reuse_dims", f"{name}:{dimension}", "a block needs its own part only")
    return stored


@dataclass(frozen=True, slots=True)
class SharedCopy:
    """A tile of an operand in shared memory."""

    shared: str
    """Name of the buffer."""
    operand: str
    """Name of the array that it is a copy of."""
    store: str
    """The statement that writes it."""
    is_transposed: bool
    through: bool | None
    """True if the copy goes through registers, as a transposed copy does; None: unless it can run asynchronously."""
    load: str | None = None
    """The statement that first reads the operand into registers; None if the copy is direct."""


def share(builder: PassBuilder, identifier: str, position: int, depth: int) -> SharedCopy:
    """Copy the part of an operand that a step needs to shared memory, one row for each term."""
    leaf = builder.leaf(identifier)
    access = leaf.reads[position]
    threads, terms = leaf.chain[depth + 3], leaf.chain[depth + 5]
    along = lane_stride(access.index, access.array.shape, terms.depth) is Stride.CONTIGUOUS
    why = "the threads of a block share it"
    made: list[str] = []
    if all(e.is_linear for e in access.index):
        builder.transact(lambda: made.extend(staged(builder, threads, access.array.name, "box", why)))
    number = 1 if along else 0
    if not made or len(builder.leaf(made[1]).chain) != depth + 5:
        # A loop over threads, the loop over terms, a thread's part.
        made, number = made or [*staged(builder, threads, access.array.name, "iteration", why)], 1
    shared, store = made
    first = len(builder.nest.arrays[shared].shape) - (len(builder.leaf(store).chain) - depth - 3)
    for dimension in reversed(range(first, first + number)):
        builder.make("swap_dims", f"{shared}:{dimension}", "neighbouring threads read neighbouring elements")
    _order_copy(builder, store, depth + 3, number, last=along)
    if along:
        shape = builder.nest.arrays[shared].shape
        builder.attempt("pad_dim", f"{shared}:{len(shape) - 1}", "terms are in different banks", to=shape[-1] + PADDING)
    return SharedCopy(shared, access.array.name, store, is_transposed=along, through=along)


def _order_copy(builder: PassBuilder, store: str, depth: int, number: int, *, last: bool) -> None:
    """Make the copy's loop over terms, which is number `number`, the last or the first loop."""
    count = len(builder.leaf(store).chain) - depth
    for k in range(number, count - 1) if last else reversed(range(number)):
        builder.make("swap_scopes", builder.loop(store, depth + k), "neighbouring threads copy neighbouring elements")


def staged(builder: PassBuilder, scope: Scope, name: str, form: str, why: str) -> tuple[str, str]:
    """Stage an array for a scope; returns the copy's name and the statement that writes it."""
    leaves, arrays = {leaf.id for leaf in builder.nest.leaves}, set(builder.nest.arrays)
    builder.make("stage_in", scope, why, array=name, location="heap", form=form)
    (made,) = builder.nest.arrays.keys() - arrays
    (writer,) = (leaf.id for leaf in builder.nest.leaves if leaf.id not in leaves)
    return made, writer


def map_copies(builder: PassBuilder, copies: Sequence[SharedCopy], threads: int, depth: int) -> list[SharedCopy]:
    """Map copies to all threads of the block: neighbours copy neighbouring elements, in vectors if aligned."""
    found: list[SharedCopy] = []
    for copy in copies:
        builder.first(
            lambda c=way, n=lanes: _map_copy(builder, c, threads, n, depth, found)
            for way, lanes in _ways(builder, copy)
        )
    return found


def _ways(builder: PassBuilder, copy: SharedCopy) -> Iterator[tuple[SharedCopy, int]]:
    """The ways to make a copy, through registers or directly, with the number of lanes, the best first."""
    array = builder.nest.arrays[copy.shared]
    lanes = [n for n in (8, 4, 2, 1) if n <= _most_lanes(array)]
    if copy.through is None:
        sizes = builder.game.machine.gpu.async_copy_bytes
        yield from ((copy, n) for n in lanes if n * byte_width(array.dtype) in sizes)
        copy = replace(copy, through=True)
    yield from ((copy, n) for n in lanes)


def _most_lanes(array: Array) -> int:
    """Elements of an array in 16 bytes; 4 if an element has more than 4 bytes."""
    return 16 // min(4, byte_width(array.dtype))


def _map_copy(
    builder: PassBuilder, copy: SharedCopy, threads: int, lanes: int, depth: int, made: list[SharedCopy]
) -> bool:
    """Map a copy to the threads, through registers if necessary; appends the mapped copy to `made`."""
    why = "neighbouring threads copy neighbouring elements"
    collapse(builder, builder.loop(copy.store, depth + 3).id, why)
    found = spread(builder, builder.loop(copy.store, depth + 3).id, threads, lanes, why)
    statements = [copy.store]
    if copy.through:
        threads_scope = builder.scope(found.threads)
        why_through = "it is transposed on the way" if copy.is_transposed else "the loads have time until the stores"
        _, load = staged(builder, threads_scope, copy.operand, "iteration", why_through)
        copy = replace(copy, load=load)
        statements.insert(0, load)
    for statement in statements:
        if not _map_loops(builder, statement, statement != copy.store or not copy.is_transposed, depth, why):
            return False
    if copy.through is None:
        if async_copy_problem(builder.leaf(copy.store), builder.game.machine) is not None:
            return False
        copy = replace(copy, through=False)
    made.append(copy)
    return True


def _map_loops(builder: PassBuilder, statement: str, in_vectors: bool, depth: int, why: str) -> bool:
    """Map the loops of a copy: threads, turns, and the elements that a thread copies together."""
    threads, *inner = (s.id for s in builder.leaf(statement).chain[depth + 3 :])
    builder.make("map_block", f"%{threads}", why)
    for loop in inner:
        scope = builder.scope(loop)
        child = scope.children[0]
        last = isinstance(child, Leaf) and scope.extent <= _most_lanes(child.output.array)
        if not (in_vectors and last and builder.attempt("vectorize", scope, why)):
            if in_vectors and last and len(inner) > 1:
                return False
            builder.make("unroll", scope, why)
    return True


def overlap(
    builder: PassBuilder, identifier: str, copies: Sequence[SharedCopy], depth: int, *, further: bool = False
) -> None:
    """Copy the next step's tiles during the computation of this step; the steps run one by one if that is illegal.

    `further`: copy two steps ahead if possible, beside the tiles of a step that may still be in use.
    """
    direct = all(copy.load is None for copy in copies)
    ways = [(4, 3), (3, 2), (2, 2)] if further and direct else [(2, 2)]
    if not any(builder.transact(lambda w=way: _pipeline(builder, identifier, copies, depth, *w)) for way in ways):
        for name in _step_buffers(builder, copies):
            builder.attempt("reuse_dims", f"{name}:{depth + 2}", "every step needs it anew")


def _step_buffers(builder: PassBuilder, copies: Sequence[SharedCopy]) -> list[str]:
    """The names of the buffers with a step's operands."""
    return [builder.leaf(s).output.array.name for copy in copies for s in (copy.load, copy.store) if s is not None]


def _pipeline(
    builder: PassBuilder, identifier: str, copies: Sequence[SharedCopy], depth: int, slots: int, stages: int
) -> None:
    why = "the next tiles come while these are in use"
    # Reads of memory come first, stores from registers last.
    first = [copy.store if copy.load is None else copy.load for copy in copies]
    last = [copy.store for copy in copies if copy.load is not None]
    _order(builder, [*first, *last], depth, why)
    for name in _step_buffers(builder, copies):
        builder.make("fold_dim", f"{name}:{depth + 2}", f"{slots} tiles: in use, and to come", slots=slots)
    steps = builder.loop(identifier, depth + 2)
    builder.make("pipeline", steps, why, stages=stages, after=len(first) + len(last))
    if last:
        builder.make("split_scopes", builder.loop(last[0], depth + 3), why, after=len(first))
        stage = builder.loop(last[0], depth + 3)
        builder.make("swap_nodes", stage, "stored when the block has computed: the loads have time")
    for copy in copies:
        if copy.load is not None:
            name = builder.leaf(copy.load).output.array.name
            builder.attempt("reuse_dims", f"{name}:{depth + 2}", "in registers for one step only")


def _order(builder: PassBuilder, statements: Sequence[str], depth: int, why: str) -> None:
    """Put the nodes with these statements first in a step, in this order."""
    for number, statement in enumerate(statements):
        while (node := builder.loop(statement, depth + 3)).position > number:
            before = builder.nest.previous_sibling(node)
            assert before is not None
            builder.make("swap_nodes", before, why)


def neutral_tails(builder: PassBuilder, zero: str, identifier: str, copies: Sequence[SharedCopy]) -> bool:
    """Fill tiles beyond the operands with zeros, so that the sums need no guards."""
    why = "what is beyond the operand adds nothing"
    if not any(s.guard for leaf in (zero, identifier) for s in builder.leaf(leaf).chain):
        return False
    # x + 0 * -0.0 is x to the bit.
    for copy, value in zip(copies, ("-0.0", "0"), strict=True):
        statement = builder.leaf(copy.store if copy.load is None else copy.load)
        if any(s.guard for s in statement.chain):
            is_integer = not is_float(statement.output.array.dtype)
            builder.attempt("fill_tail", statement, why, value=0 if is_integer or value == "0" else value)
    fragments = [w.id for a in builder.leaf(identifier).reads for w in builder.nest.writers[a.array.name]]
    stores = [copy.store for copy in copies if copy.load is not None]
    for statement in (zero, *stores, *fragments, identifier):
        # Scopes of one iteration hold the stages of the pipeline.
        for scope in [s.id for s in builder.leaf(statement).chain if s.extent > 1]:
            _drop_guards(builder, scope, why)
    return True


def _drop_guards(builder: PassBuilder, identifier: str, why: str) -> None:
    scope = builder.find_scope(identifier)
    for constraint in reversed(range(len(scope.guard) if scope is not None else 0)):
        builder.attempt("drop_guard", f"%{identifier}", why, constraint=constraint)
