"""Generic editing of traces: moves more, moves less, other parameters; anywhere in the trace, on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.experts.loops import sink
from pdojo.search.experts.player import Player
from pdojo.search.neighbourhoods.drawing import choices, draw, draw_family, draw_from, shuffled, step_if_legal
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, is_too_long
from pdojo.search.neighbourhoods.sizes import lanes_of
from pdojo.transforms.move import Move

VERSION = 2
"""Of the edits: the same random numbers lead to other neighbours under another one."""
INSERT, DELETE, CHANGE = "insert", "delete", "change"
ONCE, AGAIN, EVERYWHERE = "once", "again", "everywhere"
MOST = 12
"""Moves that one insertion makes, at most."""
COMPOSED = 0.25
"""How often moves are inserted that are a classical transformation together."""
WHY = "a mutation"
FINISHING = ("join_scopes", "contract", "reuse_dims", "unroll", "vectorize", "stream", "frep", "set_location")
"""Moves that are made wherever they can once they are a good idea."""


class Mutate:
    """A few edits at random places of the trace; what follows is played again by identifier, as far as it applies.

    A move that is inserted is of a random family, so that families of many sites and parameters do not hide the others.
    It is made once, again and again at its place (a loop that is exchanged inwards), or at all places where it is legal
    (every temporary in registers).
    """

    name = "mutate"

    def __init__(self, tries: int = 6) -> None:
        self.tries = tries
        """Times that it edits until another program results."""

    @property
    def settings(self) -> JSON:
        """How often it tries, the version of the edits, and how long programs get."""
        return {"tries": self.tries, "version": VERSION, "statements": STATEMENTS, "copies": COPIES}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state with another program; None where no try led to one."""
        own = dojo.fingerprint
        for _ in range(self.tries):
            near = dojo.fork()
            _edit(near, random)
            while random.random() < 0.5:
                _edit(near, random)
            if near.fingerprint != own and not is_too_long(near, dojo):
                return near
        return None


def _edit(dojo: Dojo, random: Random) -> None:
    """One edit, if the one that is drawn is possible."""
    moves = [step.resolved for step in dojo.trace.steps]
    (kind,) = random.choices((INSERT, DELETE, CHANGE), (2, 1, 1)) if moves else [INSERT]
    if kind == INSERT:
        # Half of the insertions continue the trace.
        at = len(moves) if random.random() < 0.5 else random.randrange(len(moves) + 1)
        dojo.become(moves[:at])
        _insert(dojo, random)
        _continue(dojo, moves[at:], random)
    elif kind == DELETE:
        at = random.randrange(len(moves))
        dojo.become(moves[:at])
        _continue(dojo, moves[at + 1 :], random)
    else:
        for at in shuffled([k for k, move in enumerate(moves) if move.params], random):
            other = _other(dojo, at, random)
            if other is not None:
                dojo.become([*moves[:at], other])
                _continue(dojo, moves[at + 1 :], random)
                return


def _insert(dojo: Dojo, random: Random) -> None:
    """One more move at the end, several of a kind, or several that make sense together."""
    if random.random() < COMPOSED:
        random.choice((_jam, _sum_in_parts))(dojo, random)
        return
    drawn = draw_family(dojo.game.program, random)
    if drawn is None:
        return
    dojo.step(drawn)
    (mode,) = random.choices((ONCE, AGAIN, EVERYWHERE), (2, 1, 1))
    if mode == AGAIN:
        for _ in range(MOST):
            if not step_if_legal(dojo, drawn):
                break
    elif mode == EVERYWHERE:
        _everywhere(dojo, drawn, random)


def _jam(dojo: Dojo, random: Random) -> None:
    """Unroll and jam: a loop is cut anywhere, the pieces moved inwards and made straight code, or lanes."""
    program = dojo.game.program
    cuts = choices(program, ["tile_scope"])
    ending = "unroll"
    if random.random() < 0.5:
        ending, lanes = "vectorize", lanes_of(dojo)
        cuts = [choice for choice in cuts if dict(choice.move.params)["size"] in lanes]
    drawn = draw_from(cuts, program, random)
    if drawn is not None:
        before = program.nest.by_id.keys()
        dojo.step(drawn)
        player = Player(dojo.game)
        # Tiles come first, then what is inside; how they are called depends on the names that were taken.
        _, piece, *_ = (scope.id for scope in player.nest.scopes if scope.id not in before)
        for part in sink(player, piece, WHY):
            player.attempt(ending, f"%{part}", WHY)


def _sum_in_parts(dojo: Dojo, random: Random) -> None:
    """Partial sums anywhere, as straight code."""
    drawn = draw(dojo.game.program, random, ["split_reduction"])
    if drawn is not None:
        before = dojo.game.program.nest.by_id.keys()
        dojo.step(drawn)
        player = Player(dojo.game)
        size = dict(drawn.params)["size"]
        for scope in [s.id for s in player.nest.scopes if s.extent == size and s.id not in before]:
            player.attempt("unroll", f"%{scope}", WHY)


def _continue(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Make the later moves of a trace again, as they were or, half of the time, as what they say of the whole program.

    By identifier they are what they were, and half of those that are lost are made at another place. As a policy, those
    that finish a program are made at all other places too: what an edit has brought gets registers, streams and so on
    like what was there.
    """
    as_policy = random.random() < 0.5
    for move in moves:
        is_made = step_if_legal(dojo, move)
        if as_policy and move.name in FINISHING:
            _everywhere(dojo, move, random)
        elif not is_made and random.random() < 0.5:
            _elsewhere(dojo, move, random)


def _everywhere(dojo: Dojo, move: Move, random: Random) -> None:
    """Make a move at all places where it is legal."""
    for _ in range(MOST):
        if not _elsewhere(dojo, move, random):
            return


def _elsewhere(dojo: Dojo, move: Move, random: Random) -> bool:
    """Make a move at any place where it is legal; whether there is one."""
    program = dojo.game.program
    alike = [choice for choice in choices(program, [move.name]) if choice.move.params == move.params]
    drawn = draw_from(alike, program, random)
    if drawn is not None:
        dojo.step(drawn)
    return drawn is not None


def _other(dojo: Dojo, at: int, random: Random) -> Move | None:
    """The move at a place of the trace with other parameters, as they are proposed for the program there."""
    program, move = dojo.game.programs[at], dojo.trace.steps[at].resolved
    own = [c for c in choices(program, [move.name]) if c.move.at == move.at and c.move != move]
    return draw_from(own, program, random)
