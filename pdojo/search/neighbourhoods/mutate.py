"""Generic editing of traces: a move more, a move less, a move with another parameter; anywhere in the trace."""

from __future__ import annotations

from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods.drawing import choices, draw, shuffled
from pdojo.transforms.move import Move

INSERT, DELETE, CHANGE = "insert", "delete", "change"


class Mutate:
    """One edit at a random place of the trace; what follows is played again by identifier, as far as it applies."""

    name = "mutate"

    def __init__(self, tries: int = 6) -> None:
        self.tries = tries
        """Edits that are tried until one leads to another program."""

    @property
    def settings(self) -> JSON:
        """How often it tries."""
        return {"tries": self.tries}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state with another program; None where no try led to one."""
        own = dojo.fingerprint
        for _ in range(self.tries):
            moves = _edited(dojo, random)
            if moves is None:
                continue
            near = dojo.fork()
            near.become(moves)
            if near.fingerprint != own:
                return near
        return None


def _edited(dojo: Dojo, random: Random) -> list[Move] | None:
    """The trace after one edit, by identifier; None where the edit that was drawn is not possible."""
    moves = [step.resolved for step in dojo.trace.steps]
    kind = random.choice((INSERT, DELETE, CHANGE)) if moves else INSERT
    if kind == INSERT:
        at = random.randrange(len(moves) + 1)
        drawn = draw(dojo.game.programs[at], random)
        return None if drawn is None else [*moves[:at], drawn, *moves[at:]]
    if kind == DELETE:
        at = random.randrange(len(moves))
        return [*moves[:at], *moves[at + 1 :]]
    for at in shuffled([k for k, move in enumerate(moves) if move.params], random):
        other = _other(dojo, at, random)
        if other is not None:
            return [*moves[:at], other, *moves[at + 1 :]]
    return None


def _other(dojo: Dojo, at: int, random: Random) -> Move | None:
    """The move at a place of the trace with other parameters, as they are proposed for the program there."""
    program, move = dojo.game.programs[at], dojo.trace.steps[at].resolved
    for choice in shuffled(choices(program, [move.name]), random):
        other = choice.move
        if other.at == move.at and other != move and choice.is_legal(program):
            return other
    return None
