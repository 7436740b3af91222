"""Tall sums: contractions of many terms into few results, cut into parts that are contractions of their own.

Each part has partial results, which are added up at the end. The parts go to the threads, and the operands of one part
stay in the cache, which those of the whole sum would leave.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.player import Player
from pdojo.search.kinds.cpu.contraction import has_terms, is_alone, loop_at, reorder, spatial_loops
from pdojo.search.kinds.cpu.sums import alone, split_terms

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
    """Rewrite [spatial {zero, terms}] to [parts, spatial {zero, terms of a part}], and the sum of the parts."""
    depth = len(player.leaf(identifier).chain) - 1
    why = f"{loop_at(player, identifier, -1).extent} terms in {count} parts, each with partial results"
    parts = split_terms(player, identifier, count, why)
    if parts is None or not player.attempt("join_scopes", loop_at(player, parts.zero, depth), why):
        return False
    if not alone(player, parts.total, why, depth):
        return False
    chain = [s.id for s in player.leaf(parts.total).chain]
    return reorder(player, parts.total, [chain[depth], *chain[:depth], *chain[depth + 1 :]])
