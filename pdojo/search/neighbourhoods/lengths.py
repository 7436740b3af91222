"""Limits on the length of programs: long programs are slow to check and to compile, and run no faster."""

from __future__ import annotations

from typing import NamedTuple, Self

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.program import Program
from pdojo.errors import LocationError
from pdojo.transforms.game import Game
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation

STATEMENTS = 64
"""Greatest number of statements in the text. Splitting moves could go on forever; programs of the expert pass have up
to about 50.
"""
COPIES = 256
"""Greatest number of statements in the code, with unrolled copies: instruction caches hold no more."""


class LengthLimits(NamedTuple):
    """The greatest length of a neighbour. A state beyond a limit may have neighbours as long as itself."""

    statements: int
    copies: int

    @classmethod
    def of(cls, game: Game) -> Self:
        """The limits for neighbours of a state."""
        statements, copies = lengths(game)
        return cls(max(STATEMENTS, statements), max(COPIES, copies))

    def exceeded_by(self, game: Game) -> bool:
        """True if a state exceeds a limit."""
        statements, copies = lengths(game)
        return statements > self.statements or copies > self.copies

    def forbid(self, program: Program, move: Move) -> bool:
        """True if a move unrolls a scope into too many copies; it needs neither the legality check nor the move."""
        kind = transformation(move.name)
        if not (issubclass(kind, MapScope) and kind.mapping is Mapping.UNROLL):
            return False
        try:
            scope = kind.resolve(program, move.at)
        except LocationError:
            return False
        more = (scope.extent - 1) * sum(leaf.copies for leaf in scope.leaves)
        return more + sum(leaf.copies for leaf in program.nest.leaves) > self.copies


def lengths(game: Game) -> tuple[int, int]:
    """Number of statements in the text, and in the code."""
    leaves = game.program.nest.leaves
    return len(leaves), sum(leaf.copies for leaf in leaves)
