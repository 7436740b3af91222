"""Sums in parts: partial results of the parts of a loop over terms."""

from __future__ import annotations

from typing import NamedTuple

from pdojo.dialect.view.nest import Leaf
from pdojo.search.kinds.common.player import Player
from pdojo.search.kinds.cpu.contraction import loop_at


class Parts(NamedTuple):
    """The statements of a sum in parts, by identifier, and the array of partial results, by part first."""

    zero: str
    total: str
    combined: str
    array: str


def split_terms(player: Player, identifier: str, count: int, why: str) -> Parts | None:
    """Cut the innermost loop around a sum, over its terms, into `count` parts; None if a move is illegal.

    [spatial, terms] becomes [spatial {parts zero, terms of a part, parts}, parts combined]; a rest of the terms is
    peeled off behind it. The loops stay together.
    """
    leaf = player.leaf(identifier)
    depth, extent = len(leaf.chain) - 1, leaf.chain[-1].extent
    size = extent // count
    if size * count < extent:
        before = {other.id for other in player.nest.leaves}
        if not player.attempt("peel_scope", loop_at(player, identifier, -1), why, after=size * count):
            return None
        (rest,) = (other.id for other in player.nest.leaves if other.id not in before)
        if not alone(player, rest, why, depth):
            return None
    if not player.attempt("tile_scope", loop_at(player, identifier, -1), why, size=size):
        return None
    parts = part_sum(player, identifier, depth, count, why)
    if parts is not None:
        for dimension in reversed(range(len(player.nest.arrays[parts.array].shape) - 1)):
            player.attempt("swap_dims", f"{parts.array}:{dimension}", "the results of a part lie together")
    return parts


def part_sum(player: Player, identifier: str, depth: int, count: int, why: str) -> Parts | None:
    """Make the outer one of two loops over terms, at `depth`, a loop over `count` parts with a partial result each.

    None if a move is illegal.
    """
    array = player.leaf(identifier).output.array.name
    made = (
        player.attempt("swap_scopes", loop_at(player, identifier, depth), why)
        and player.attempt("collapse_scopes", loop_at(player, identifier, depth), why)
        and player.attempt("split_reduction", loop_at(player, identifier, depth), why, size=count)
    )
    if not made:
        return None
    combined = next(w for w in player.nest.writers[array] if w.accumulate is not None and _reads_one(w))
    partial = combined.reads[0].array.name
    (zero,) = [w for w in player.nest.writers[partial] if w.accumulate is None]
    (total,) = [w for w in player.nest.writers[partial] if w.accumulate is not None]
    made = player.attempt("swap_scopes", loop_at(player, total.id, depth), why)
    return Parts(zero.id, total.id, combined.id, partial) if made else None


def alone(player: Player, identifier: str, why: str, depth: int | None = None) -> bool:
    """Split the first `depth` loops around a statement (None: all) until they hold nothing else, innermost first."""
    chain = player.leaf(identifier).chain
    for level in reversed(range(len(chain) if depth is None else depth)):
        while len((scope := loop_at(player, identifier, level)).children) > 1:
            chain = player.leaf(identifier).chain
            position = chain[level + 1].position if level + 1 < len(chain) else player.leaf(identifier).position
            if not player.attempt("split_scopes", scope, why, after=position or 1):
                return False
    return True


def _reads_one(leaf: Leaf) -> bool:
    return leaf.function is None and len(leaf.inputs) == len(leaf.reads) == 1
