"""The greedy pass (paper section 4.1): naive, then every hardware move wherever it is legal."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.view.nest import Scope
from pdojo.search.kinds.common.naive import fuse_and_reuse
from pdojo.search.kinds.common.player import Note, Player
from pdojo.transforms.game import Game


def greedy(game: Game) -> list[Note]:
    """The naive pass, then threads, vectors, unrolling and faster memory wherever they are legal."""
    return Player.play(game, _tune).notes


def _tune(player: Player) -> None:
    fuse_and_reuse(player)
    parallelize_outermost(player)
    for leaf in list(player.nest.leaves):
        _vectorize_innermost(player, leaf.id)
    _unroll_small(player)
    place_buffers(player)


def parallelize_outermost(player: Player) -> None:
    """Parallelise the outermost scope of every nest that allows it."""
    for node in list(player.nest.children):
        if isinstance(node, Scope):
            _parallelize(player, node.id)


def _parallelize(player: Player, identifier: str) -> None:
    scope = player.scope(identifier)
    if scope is None or player.attempt("parallelize", scope, "outermost independent iterations go to threads"):
        return
    for child in scope.children:
        if isinstance(child, Scope):
            _parallelize(player, child.id)


def _vectorize_innermost(player: Player, leaf_id: str) -> None:
    leaf = player.leaf(leaf_id)
    scope = leaf.parent
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL or len(scope.children) != 1:
        return
    lanes = player.lanes(leaf)
    if lanes < 2 or scope.extent < lanes:
        return
    why = f"vectors of {lanes} lanes"
    if scope.extent == lanes:
        player.attempt("vectorize", scope, why)
        return

    def in_tiles() -> bool:
        tiled = player.attempt("tile_scope", scope, f"tiles of {lanes} for vectors", size=lanes)
        inner = player.leaf(leaf_id).parent
        return tiled and inner is not None and player.attempt("vectorize", inner, why)

    player.transact(in_tiles)


def _unroll_small(player: Player) -> None:
    for scope in list(player.scopes()):
        if scope.mapping is Mapping.SEQUENTIAL and scope.extent <= 8:
            player.attempt("unroll", scope, "short loops are unrolled")


def place_buffers(player: Player) -> None:
    """Put buffers that only constants index into registers, and other small ones on the stack."""
    for name in list(player.temporaries()):
        if player.nest.arrays[name].buffer.memory is Memory.REGISTER:
            continue
        if not player.attempt("set_location", name, "only constants index it: registers", location="register"):
            player.attempt("set_location", name, "small enough for the stack", location="stack")
