"""Tiles of contractions: shared memory for a block, registers for a thread (as CUTLASS and the paper's Figure 12 do).

A block computes a tile of results in steps over the terms. In each step it copies the tile's operands for the next step
to shared memory while it computes with the current ones. Each thread keeps a part of the tile in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import ContractionShape, contractions
from pdojo.passes.common.loops import reorder, straighten, tile
from pdojo.passes.gpu.copies import (
    BlockTile,
    SharedCopy,
    fastest_first,
    map_copies,
    neutral_tails,
    overlap,
    share,
    staged,
    to_registers,
)
from pdojo.passes.gpu.launches import multiprocessors, part_terms
from pdojo.passes.gpu.matrices import use_tensor_units
from pdojo.passes.gpu.threads import largest_power, vector_lanes

STEP = 16
"""Terms of a step."""
LEAST, FEW = 32, 4
"""Fewest columns and fewest rows for which tiles pay."""
MOST_TERMS = 256
"""Number of terms below which a sum is not split."""
TILES = (
    BlockTile(128, 128, 8, 8),
    BlockTile(128, 64, 8, 4),
    BlockTile(64, 64, 4, 4),
    BlockTile(64, 32, 4, 4),
    BlockTile(32, 32, 4, 4),
)


def tile_contractions(builder: PassBuilder) -> None:
    """Tile every contraction of two operands that are both shared by many results."""
    for shape in contractions(builder):
        sides = _sides(shape)
        if sides is not None and builder.transact(lambda s=shape, w=sides: _prepare(builder, s, *w)):
            builder.sealed.add(builder.loop(shape.leaf.id, 0).id)


def split_terms_of_few(builder: PassBuilder) -> None:
    """Split the terms of contractions with too few tiles for the multiprocessors."""
    for shape in contractions(builder):
        sides = _sides(shape)
        if sides is not None:
            builder.transact(lambda s=shape, w=sides: _split_terms(builder, s, *w))


def _sides(shape: ContractionShape) -> tuple[tuple[Scope, ...], tuple[Scope, ...]] | None:
    """The loops over rows, and those over columns, along which the results are contiguous; None if one is missing."""
    if len(shape.own) != 2 or not all(shape.own):
        return None
    output = shape.leaf.output

    def far(loops: tuple[Scope, ...]) -> tuple[bool, int]:
        strides = (lane_stride(output.index, output.array.shape, s.depth) for s in loops)
        return Stride.CONTIGUOUS not in strides, -max(s.depth for s in loops)

    columns, rows = sorted(shape.own, key=far)
    return rows, columns


def _terms(shape: ContractionShape) -> list[Scope]:
    """The loops over terms, the longest strides in the operands first: channels innermost if they are last."""
    addresses = [linear_address(read.index, read.array.shape) for read in shape.leaf.reads]
    if not all(address.is_linear for address in addresses):
        return list(shape.terms)
    return sorted(shape.terms, key=lambda s: -min(abs(address.coefficient(s.depth)) for address in addresses))


def _split_terms(
    builder: PassBuilder, shape: ContractionShape, rows: Sequence[Scope], columns: Sequence[Scope]
) -> bool:
    high, wide, terms = (prod(s.extent for s in loops) for loops in (rows, columns, shape.terms))
    outer = shape.results // (high * wide)
    blocks = outer * -(-high // 64) * -(-wide // 64)
    count = largest_power(min(2 * multiprocessors(builder) / blocks, terms / MOST_TERMS))
    if count < 2 or high < LEAST or wide < LEAST:
        return False
    why = f"{blocks} tiles are too few for {multiprocessors(builder)} multiprocessors"
    part_terms(builder, shape.leaf.id, count, why)
    return True


def _prepare(builder: PassBuilder, shape: ContractionShape, rows: Sequence[Scope], columns: Sequence[Scope]) -> bool:
    """Make one loop each over rows, columns and terms, then tiles of the first size that fits."""
    identifier, why = shape.leaf.id, "one loop over rows, one over columns, one over terms"
    outer = [s for s in shape.spatial if s not in (*rows, *columns)]
    reorder(builder, identifier, [s.id for loops in (outer, rows, columns, _terms(shape)) for s in loops])
    start = len(shape.leaf.chain)
    for loops in (shape.terms, columns, rows):
        start -= len(loops)
        for _ in loops[1:]:
            builder.make("collapse_scopes", builder.loop(identifier, start), why)
    chain = builder.leaf(identifier).chain
    high, wide, terms = (s.extent for s in chain[-3:])
    if high < FEW or wide < LEAST or terms < STEP:
        return False
    if use_tensor_units(builder, identifier):
        return True
    name = builder.leaf(identifier).output.array.name
    few = [BlockTile(high, width, -(-high // 2), 4) for width in (512, 256, 128)] if high <= 16 else []
    plans = {plan.title("thread"): plan for plan in fastest_first(builder, (*TILES, *few), chain, 2)}
    if not plans:
        return False
    chosen = builder.choices.choose(f"tile of {name}", plans)
    ordered = [plans[chosen], *(plan for title, plan in plans.items() if title != chosen)]
    return any(builder.transact(lambda p=plan: _tile(builder, identifier, p)) for plan in ordered)


def _tile(builder: PassBuilder, identifier: str, plan: BlockTile) -> None:
    depth = len(builder.leaf(identifier).chain) - 3
    zero = builder.nest.leaves[builder.leaf(identifier).order - 1].id
    _in_blocks(builder, identifier, plan, depth)
    results = to_registers(builder, identifier, depth)
    shared = [share(builder, identifier, k, depth) for k in (0, 1)]
    for copy in shared:
        # A thread's operands of one term are in registers.
        scope = builder.loop(identifier, depth + 6)
        staged(builder, scope, copy.shared, "iteration", "one read for several products")
    _map_block(builder, (zero, results), identifier, depth)
    copies = map_copies(builder, shared, plan.parts, depth)
    overlap(builder, identifier, copies, depth)
    _place(builder, copies, identifier)
    builder.transact(lambda: neutral_tails(builder, zero, identifier, copies))


def _in_blocks(builder: PassBuilder, identifier: str, plan: BlockTile, depth: int) -> None:
    """[rows, columns, terms] to [row tiles, column tiles {zeros, steps {threads {terms {part of a tile}}}}]."""
    why = plan.title("thread")
    chain = builder.leaf(identifier).chain
    outer, rows, columns = [s.id for s in chain[:depth]], chain[depth].id, chain[depth + 1].id
    lanes = min(4, *vector_lanes(builder, [builder.leaf(identifier)])[:1])
    order: list[list[str]] = [[], [], []]
    for loop, whole, own in ((rows, plan.rows, plan.height), (columns, plan.columns, lanes)):
        tiles = tile(builder, loop, whole, why)
        order[0].append(tiles.outer)
        inner = tiles.inner
        if loop == columns and plan.width > lanes:
            groups = tile(builder, inner, whole * lanes // plan.width, why)
            order[2].append(groups.outer)
            inner = groups.inner
        parts = tile(builder, inner, own, why)
        order[1].append(parts.outer)
        order[2].append(parts.inner)
    reorder(builder, identifier, [*outer, *order[0], *order[1], *order[2]])
    for level in reversed(range(depth + 2, depth + 4 + len(order[2]))):
        builder.make("split_scopes", builder.loop(identifier, level), why, after=1)
    steps = tile(builder, builder.loop(identifier, -1), STEP, f"{STEP} terms at a time")
    ids = [s.id for s in builder.leaf(identifier).chain]
    wanted = [*ids[: depth + 2], steps.outer, *ids[depth + 2 : depth + 4], steps.inner, *ids[depth + 4 : -2]]
    reorder(builder, identifier, wanted)


def _map_block(builder: PassBuilder, others: Sequence[str], identifier: str, depth: int) -> None:
    """Map loops to the threads of the block, and unroll the part of each thread."""
    why = "a part of the tile for each thread"
    for loop in [s.id for s in builder.leaf(identifier).chain[: depth + 2]]:
        builder.make("map_grid", f"%{loop}", "independent: a block for each iteration")
    for statement, level in ((identifier, depth + 3), *((other, depth + 2) for other in others)):
        for thread in (level, level + 1):
            builder.make("map_block", builder.loop(statement, thread), why)
        _straighten(builder, builder.loop(statement, level + 2).id, why)


def _straighten(builder: PassBuilder, identifier: str, why: str) -> None:
    """Unroll loops, the innermost ones as vectors of the width of a load or of a fused multiply-add."""
    scope = builder.scope(identifier)
    for inner in [
        s.id for s in builder.nest.scopes if s.id in {c.id for leaf in scope.leaves for c in leaf.chain[scope.depth :]}
    ]:
        loop = builder.scope(inner)
        last = len(loop.children) == 1 and isinstance(loop.children[0], Leaf)
        if not (last and _in_vectors(builder, loop, why)):
            builder.make("unroll", loop, why)


def _in_vectors(builder: PassBuilder, loop: Scope, why: str) -> bool:
    lanes = min(4, *vector_lanes(builder, list(loop.leaves))[:1])
    if lanes in (1, loop.extent):
        return lanes > 1 and builder.attempt("vectorize", loop, why)
    return loop.extent % lanes == 0 and builder.transact(lambda: straighten(builder, loop.id, lanes, why))


def _place(builder: PassBuilder, copies: Sequence[SharedCopy], identifier: str) -> None:
    """Put tiles of the block into shared memory, and parts of a thread into registers."""
    for copy in copies:
        builder.make("set_location", copy.shared, "the threads of a block share it", location="shared")
    own = {builder.leaf(c.load).output.array.name for c in copies if c.load is not None}
    own |= {a.array.name for a in builder.leaf(identifier).accesses}
    for name in sorted(own):
        builder.make("set_location", name, "each thread keeps its own part", location="register")
    for copy in copies:
        if copy.load is None:
            builder.attempt("async_copy", copy.shared, "the copy runs while the block computes")
