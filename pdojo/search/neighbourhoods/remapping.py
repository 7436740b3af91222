"""Other mappings of scopes. Some mappings only pay together, such as a stream with a hardware loop inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from pdojo.search.contract.candidates import shuffled
from pdojo.search.neighbourhoods.random_moves import choices_at
from pdojo.transforms.game import Game
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.registry import transformation, transformation_names


def mapped_anew(game: Game, scopes: Sequence[str], random: Random) -> Iterator[Game]:
    """All ways to change the mappings of some scopes, outermost first, each to any legal mapping or to none."""
    plain = game.fork()
    locations = [f"%{scope}" for scope in scopes]
    names = mappings()
    kept = (step.resolved for step in game.trace.steps)
    plain.become([move for move in kept if move.name not in names or move.at not in locations])
    yield from _mapped(plain, locations, random)


def _mapped(game: Game, locations: Sequence[str], random: Random) -> Iterator[Game]:
    if not locations:
        yield game
        return
    program = game.program
    legal = [choice.move for choice in choices_at(program, mappings(), locations[0]) if choice.is_legal(program)]
    for move in shuffled([None, *legal], random):
        near = game.fork()
        if move is not None:
            near.apply(move)
        yield from _mapped(near, locations[1:], random)


def pairs(game: Game) -> list[tuple[str, ...]]:
    """Every scope with each scope inside it, as identifiers."""
    scopes = game.program.nest.scopes
    return [(outer.id, scope.id) for scope in scopes for outer in scope.chain[:-1]]


def mappings() -> list[str]:
    """Names of the transformations that map scopes."""
    return [name for name in transformation_names() if issubclass(transformation(name), MapScope)]
