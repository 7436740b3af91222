"""The greedy pass for graphics processors: naive, then blocks and threads wherever they are legal."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Scope
from pdojo.search.kinds.common.greedy import place_buffers
from pdojo.search.kinds.common.loops import tile
from pdojo.search.kinds.common.naive import fuse_and_reuse
from pdojo.search.kinds.common.player import Note, Player
from pdojo.transforms.game import Game

THREADS = 256
"""Most threads of a loop."""


def greedy(game: Game) -> list[Note]:
    """The naive pass, then `:g`, `:b`, `:w` and faster memory wherever they are legal."""
    return Player.play(game, _tune).notes


def _tune(player: Player) -> None:
    fuse_and_reuse(player)
    for identifier in [node.id for node in player.nest.children]:
        _launch(player, identifier)
    place_buffers(player)


def _launch(player: Player, identifier: str) -> None:
    """Map the outermost loop that may be a grid, and the outermost ones inside it that may be threads."""
    scope = player.scope(identifier)
    if scope is None:
        return
    inside = [child.id for child in scope.children if isinstance(child, Scope)]
    if not inside and scope.extent > THREADS:
        tiles = tile(player, scope, THREADS, f"{THREADS} threads of a block")
        if tiles is not None and player.attempt("map_grid", f"%{tiles.outer}", "independent: a block for each"):
            _threads(player, tiles.inner)
            return
    mapped = player.attempt("map_grid", scope, "independent: a block for each")
    for child in inside:
        _threads(player, child) if mapped else _launch(player, child)


def _threads(player: Player, identifier: str) -> None:
    scope = player.scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    inside = [child.id for child in scope.children if isinstance(child, Scope)]
    warp = player.game.machine.gpu.warp_size
    if (
        warp
        and scope.extent > warp
        and scope.extent % warp == 0
        and scope.extent <= player.game.machine.gpu.block_threads
    ):
        tiles = tile(player, scope, warp, "warps of a block")
        if tiles is not None and player.attempt("map_block", f"%{tiles.outer}", "independent: a warp for each"):
            player.attempt("map_warp", f"%{tiles.inner}", "neighbouring threads")
            return
        if tiles is not None:
            inside = [tiles.inner]
    elif player.attempt("map_block", scope, "independent: a thread for each"):
        return
    for child in inside:
        _threads(player, child)
