"""Tall sums: contractions of many terms into few results, cut into parts that are contractions of their own.

Each part has partial results, which are added up at the end. The parts go to the threads, and the operands of one part
stay in the cache, which those of the whole sum would leave.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Leaf, Scope
from pdojo.search.experts.contraction import has_terms, is_alone, loop_at, reorder, spatial_loops
from pdojo.search.experts.player import Player

PART = 2048
"""Most terms of a part: a panel of two vectors of 64 bytes for each term is 256 KiB."""
BLOCKS = 4
"""Blocks of results for each thread from which a contraction has enough of them."""
BLOCK = 512
"""Results of a block in registers, roughly."""


def split_tall(player: Player) -> None:
    """Split contractions whose terms are many and whose results are few."""
    for identifier in [leaf.id for leaf in player.nest.leaves]:
        leaf = player.leaf(identifier)
        if has_terms(leaf) and len(leaf.reads) == 2 and is_alone(player, leaf):
            parts = _parts(player, leaf)
            if parts > 1:
                player.transact(lambda i=identifier, n=parts: _split(player, i, n))


def _parts(player: Player, leaf: Leaf) -> int:
    """The number of parts of the innermost loop over terms, a multiple of the threads; 1 if the sum is not tall."""
    machine = player.game.machine
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return 1
    spatial = spatial_loops(leaf)
    terms = [s for s in leaf.chain if s.depth not in spatial]
    results = prod(s.extent for s in leaf.chain if s.depth in spatial)
    if len(terms) != 1 or terms[0].extent < 2 * PART or results > BLOCKS * BLOCK * machine.threads * 2:
        return 1
    count = -(-terms[0].extent // PART)
    count = -(-count // machine.threads) * machine.threads
    size = count * results * byte_width(leaf.output.array.dtype)
    return count if size <= machine.private_cache else 1


def _split(player: Player, identifier: str, count: int) -> bool:
    """Rewrite [spatial {zero, terms}] to parts: [parts, spatial {zero, terms of a part}] and the sum of the parts."""
    leaf = player.leaf(identifier)
    depth, extent = len(leaf.chain) - 1, leaf.chain[-1].extent
    why = f"{extent} terms in {count} parts, each with partial results"
    size, array = extent // count, leaf.output.array.name
    if size * count < extent and not (
        player.attempt("peel_scope", loop_at(player, identifier, -1), why, after=size * count)
        and _apart(player, identifier, depth, 2, why)
    ):
        return False
    made = (
        player.attempt("tile_scope", loop_at(player, identifier, -1), why, size=size)
        and player.attempt("swap_scopes", loop_at(player, identifier, depth), why)
        and player.attempt("collapse_scopes", loop_at(player, identifier, depth), why)
        and player.attempt("split_reduction", loop_at(player, identifier, depth), why, size=count)
    )
    if not made:
        return False
    combined = next(w for w in player.nest.writers[array] if w.accumulate is not None and _reads_one(w))
    partial = combined.reads[0].array.name
    (zero,) = [w for w in player.nest.writers[partial] if w.accumulate is None]
    (total,) = [w for w in player.nest.writers[partial] if w.accumulate is not None]
    first = zero.chain[depth].position
    if not (
        _apart(player, total.id, depth, first + 2, why)
        and _apart(player, total.id, depth, first, why)
        and player.attempt("swap_scopes", loop_at(player, total.id, depth), why)
        and player.attempt("join_scopes", loop_at(player, zero.id, depth), why)
    ):
        return False
    chain = [s.id for s in player.leaf(total.id).chain]
    if not reorder(player, total.id, [chain[depth], *chain[:depth], *chain[depth + 1 :]]):
        return False
    for dimension in reversed(range(depth)):
        player.attempt("swap_dims", f"{partial}:{dimension}", "the results of a part lie together")
    return True


def _reads_one(leaf: Leaf) -> bool:
    return leaf.function is None and len(leaf.inputs) == len(leaf.reads) == 1


def _apart(player: Player, identifier: str, depth: int, after: int, why: str) -> bool:
    """Split the first `depth` loops around a statement behind `after` children of the innermost of them."""
    if after == 0:
        return True
    innermost = loop_at(player, identifier, depth - 1)
    if after >= len(innermost.children):
        return True
    for level in reversed(range(depth)):
        scope = loop_at(player, identifier, level)
        assert isinstance(scope, Scope)
        place = after if level == depth - 1 else 1
        if not player.attempt("split_scopes", scope, why, after=place):
            return False
    return True
