"""Edges of the transformation graph (paper 4.2.1): one more move, or one less."""

from __future__ import annotations

from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods.drawing import choices, shuffled, step_if_legal


class Edges:
    """A legal move at the end of the trace, or the last one taken back; each is as likely as any other."""

    name = "edges"

    @property
    def settings(self) -> JSON:
        """There are none."""
        return {}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state that one edge leads to; None where no move is legal and none was made."""
        near = dojo.fork()
        undo = [None] if dojo.trace.steps else []
        for choice in shuffled([*choices(dojo.game.program), *undo], random):
            if choice is None:
                near.undo()
                return near
            if step_if_legal(near, choice.move):
                return near
        return None
