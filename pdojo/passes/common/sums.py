"""Sums in parts: partial results of the parts of a loop over terms."""

from __future__ import annotations

from typing import NamedTuple

from pdojo.dialect.view.nest import Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import isolate


class Parts(NamedTuple):
    """The statements of a sum in parts, keyed by identifier, and the array of partial results, whose first dimension
    is the part.
    """

    zero: str
    total: str
    combined: str
    array: str


def split_terms(builder: PassBuilder, identifier: str, count: int, why: str) -> Parts:
    """Cut the innermost loop around a sum, a loop over terms, into `count` parts.

    [spatial, terms] becomes [spatial {parts zero, terms of a part, parts}, parts combined]; remaining terms are peeled
    off into a later nest. The loops stay together.
    """
    leaf = builder.leaf(identifier)
    depth, extent = len(leaf.chain) - 1, leaf.chain[-1].extent
    size = extent // count
    if size * count < extent:
        before = {other.id for other in builder.nest.leaves}
        builder.make("peel_scope", builder.loop(identifier, -1), why, after=size * count)
        (rest,) = (other.id for other in builder.nest.leaves if other.id not in before)
        isolate(builder, rest, why, depth)
    builder.make("tile_scope", builder.loop(identifier, -1), why, size=size)
    parts = part_sum(builder, identifier, depth, count, why)
    for dimension in reversed(range(len(builder.nest.arrays[parts.array].shape) - 1)):
        builder.attempt("swap_dims", f"{parts.array}:{dimension}", "the results of a part lie together")
    return parts


def part_sum(builder: PassBuilder, identifier: str, depth: int, count: int, why: str) -> Parts:
    """Make the outer one of two loops over terms, at `depth`, a loop over `count` parts with a partial result each."""
    array = builder.leaf(identifier).output.array.name
    builder.make("swap_scopes", builder.loop(identifier, depth), why)
    builder.make("collapse_scopes", builder.loop(identifier, depth), why)
    builder.make("split_reduction", builder.loop(identifier, depth), why, size=count)
    combined = next(w for w in builder.nest.writers[array] if w.accumulate is not None and _reads_one(w))
    partial = combined.reads[0].array.name
    (zero,) = [w for w in builder.nest.writers[partial] if w.accumulate is None]
    (total,) = [w for w in builder.nest.writers[partial] if w.accumulate is not None]
    builder.make("swap_scopes", builder.loop(total.id, depth), why)
    return Parts(zero.id, total.id, combined.id, partial)


def _reads_one(leaf: Leaf) -> bool:
    return leaf.function is None and len(leaf.inputs) == len(leaf.reads) == 1
