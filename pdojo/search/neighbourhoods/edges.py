"""Edges of the transformation graph (paper 4.2.1): one move more, or one move less."""

from __future__ import annotations

from random import Random

from pdojo.search.contract.candidates import choices, shuffled
from pdojo.search.contract.evaluation import JSON
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, LengthLimits
from pdojo.search.neighbourhoods.random_moves import step_if_legal
from pdojo.transforms.game import Game


class Edges:
    """Append a legal move or take back the last one, each with equal probability.

    Moves that make a program too long (`lengths`) are excluded.
    """

    name = "edges"

    @property
    def settings(self) -> JSON:
        """The limits on program length."""
        return {"statements": STATEMENTS, "copies": COPIES}

    def neighbour(self, game: Game, random: Random) -> Game | None:
        """A state one edge away; None if there is none."""
        near, limits = game.fork(), LengthLimits.of(game)
        undo = [None] if game.trace.steps else []
        for choice in shuffled([*choices(game.program), *undo], random):
            if choice is None:
                near.undo()
                return near
            if step_if_legal(near, choice.move):
                if not limits.exceeded_by(near):
                    return near
                near.undo()
        return None
