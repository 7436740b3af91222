"""Other mappings of scopes. Some mappings only pay together, such as a stream with a hardware loop inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from pdojo.search.contract.candidates import shuffled
from pdojo.search.contract.dojo import Dojo
from pdojo.search.neighbourhoods.drawing import choices_at
from pdojo.transforms.mapping.scope import MapScope
from pdojo.transforms.registry import transformation, transformation_names


def mapped_anew(dojo: Dojo, scopes: Sequence[str], random: Random) -> Iterator[Dojo]:
    """All ways to map some scopes anew, outermost first, each to any legal mapping or to none."""
    plain = dojo.fork()
    locations = [f"%{scope}" for scope in scopes]
    names = mappings()
    kept = (step.resolved for step in dojo.trace.steps)
    plain.become([move for move in kept if move.name not in names or move.at not in locations])
    yield from _mapped(plain, locations, random)


def _mapped(dojo: Dojo, locations: Sequence[str], random: Random) -> Iterator[Dojo]:
    if not locations:
        yield dojo
        return
    program = dojo.game.program
    legal = [choice.move for choice in choices_at(program, mappings(), locations[0]) if choice.is_legal(program)]
    for move in shuffled([None, *legal], random):
        near = dojo.fork()
        if move is not None:
            near.step(move)
        yield from _mapped(near, locations[1:], random)


def pairs(dojo: Dojo) -> list[tuple[str, ...]]:
    """Every scope with each scope inside it, by identifier."""
    scopes = dojo.game.program.nest.scopes
    return [(outer.id, scope.id) for scope in scopes for outer in scope.chain[:-1]]


def mappings() -> list[str]:
    """Names of the transformations that map scopes."""
    return [name for name in transformation_names() if issubclass(transformation(name), MapScope)]
