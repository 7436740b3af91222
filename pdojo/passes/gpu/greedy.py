"""The greedy pass for graphics processors: naive, then blocks and threads wherever they are legal."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Scope
from pdojo.errors import IllegalMove
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.greedy import naive, place_buffers
from pdojo.passes.common.loops import Tiles, tile

THREADS = 256
"""Greatest number of threads of a loop."""


def greedy(builder: PassBuilder) -> None:
    """The naive pass, then `:g`, `:b`, `:w` and faster memory wherever they are legal."""
    naive(builder)
    for identifier in [node.id for node in builder.nest.children]:
        _launch(builder, identifier)
    place_buffers(builder)


def _launch(builder: PassBuilder, identifier: str) -> None:
    """Map the outermost legal loop to the grid, and the outermost legal loops inside it to threads."""
    scope = builder.find_scope(identifier)
    if scope is None:
        return
    inside = [child.id for child in scope.children if isinstance(child, Scope)]
    if not inside and scope.extent > THREADS:
        tiles = _tiled(builder, scope, THREADS, f"{THREADS} threads of a block")
        if tiles is not None and builder.attempt("map_grid", f"%{tiles.outer}", "independent: a block for each"):
            _threads(builder, tiles.inner)
            return
    mapped = builder.attempt("map_grid", scope, "independent: a block for each")
    for child in inside:
        _threads(builder, child) if mapped else _launch(builder, child)


def _threads(builder: PassBuilder, identifier: str) -> None:
    scope = builder.find_scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL:
        return
    inside = [child.id for child in scope.children if isinstance(child, Scope)]
    warp = builder.game.machine.gpu.warp_size
    if (
        warp
        and scope.extent > warp
        and scope.extent % warp == 0
        and scope.extent <= builder.game.machine.gpu.block_threads
    ):
        tiles = _tiled(builder, scope, warp, "warps of a block")
        if tiles is not None and builder.attempt("map_block", f"%{tiles.outer}", "independent: a warp for each"):
            builder.attempt("map_warp", f"%{tiles.inner}", "neighbouring threads")
            return
        if tiles is not None:
            inside = [tiles.inner]
    elif builder.attempt("map_block", scope, "independent: a thread for each"):
        return
    for child in inside:
        _threads(builder, child)


def _tiled(builder: PassBuilder, scope: Scope, size: int, why: str) -> Tiles | None:
    """The loops of a loop in tiles; None if tiling is illegal."""
    try:
        return tile(builder, scope, size, why)
    except IllegalMove:
        return None
