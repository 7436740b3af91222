"""Generic editing of traces: moves more, moves less, other parameters; anywhere in the trace, on any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods.composed import CLASSICAL, legal
from pdojo.search.neighbourhoods.drawing import (
    choices,
    choices_at,
    draw_family,
    draw_from,
    each_family,
    interleaved,
    shuffled,
    step_if_legal,
)
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, is_too_long
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation, transformation_names

VERSION = 4
"""Of the edits: the same random numbers lead to other neighbours under another one."""
INSERT, DELETE, CHANGE = "insert", "delete", "change"
ONCE, AGAIN, EVERYWHERE = "once", "again", "everywhere"
MOST = 12
"""Moves that one insertion makes, at most."""
COMPOSED = 0.25
"""How often moves are inserted that are a classical transformation together."""


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
        """A state with another program; None if no try led to one."""
        own = dojo.fingerprint
        for _ in range(self.tries):
            near = dojo.fork()
            _edit(near, random)
            while random.random() < 0.5:
                _edit(near, random)
            _drop_detours(near)
            if near.fingerprint != own and not is_too_long(near, dojo):
                return near
        return None

    def nearest(self, dojo: Dojo, random: Random) -> Iterator[Dojo]:
        """One move more at the end, or several that make sense together; one less anywhere; scopes mapped otherwise."""
        ways = {way(dojo, random): weight for way, weight in WAYS}
        return (near for near in interleaved(ways, random) if not is_too_long(near, dojo))


def _longer(dojo: Dojo, random: Random) -> Iterator[Dojo]:
    for move in each_family(dojo.game.program, random):
        near = dojo.fork()
        near.step(move)
        yield near


def _shorter(dojo: Dojo, random: Random) -> Iterator[Dojo]:
    for at in shuffled(range(len(dojo.trace.steps)), random):
        near = dojo.fork()
        near.undo(at)
        yield near


def _remapped(dojo: Dojo, random: Random) -> Iterator[Dojo]:
    mappings = _mappings()
    moves = [step.resolved for step in dojo.trace.steps]
    for at in shuffled([k for k, move in enumerate(moves) if move.name in mappings], random):
        plain = dojo.fork()
        plain.undo(at)
        program = plain.game.program
        for choice in shuffled(choices_at(program, mappings, moves[at].at), random):
            if choice.move.name != moves[at].name and choice.is_legal(program):
                near = plain.fork()
                near.step(choice.move)
                yield near


def _composed(dojo: Dojo, random: Random) -> Iterator[Dojo]:
    every = [composed for transformations in CLASSICAL for composed in transformations(dojo)]
    for composed in legal(every, dojo.game.program, random):
        near = dojo.fork()
        composed.make(near)
        yield near


def _anew(dojo: Dojo, random: Random) -> Iterator[Dojo]:
    yield from interleaved({_mapped_anew(dojo, pair, random): 1 for pair in _pairs(dojo)}, random)


def _mapped_anew(dojo: Dojo, scopes: Sequence[str], random: Random) -> Iterator[Dojo]:
    """Some scopes are mapped anew, from outside inwards, each to anything that is legal, or to nothing; all ways."""
    plain = dojo.fork()
    locations = [f"%{scope}" for scope in scopes]
    mappings = _mappings()
    kept = (step.resolved for step in dojo.trace.steps)
    plain.become([move for move in kept if move.name not in mappings or move.at not in locations])
    yield from _mapped(plain, locations, random)


def _mapped(dojo: Dojo, locations: Sequence[str], random: Random) -> Iterator[Dojo]:
    if not locations:
        yield dojo
        return
    program = dojo.game.program
    mappings = [choice.move for choice in choices_at(program, _mappings(), locations[0]) if choice.is_legal(program)]
    for move in shuffled([None, *mappings], random):
        near = dojo.fork()
        if move is not None:
            near.step(move)
        yield from _mapped(near, locations[1:], random)


def _pairs(dojo: Dojo) -> list[tuple[str, ...]]:
    """Every scope and each of those in it, by identifier."""
    scopes = dojo.game.program.nest.scopes
    return [(outer.id, scope.id) for scope in scopes for outer in scope.chain[:-1]]


def _mappings() -> list[str]:
    """The transformations that map scopes."""
    return [name for name in transformation_names() if issubclass(transformation(name), MapScope)]


WAYS: tuple[tuple[Callable[[Dojo, Random], Iterator[Dojo]], float], ...] = (
    (_longer, 2),
    (_shorter, 1),
    (_remapped, 1),
    (_anew, 1),
    (_composed, 1),
)
"""Ways to the nearest neighbours, and how often each is gone on with, relative to the others."""


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
        gone = moves[at].name if random.random() < 0.5 else None
        dojo.become(moves[:at])
        _continue(dojo, [move for move in moves[at + 1 :] if move.name != gone], random)
    elif random.random() < 0.5:
        _change_parameters(dojo, moves, random)
    else:
        _change_family(dojo, moves, random)


def _insert(dojo: Dojo, random: Random) -> None:
    """One more move at the end, several of a kind, or several that make sense together."""
    if random.random() < COMPOSED:
        _insert_composed(dojo, random)
        return
    drawn = draw_family(dojo.game.program, random)
    if drawn is None:
        return
    dojo.step(drawn)
    (mode,) = random.choices((ONCE, AGAIN, EVERYWHERE), (2, 1, 1))
    if mode == AGAIN:
        met = {dojo.text}
        for _ in range(MOST):
            # Where it leads back, it would go round for ever.
            if not step_if_legal(dojo, drawn) or dojo.text in met:
                break
            met.add(dojo.text)
    elif mode == EVERYWHERE:
        _everywhere(dojo, drawn, random)


def _insert_composed(dojo: Dojo, random: Random) -> None:
    """One of the classical transformations anywhere, or two scopes mapped anew."""
    transformations = random.choice((*CLASSICAL, None))
    if transformations is None:
        _map_two(dojo, random)
        return
    drawn = next(legal(transformations(dojo), dojo.game.program, random), None)
    if drawn is not None:
        drawn.make(dojo)


def _map_two(dojo: Dojo, random: Random) -> None:
    """A scope and one in it are mapped anew: where one mapping only pays with the other, each alone is given up."""
    pairs = _pairs(dojo)
    if pairs:
        mapped = next(_mapped_anew(dojo, random.choice(pairs), random))
        dojo.become([step.resolved for step in mapped.trace.steps])


def _continue(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Make the later moves of a trace again, as they were or, half of the time, as what they say of the whole program.

    By identifier they are what they were, and half of those that are lost are made at another place. As a policy, those
    that finish a program are made at all other places too: what an edit has brought gets registers, streams and so on
    like what was there.
    """
    as_policy = random.random() < 0.5
    for move in moves:
        is_made = step_if_legal(dojo, move)
        if as_policy and transformation(move.name).finishes:
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


