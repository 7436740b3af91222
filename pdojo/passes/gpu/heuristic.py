"""The heuristic pass for graphics processors: a trace from the structure of the program and the machine description."""

from __future__ import annotations

from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import drop_unit_loops, flatten, unfold
from pdojo.passes.common.reciprocals import share_reciprocals
from pdojo.passes.gpu.blocks import map_nest
from pdojo.passes.gpu.launches import fuse, part_sums
from pdojo.passes.gpu.row_blocks import map_row_blocks
from pdojo.passes.gpu.tiles import split_terms_of_few, tile_contractions


def heuristic(builder: PassBuilder) -> None:
    """Tune for a graphics processor by general rules; no kernel gets special treatment."""
    builder.exhaust(lambda: builder.nest.leaves, "contract", "a fused multiply-add is one instruction")
    map_row_blocks(builder)
    unfold(builder)
    drop_unit_loops(builder)
    flatten(builder)
    share_reciprocals(builder)
    split_terms_of_few(builder)
    tile_contractions(builder)
    part_sums(builder)
    fuse(builder)
    for statement in [node.leaves[0].id for node in builder.nest.children if isinstance(node, Scope)]:
        map_nest(builder, statement)
