"""Contractions, that is sums of products whose operands are each used by many results: their shape, common moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from pdojo.dialect.affine import Expr
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.nodes import is_plain, is_whole
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import is_copy

MOST_STRAIGHT = 32
"""Greatest extent of each of a block's two loops that is unrolled."""
VECTORS = (1, 2, 4, 5, 6, 8)
"""Numbers of vectors in a block's row. Not three: LLVM takes seconds to keep arrays of three vectors in registers."""
WORTH_CHOOSING = 1 << 20
"""Fewest products of a contraction whose plan is left open."""
MOST_PADDED = 1.25
"""Greatest size of a packed copy, as a multiple of the array's."""
ONCE = "the operand is constant: it is packed once, at binding"


@dataclass(frozen=True)
class ContractionShape:
    """The roles of the loops around an accumulation of one or two reads."""

    leaf: Leaf

    @cached_property
    def spatial(self) -> tuple[Scope, ...]:
        """The loops over results."""
        depths = spatial_loops(self.leaf)
        return tuple(s for s in self.leaf.chain if s.depth in depths)

    @cached_property
    def terms(self) -> tuple[Scope, ...]:
        """The loops over the terms of a result."""
        return tuple(s for s in self.leaf.chain if s not in self.spatial)

    @cached_property
    def own(self) -> tuple[tuple[Scope, ...], ...]:
        """For each read, the loops over results that index no other read."""
        using = [[k for k, access in enumerate(self.leaf.reads) if uses(access, s)] for s in self.spatial]
        return tuple(
            tuple(s for s, found in zip(self.spatial, using, strict=True) if found == [k])
            for k in range(len(self.leaf.reads))
        )

    @cached_property
    def shared(self) -> tuple[Scope, ...]:
        """The loops over results that index both reads, such as the channels of a convolution by channels."""
        reads = self.leaf.reads
        return tuple(
            s for s in self.spatial if len(reads) > 1 and s.extent > 1 and all(uses(read, s) for read in reads)
        )

    @property
    def results(self) -> int:
        """Number of results."""
        return prod(s.extent for s in self.spatial)


def contraction_shape(leaf: Leaf) -> ContractionShape | None:
    """The shape of an accumulation in plain loops; None for other statements, and in mapped or guarded loops."""
    plain = all(map(is_plain, leaf.chain))
    return ContractionShape(leaf) if plain and has_terms(leaf) else None


