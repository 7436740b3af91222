"""Blocks whose lanes index both operands, such as the channels of a convolution by channels."""

from __future__ import annotations

from pdojo.dialect.view.nest import Leaf
from pdojo.math.functions import FUNCTIONS, Signature
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import delete_unread, split_lanes, uses


def is_read_again(leaf: Leaf, panel: int) -> bool:
    """Whether the rows of a block read vectors that their neighbours read for another term: windows that overlap."""
    *_, term, rows, _, lanes = leaf.chain
    others = [read for k, read in enumerate(leaf.reads) if k != panel and uses(read, lanes)]
    return any(e.uses(rows.depth) and e.uses(term.depth) for read in others for e in read.index)


def cast_inside(builder: PassBuilder, identifier: str, panel: int) -> list[str]:
    """Cast the vectors of the other operand where they are multiplied, if they are casts of an array in memory.

    Returns the statements of the casts. Elements that all lanes share are cast before the sum: once for all results.
    """
    leaf = builder.leaf(identifier)
    for position, read in enumerate(leaf.reads):
        writers = builder.nest.writers.get(read.array.name, ())
        is_along = uses(read, leaf.chain[-1]) and position != panel
        if is_along and len(writers) == 1 and _is_cast(writers[0]) and not read.array.buffer.constant:
            made: list[str] = []
            builder.transact(lambda k=position, made=made: made.extend(_inline(builder, identifier, k)))
            return made
    return []


def _inline(builder: PassBuilder, identifier: str, position: int) -> list[str]:
    leaf, known = builder.leaf(identifier), set(builder.nest.by_id)
    name, why = leaf.reads[position].array.name, "vectors are cast where they are multiplied"
    builder.make("inline_op", leaf, why, input=leaf.inputs.index(leaf.reads[position]))
    made = [each.id for each in builder.nest.leaves if each.id not in known]
    split_lanes(builder, [*made, identifier], why)
    delete_unread(builder, name)
    return made


def _is_cast(leaf: Leaf) -> bool:
    is_known = leaf.function is not None and FUNCTIONS[leaf.function].signature is Signature.CAST
    return is_known and len(leaf.reads) == len(leaf.inputs) == 1
