"""The heuristic pass for graphics processors: a trace from the structure of the program and the machine description."""

from __future__ import annotations

from pdojo.dialect.view.nest import Scope
from pdojo.search.kinds.common.choices import Decisions, Played
from pdojo.search.kinds.common.loops import drop_unit_loops, flatten, unfold
from pdojo.search.kinds.common.player import Note, Player
from pdojo.search.kinds.common.reciprocals import share_reciprocals
from pdojo.search.kinds.gpu.blocks import map_nest
from pdojo.search.kinds.gpu.launches import fuse, part_sums
from pdojo.search.kinds.gpu.tiles import split_terms_of_few, tile_contractions
from pdojo.transforms.game import Game


def heuristic(game: Game) -> list[Note]:
    """Tune for a graphics processor from general rules; no kernel is treated specially."""
    return open_heuristic(game).notes


def open_heuristic(game: Game, decisions: Decisions | None = None) -> Played:
    """`heuristic` with these answers to the questions that it leaves open, and with the questions."""
    return Player.play(game, _tune, decisions)


def _tune(player: Player) -> None:
    player.exhaust(lambda: player.nest.leaves, "contract", "a fused multiply-add is one instruction")
    unfold(player)
    drop_unit_loops(player)
    flatten(player)
    share_reciprocals(player)
    split_terms_of_few(player)
    tile_contractions(player)
    part_sums(player)
    fuse(player)
    for statement in [node.leaves[0].id for node in player.nest.children if isinstance(node, Scope)]:
        map_nest(player, statement)
