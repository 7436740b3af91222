"""Tall sums: contractions of many terms into few results, cut into parts that are themselves contractions.

Each part has partial results, which are added up at the end. Threads divide the parts. The operands of one part stay in
the cache; the operands of the whole sum would not.
"""

from __future__ import annotations

from pdojo.dialect.functions import byte_width
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import ContractionShape, contractions, is_bound
from pdojo.passes.common.loops import isolate, reorder
from pdojo.passes.common.sums import split_terms

PART = 2048
"""Greatest number of terms of a part: a panel of two 64-byte vectors per term is then 256 KiB."""
BLOCKS = 4
"""Blocks of results per thread from which a contraction is not split."""
BLOCK = 512
"""Results of a block in registers, roughly."""
ORDERED = 32
"""The limit of results is divided by this number if an operand is packed at binding."""


def split_tall(builder: PassBuilder) -> None:
    """Split contractions with many terms and few results."""
    for shape in contractions(builder):
        parts = _parts(builder, shape)
        if parts > 1:
            builder.transact(lambda i=shape.leaf.id, n=parts: _split(builder, i, n))


def _parts(builder: PassBuilder, shape: ContractionShape) -> int:
    """The number of parts of the innermost loop over terms, a multiple of the threads; 1 if the sum is not tall."""
    machine, terms = builder.game.machine, shape.terms
    if len(shape.leaf.reads) != 2 or len(terms) != 1 or terms[0].extent < 2 * PART:
        return 1
    # Nothing is reused by sums of squares of rows: threads share the rows.
    if not any(shape.own) and shape.results >= machine.threads:
        return 1
    # Panels that were packed at binding are read in order, however long they are.
    is_ordered = any(is_bound(shape.leaf, read) for read in shape.leaf.reads)
    if shape.results > BLOCKS * BLOCK * machine.threads * 2 // (ORDERED if is_ordered else 1):
        return 1
    count = -(-terms[0].extent // PART)
    count = -(-count // machine.threads) * machine.threads
    size = count * shape.results * byte_width(shape.leaf.output.array.dtype)
    return count if size <= machine.private_cache else 1


def _split(builder: PassBuilder, identifier: str, count: int) -> None:
    """Rewrite [spatial {zero, terms}] to [parts, spatial {zero, terms of a part}], and the sum of the parts."""
    depth = len(builder.leaf(identifier).chain) - 1
    why = f"{builder.loop(identifier, -1).extent} terms in {count} parts, each with partial results"
    parts = split_terms(builder, identifier, count, why)
    builder.make("join_scopes", builder.loop(parts.zero, depth), why)
    isolate(builder, parts.total, why, depth)
    chain = [s.id for s in builder.leaf(parts.total).chain]
    reorder(builder, parts.total, [chain[depth], *chain[:depth], *chain[depth + 1 :]])
