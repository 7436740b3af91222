"""Generic edits of traces for any machine: insert, delete and change moves anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from pdojo.search.candidates import choices, shuffled
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods.composed import CLASSICAL, legal
from pdojo.search.neighbourhoods.drawing import (
    choices_at,
    draw_family,
    draw_from,
    each_family,
    interleaved,
    step_if_legal,
)
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, is_too_long
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation, transformation_names

VERSION = 4
"""Version of the edits: each version draws other neighbours from the same random numbers."""
INSERT, DELETE, CHANGE = "insert", "delete", "change"
ONCE, AGAIN, EVERYWHERE = "once", "again", "everywhere"
MOST = 12
"""Most moves of one insertion."""
COMPOSED = 0.25
"""Probability that an insertion is a classical transformation of several moves."""


class Mutate:
    """A few edits at random places of the trace; later moves replay by identifier, as far as they apply.

    An inserted move is of a random family, so that families with many candidates do not crowd out the others. It is
    made once, repeatedly at its place (a loop that moves inwards), or at all legal places (all temporaries in
    registers).
    """

    name = "mutate"

    def __init__(self, tries: int = 6) -> None:
        self.tries = tries
        """Most tries for a neighbour with another program."""

    @property
    def settings(self) -> JSON:
        """The number of tries, the version of the edits, and the limits on length."""
        return {"tries": self.tries, "version": VERSION, "statements": STATEMENTS, "copies": COPIES}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state with another program; None if no try found one."""
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
        """One more move or classical transformation at the end, one move less, or other mappings of scopes."""
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
    """All ways to map some scopes anew, outermost first, each to any legal mapping or none."""
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
    """Every scope with each scope inside it, by identifier."""
    scopes = dojo.game.program.nest.scopes
    return [(outer.id, scope.id) for scope in scopes for outer in scope.chain[:-1]]


def _mappings() -> list[str]:
    """Names of the transformations that map scopes."""
    return [name for name in transformation_names() if issubclass(transformation(name), MapScope)]


WAYS: tuple[tuple[Callable[[Dojo, Random], Iterator[Dojo]], float], ...] = (
    (_longer, 2),
    (_shorter, 1),
    (_remapped, 1),
    (_anew, 1),
    (_composed, 1),
)
"""Generators of nearest neighbours, and their relative weights."""


def _edit(dojo: Dojo, random: Random) -> None:
    """Draw an edit and make it if it is possible."""
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
    """Insert a move once or several times, or a classical transformation, at the end."""
    if random.random() < COMPOSED:
        _insert_composed(dojo, random)
        return
    drawn = draw_family(dojo.game.program, random)
    if drawn is None:
        return
    dojo.step(drawn)
    (mode,) = random.choices((ONCE, AGAIN, EVERYWHERE), (2, 1, 1))
    if mode == AGAIN:
        dojo.game.at_once(lambda: _again(dojo, drawn))
    elif mode == EVERYWHERE:
        _at_once(dojo, random, lambda: _everywhere(dojo, drawn, random))


def _again(dojo: Dojo, move: Move) -> None:
    """Make a move again until it is illegal or leads to a program that was met, which would repeat for ever."""
    met = {dojo.text}
    for _ in range(MOST):
        if not step_if_legal(dojo, move) or dojo.text in met:
            break
        met.add(dojo.text)


def _insert_composed(dojo: Dojo, random: Random) -> None:
    """Make a random classical transformation, or map two scopes anew."""
    transformations = random.choice((*CLASSICAL, None))
    if transformations is None:
        _map_two(dojo, random)
        return
    drawn = next(legal(transformations(dojo), dojo.game.program, random), None)
    if drawn is not None:
        drawn.make(dojo)


def _map_two(dojo: Dojo, random: Random) -> None:
    """Map a scope and one inside it anew: some mappings only pay together."""
    pairs = _pairs(dojo)
    if pairs:
        mapped = next(_mapped_anew(dojo, random.choice(pairs), random))
        dojo.become([step.resolved for step in mapped.trace.steps])


def _continue(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Replay the later moves of a trace: by identifier, or half of the time as a policy.

    By identifier, half of the moves that do not apply are made at another place. As a policy, finishing moves are made
    at all other legal places too: new parts of the program get registers, streams and so on like the old ones.
    """
    as_policy = random.random() < 0.5
    if moves:
        _at_once(dojo, random, lambda: _replay(dojo, moves, as_policy, random))


def _replay(dojo: Dojo, moves: Sequence[Move], as_policy: bool, random: Random) -> None:
    for move in moves:
        is_made = step_if_legal(dojo, move)
        if as_policy and transformation(move.name).finishes:
            _everywhere(dojo, move, random)
        elif not is_made and random.random() < 0.5:
            _elsewhere(dojo, move, random)


def _at_once(dojo: Dojo, random: Random, plan: Callable[[], None]) -> None:
    """Make the moves of a plan at once, or one by one with the same random numbers."""
    numbers = random.getstate()

    def planned() -> None:
        random.setstate(numbers)
        plan()

    dojo.game.at_once(planned)


def _everywhere(dojo: Dojo, move: Move, random: Random) -> None:
    """Make a move at all legal places."""
    for _ in range(MOST):
        if not _elsewhere(dojo, move, random):
            return


def _elsewhere(dojo: Dojo, move: Move, random: Random) -> bool:
    """Make a move with the same parameters at any legal place; returns False if there is none."""
    program = dojo.game.program
    alike = [choice for choice in choices(program, [move.name]) if choice.move.params == move.params]
    drawn = draw_from(alike, program, random)
    if drawn is not None:
        dojo.step(drawn)
    return drawn is not None


def _change_parameters(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Give a move of the trace other legal parameters."""
    for at in shuffled([k for k, move in enumerate(moves) if move.params], random):
        move, program = moves[at], dojo.game.programs[at]
        others = [choice for choice in choices_at(program, [move.name], move.at) if choice.move != move]
        drawn = draw_from(others, program, random)
        if drawn is not None:
            dojo.become([*moves[:at], drawn])
            _continue(dojo, moves[at + 1 :], random)
            return


def _change_family(dojo: Dojo, moves: Sequence[Move], random: Random) -> None:
    """Replace a move by one of another family at the same location, in its place or at the end."""
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
    """Drop moves between two equal programs: they only hide the others from edits."""
    moves = [step.resolved for step in dojo.trace.steps]
    digests = dojo.game.programs.digests()
    latest = {digest: number for number, digest in enumerate(digests)}
    kept: list[Move] = []
    at = latest[digests[0]]
    while at < len(moves):
        kept.append(moves[at])
        at = latest[digests[at + 1]]
    if len(kept) < len(moves):
        dojo.become(kept)
        # Moves fail to replay if the shorter way names their nodes differently.
        if dojo.game.programs.digests()[-1] != digests[-1]:
            dojo.become(moves)
