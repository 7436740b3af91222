"""Tall sums: contractions of many terms into few results, cut into parts that are themselves contractions.

Each part has partial results, which are added up at the end. Threads divide the parts. The operands of one part stay in
the cache; the operands of the whole sum would not.
"""

from __future__ import annotations

from math import prod

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.cpu.contraction import has_terms, is_alone, loop_at, reorder, spatial_loops
from pdojo.search.kinds.cpu.sums import alone, split_terms

PART = 2048
"""Greatest number of terms of a part: a panel of two 64-byte vectors per term is then 256 KiB."""
BLOCKS = 4
"""Blocks of results per thread from which a contraction is not split."""
BLOCK = 512
"""Results of a block in registers, roughly."""


def split_tall(builder: PassBuilder) -> None:
    """Split contractions with many terms and few results."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.leaf(identifier)
        if has_terms(leaf) and len(leaf.reads) == 2 and is_alone(builder, leaf):
            parts = _parts(builder, leaf)
            if parts > 1:
                builder.transact(lambda i=identifier, n=parts: _split(builder, i, n))


def _parts(builder: PassBuilder, leaf: Leaf) -> int:
    """The number of parts of the innermost loop over terms, a multiple of the threads; 1 if the sum is not tall."""
    machine = builder.game.machine
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


def _split(builder: PassBuilder, identifier: str, count: int) -> bool:
    """Rewrite [spatial {zero, terms}] to [parts, spatial {zero, terms of a part}], and the sum of the parts."""
    depth = len(builder.leaf(identifier).chain) - 1
    why = f"{loop_at(builder, identifier, -1).extent} terms in {count} parts, each with partial results"
    parts = split_terms(builder, identifier, count, why)
    if parts is None or not builder.attempt("join_scopes", loop_at(builder, parts.zero, depth), why):
        return False
    if not alone(builder, parts.total, why, depth):
        return False
    chain = [s.id for s in builder.leaf(parts.total).chain]
    return reorder(builder, parts.total, [chain[depth], *chain[:depth], *chain[depth + 1 :]])
