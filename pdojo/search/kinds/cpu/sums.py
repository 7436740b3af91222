"""Sums in parts: partial results of the parts of a loop over terms."""

from __future__ import annotations

from typing import NamedTuple

from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.builder import PassBuilder
from pdojo.search.kinds.cpu.contraction import loop_at


class Parts(NamedTuple):
    """The statements of a sum in parts, by identifier, and the array of partial results, whose first dimension is the
    part.
    """

    zero: str
    total: str
    combined: str
    array: str


def split_terms(builder: PassBuilder, identifier: str, count: int, why: str) -> Parts | None:
    """Cut the innermost loop around a sum, a loop over terms, into `count` parts; None if a move is illegal.

    [spatial, terms] becomes [spatial {parts zero, terms of a part, parts}, parts combined]; remaining terms are peeled
    off behind it. The loops stay together.
    """
    leaf = builder.leaf(identifier)
    depth, extent = len(leaf.chain) - 1, leaf.chain[-1].extent
    size = extent // count
    if size * count < extent:
        before = {other.id for other in builder.nest.leaves}
        if not builder.attempt("peel_scope", loop_at(builder, identifier, -1), why, after=size * count):
            return None
        (rest,) = (other.id for other in builder.nest.leaves if other.id not in before)
        if not alone(builder, rest, why, depth):
            return None
    if not builder.attempt("tile_scope", loop_at(builder, identifier, -1), why, size=size):
        return None
    parts = part_sum(builder, identifier, depth, count, why)
    if parts is not None:
        for dimension in reversed(range(len(builder.nest.arrays[parts.array].shape) - 1)):
            builder.attempt("swap_dims", f"{parts.array}:{dimension}", "the results of a part lie together")
    return parts


def part_sum(builder: PassBuilder, identifier: str, depth: int, count: int, why: str) -> Parts | None:
    """Make the outer one of two loops over terms, at `depth`, a loop over `count` parts with a partial result each.

    None if a move is illegal.
    """
    array = builder.leaf(identifier).output.array.name
    made = (
        builder.attempt("swap_scopes", loop_at(builder, identifier, depth), why)
        and builder.attempt("collapse_scopes", loop_at(builder, identifier, depth), why)
        and builder.attempt("split_reduction", loop_at(builder, identifier, depth), why, size=count)
    )
    if not made:
        return None
    combined = next(w for w in builder.nest.writers[array] if w.accumulate is not None and _reads_one(w))
    partial = combined.reads[0].array.name
    (zero,) = [w for w in builder.nest.writers[partial] if w.accumulate is None]
    (total,) = [w for w in builder.nest.writers[partial] if w.accumulate is not None]
    made = builder.attempt("swap_scopes", loop_at(builder, total.id, depth), why)
    return Parts(zero.id, total.id, combined.id, partial) if made else None


def alone(builder: PassBuilder, identifier: str, why: str, depth: int | None = None) -> bool:
    """Split the first `depth` loops around a statement (None: all), innermost first, until they hold nothing else."""
    chain = builder.leaf(identifier).chain
    for level in reversed(range(len(chain) if depth is None else depth)):
        while len((scope := loop_at(builder, identifier, level)).children) > 1:
            chain = builder.leaf(identifier).chain
            position = chain[level + 1].position if level + 1 < len(chain) else builder.leaf(identifier).position
            if not builder.attempt("split_scopes", scope, why, after=position or 1):
                return False
    return True


def _reads_one(leaf: Leaf) -> bool:
    return leaf.function is None and len(leaf.inputs) == len(leaf.reads) == 1
