"""The naive pass (paper section 4.1): fuse scopes and reuse memory until nothing more fuses."""

from __future__ import annotations

from pdojo.search.kinds.common.builder import Note, PassBuilder
from pdojo.transforms.game import Game


def naive(game: Game) -> list[Note]:
    """Join scopes and reuse dimensions until nothing more is legal."""
    return PassBuilder.play(game, fuse_and_reuse).notes


def fuse_and_reuse(builder: PassBuilder) -> None:
    """The moves of the naive pass."""
    builder.exhaust(builder.scopes, "join_scopes", "fused loops keep values in cache")
    builder.exhaust(builder.dimensions, "reuse_dims", "the dimension is dead after each iteration: less memory")