def _change_parameters(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """A move of the trace with other parameters, as they are proposed for the program there."""
    for at in shuffled([k for k, move in enumerate(moves) if move.params], random):
        move, program = moves[at], dojo.game.programs[at]
        others = [choice for choice in choices_at(program, [move.name], move.at) if choice.move != move]
        drawn = draw_from(others, program, random)
        if drawn is not None:
            dojo.become([*moves[:at], drawn])
            _continue(dojo, moves[at + 1 :], random)
            return


def _change_family(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Something else than a move of the trace at its location: there, or after all others."""
    at = random.randrange(len(moves))
    dojo.become(moves[:at])
    at_the_end = random.random() < 0.5
    if at_the_end:
        _continue(dojo, moves[at + 1 :], random)
    program = dojo.game.program
    names = [name for name in transformation_names() if name != moves[at].name and not transformation(name).undoes]
    drawn = draw_from(choices_at(program, names, moves[at].at), program, random)
    if drawn is not None:
        dojo.step(drawn)
    if not at_the_end:
        _continue(dojo, moves[at + 1 :], random)


def _drop_detours(dojo: Dojo) -> None:
    """Leave out moves that lead back to a program that was there before: they only hide the others from edits."""
    moves = [step.resolved for step in dojo.trace.steps]
    texts = list(dojo.game.programs.texts())
    latest = {text: number for number, text in enumerate(texts)}
    kept: list[Move] = []
    at = latest[texts[0]]
    while at < len(moves):
        kept.append(moves[at])
        at = latest[texts[at + 1]]
    if len(kept) < len(moves):
        dojo.become(kept)
        # What is called otherwise on the shorter way is not found.
        if dojo.text != texts[-1]:
            dojo.become(moves)