def contractions(builder: PassBuilder) -> Iterator[ContractionShape]:
    """The contractions that share a nest only with their initialisation; each is looked up when it is asked for."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        shape = contraction_shape(builder.leaf(identifier))
        if shape is not None and is_alone(shape.leaf):
            yield shape


def has_terms(leaf: Leaf) -> bool:
    """True for an accumulation of one or two reads over loops of terms, into results indexed by other loops."""
    return leaf.accumulate is not None and 0 < len(spatial_loops(leaf)) < len(leaf.chain) and len(leaf.reads) in (1, 2)


def spatial_loops(leaf: Leaf) -> set[int]:
    """Depths of the loops that index the result, and of one-iteration loops outside of these."""
    used = {s.depth for s in leaf.chain if uses(leaf.output, s)}
    return used | {s.depth for s in leaf.chain if s.extent == 1 and s.depth < max(used, default=0)}


def steps_around(leaf: Leaf) -> int:
    """The number of outermost loops over results that other statements share, such as the steps of a recurrence."""
    shared = [s.depth + 1 for s in leaf.chain[: max(spatial_loops(leaf), default=0)] if len(s.children) != 1]
    return max(shared, default=0)


def is_alone(leaf: Leaf, steps: int = 0) -> bool:
    """True if the nest holds only initialisation, sum and statements that follow, with the spatial loops around all.

    The outermost `steps` loops may hold other statements, too.
    """
    spatial = spatial_loops(leaf)
    if not spatial or spatial != set(range(len(spatial))) or steps >= len(spatial):
        return False
    innermost = leaf.chain[len(spatial) - 1]
    if len(innermost.children) < 2 or any(len(s.children) != 1 for s in leaf.chain[steps : len(spatial) - 1]):
        return False
    first, own, *behind = innermost.children
    follows = isinstance(own, Scope) and leaf in own.leaves and all(isinstance(each, Leaf) for each in behind)
    return follows and isinstance(first, Leaf) and first.accumulate is None and first.output.key == leaf.output.key


def uses(access: Access, scope: Scope) -> bool:
    """True if a loop indexes an access."""
    return any(e.uses(scope.depth) for e in access.index)


def can_pack(leaf: Leaf, panel: Access) -> bool:
    """True if a copy of the panel in loop order is at most `MOST_PADDED` times the array; overlapping windows are not.

    Lanes beyond the array, which fill up vectors, do not count.
    """
    loops = {v for e in panel.index for v in e.variables()}
    inside = prod(_part_inside(leaf, e, n) for e, n in zip(panel.index, panel.array.shape, strict=True))
    part = min(inside, _part_guarded(leaf, loops))
    return prod(leaf.chain[v].extent for v in loops) * part <= MOST_PADDED * prod(panel.array.shape)


def _part_guarded(leaf: Leaf, loops: set[int]) -> float:
    """The part of the iterations of some loops that run, if one guard on all lanes and vectors of a row bounds them."""
    found = 1.0
    for guard in leaf.guards:
        used = guard.variables()
        digits = sorted((-guard.coefficient(v), leaf.chain[v].extent) for v in used)
        steps = [prod(n for _, n in digits[:k]) for k in range(len(digits))]
        if used and used <= loops and guard.is_linear and [step for step, _ in digits] == steps:
            found = min(found, (guard.constant + 1) / prod(n for _, n in digits))
    return found


def _part_inside(leaf: Leaf, index: Expr, extent: int) -> float:
    """The part of the iterations of one dimension's loops that are inside of a dimension of `extent`.

    All, if the index is no sum of iterations, or if two iterations read the same element.
    """
    loops = sorted((abs(index.coefficient(v)), leaf.chain[v].extent) for v in index.variables())
    count, reach = prod(n for _, n in loops), 0
    for step, n in loops:
        if step <= reach:
            return 1.0
        reach += step * (n - 1)
    return min(1.0, extent / count)


def is_bound(leaf: Leaf, panel: Access) -> bool:
    """True if a copy of the panel in loop order may be made once, at binding, because the panel is constant.

    Constants whose extents a call gives are copied by each call, as other arrays are.
    """
    return panel.array.buffer.constant and not panel.array.buffer.sized and can_pack(leaf, panel)


@dataclass(frozen=True, order=True, slots=True)
class Block:
    """A block of results in registers, with an estimate of the cost of all blocks."""

    cost: float
    height: int
    """Rows of a block, in vectors or in tiles of an instruction."""
    vectors: int
    """Vectors or tiles in a row of a block."""


def best_blocks(
    rows: int, vectors: Iterable[int], registers: int, cost: Callable[[int, int], float]
) -> Iterator[Block]:
    """For each number of vectors, the block of least cost whose results, and operands of one step, fit the registers.

    `cost` is a function of a height and a number of vectors.
    """
    for count in vectors:
        heights = range(1, min(32, rows, (registers - count - 1) // count) + 1)
        yield min(
            (Block(cost(height, count), height, count) for height in heights), default=Block(float("inf"), 1, count)
        )


def tiles_of(extent: int, size: int) -> list[tuple[int, int]]:
    """Size and number of the full tiles and of the rest."""
    return [(size, extent // size), (extent % size, 1 if extent % size else 0)]


def peel(builder: PassBuilder, sums: Sequence[str], depth: int, after: int, why: str) -> list[list[str]]:
    """Peel off the remainder of the loop at `depth` after `after` iterations.

    Returns the sums of both parts, of the rest in order; only the first part if there is no rest or no whole part.
    """
    main = sums[0]
    scope = builder.loop(main, depth)
    if after in (0, scope.extent):
        return [list(sums)]
    return _peel(builder, sums, scope, why, after=after)


def peel_tiles(builder: PassBuilder, sums: Sequence[str], depth: int, size: int, why: str) -> list[list[str]]:
    """`peel` after the last whole tile of `size` iterations of a loop whose extent depends on sizes."""
    scope = builder.loop(sums[0], depth)
    if size < 2 or size > scope.extent or is_whole(scope, size):
        return [list(sums)]
    return _peel(builder, sums, scope, why, multiple=size)


def _peel(builder: PassBuilder, sums: Sequence[str], scope: Scope, why: str, **cut: int) -> list[list[str]]:
    main = sums[0]
    before = accumulations(builder, main)
    if not builder.attempt("peel_scope", scope, f"{why}; the rest by itself", **cut):
        return [list(sums)]
    return [list(sums), [i for i in accumulations(builder, main) if i not in before]]


def accumulations(builder: PassBuilder, identifier: str) -> list[str]:
    """The accumulations into the array that a statement writes, in order."""
    array = builder.leaf(identifier).output.array.name
    found = [w for w in builder.nest.writers[array] if w.accumulate is not None]
    return [w.id for w in sorted(found, key=lambda w: w.order)]


def own_buffer(builder: PassBuilder, identifier: str, depth: int, why: str) -> str:
    """Keep a block in its own buffer from its zeros to its last sum; the loop over blocks is at `depth`.

    Returns the statement that stores the complete results.
    """
    array, known = builder.leaf(identifier).output.array.name, builder.nest.by_id.keys()
    builder.make("stage_out", builder.loop(identifier, depth), why, array=array, location="heap")
    back = next(leaf.id for leaf in builder.nest.leaves if leaf.id not in known)
    if builder.loop(identifier, depth).extent == 1:
        # Copies have no loops of one iteration.
        beside = builder.loop(back, depth)
        builder.attempt("tile_scope", beside, why, size=beside.extent)
    builder.make("join_scopes", builder.loop(identifier, depth), why)
    return back


def own_block(builder: PassBuilder, identifier: str, depth: int, why: str) -> tuple[str, str]:
    """`own_buffer` with one slot for each result of a block; returns the statements that zero and store the block."""
    back = own_buffer(builder, identifier, depth, why)
    name = builder.leaf(identifier).output.array.name
    builder.exhaust(lambda: [f"{name}:{d}" for d in range(len(builder.nest.arrays[name].shape))], "reuse_dims", why)
    zero = next(w.id for w in builder.nest.writers[name] if w.accumulate is None)
    return zero, back


def arrange_copy(builder: PassBuilder, name: str, wanted: Sequence[int], why: str) -> None:
    """Permute the dimensions of a copy, and the loops that write it, into the order `wanted`."""
    for place in _swaps(wanted):
        builder.attempt("swap_dims", f"{name}:{place}", why)
        (writer,) = builder.nest.writers[name]
        outside = len(writer.chain) - len(wanted)
        builder.attempt("swap_scopes", writer.chain[outside + place], "written in order")


def _swaps(wanted: Sequence[int]) -> Iterator[int]:
    """The places of the first one of two neighbours to exchange, one after the other, to get the order `wanted`."""
    now = list(range(len(wanted)))
    for target, dimension in enumerate(wanted):
        for place in reversed(range(target, now.index(dimension))):
            yield place
            now[place], now[place + 1] = now[place + 1], now[place]


def is_packed(builder: PassBuilder, read: Access, tile: Sequence[int]) -> bool:
    """True if an operand is a copy in tiles of these extents, made for another piece of the columns."""
    writers = builder.nest.writers.get(read.array.name, [])
    return len(writers) == 1 and is_copy(writers[0]) and read.array.shape[-len(tile) :] == tuple(tile)


def pack_box(
    builder: PassBuilder, around: Scope, read: Callable[[], Access], tile: Sequence[tuple[int, int]], why: str
) -> None:
    """Copy all elements of an operand that the pieces of the columns read, which the loop `around` may contain.

    `read` gives the access now. `tile` are the depths of the loops inside of a tile and their sizes; the copy has the
    order of the loops, those of a tile last.
    """
    builder.make("stage_in", around, why, array=read().array.name, location="heap", form="box")
    for depth, size in tile:
        (dimension,) = (d for d, e in enumerate(read().index) if e.uses(depth))
        builder.make("tile_dim", f"{read().array.name}:{dimension}", why, size=size)
    inside = [depth for depth, _ in tile]
    depths = [max(e.variables(), default=0) for e in read().index]
    places = [(inside.index(depth) if depth in inside else -1, depth) for depth in depths]
    for place in _swaps(sorted(range(len(places)), key=places.__getitem__)):
        builder.make("swap_dims", f"{read().array.name}:{place}", why)


def narrow_factors(builder: PassBuilder, identifier: str) -> None:
    """Inline the casts of a product's factors, and delete the casts that nothing reads any more."""
    wide = {read.array.name for read in builder.leaf(identifier).reads}
    for position in (0, 1):
        builder.make("inline_op", builder.leaf(identifier), "the instruction takes narrow numbers", input=position)
    for name in sorted(wide):
        delete_unread(builder, name)


def split_lanes(builder: PassBuilder, made: list[str], why: str) -> None:
    """Give each statement of a loop over lanes its own loop."""
    for each in made[:-1]:
        array = builder.leaf(each).output.array
        builder.make("set_location", array.name, why, location="heap")
        builder.make("materialize_dims", f"{array.name}:{len(array.shape) - 1}", why)
        builder.make("split_scopes", builder.loop(each, -1), why, after=1)


def delete_unread(builder: PassBuilder, name: str) -> None:
    """Delete the statements that compute a temporary that nothing reads, and those that only it needed."""
    array = builder.nest.arrays.get(name)
    if array is None or array.intent is not None or builder.nest.readers.get(name):
        return
    for writer in list(builder.nest.writers.get(name, ())):
        read = {each.array.name for each in writer.reads}
        builder.make("delete_op", writer, "nobody reads it any more")
        for each in sorted(read):
            delete_unread(builder, each)
