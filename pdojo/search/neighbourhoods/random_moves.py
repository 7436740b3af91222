"""Drawing of a random legal move. Candidates are cheap: legality is checked only for drawn ones.

Candidates are drawn without replacement until one is legal: a uniform choice among the legal moves, without checks of
the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

from pdojo.dialect.flow.program import Program
from pdojo.dialect.view.nest import Array, Buffer
from pdojo.errors import IllegalMove, LocationError
from pdojo.search.contract.candidates import MoveCandidate, choices, shuffled
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation
from pdojo.transforms.site import Dimension, Site

T = TypeVar("T")
RARELY = 0.2
"""Relative weight of families that take back other moves."""


def choices_at(program: Program, names: Sequence[str], at: str) -> list[MoveCandidate]:
    """The candidates of some transformations at a location, which names a node by identifier."""
    return [choice for choice in choices(program, names) if choice.move.at == at]


def draw(program: Program, random: Random, names: Sequence[str] | None = None) -> Move | None:
    """A legal move of the transformations `names` (None: all), uniformly drawn; None if there is none."""
    return draw_from(choices(program, names), program, random)


def draw_from(some: Sequence[MoveCandidate], program: Program, random: Random) -> Move | None:
    """A legal move among some candidates, uniformly drawn; None if there is none."""
    return next((choice.move for choice in _legal(some, program, random)), None)


def _legal(some: Sequence[MoveCandidate], program: Program, random: Random) -> Iterator[MoveCandidate]:
    return (choice for choice in shuffled(some, random) if choice.is_legal(program))


def interleaved(ways: Mapping[Iterator[T], float], random: Random) -> Iterator[T]:
    """The items of several iterators: each from an iterator that is not exhausted, drawn with the weights."""
    rest = dict(ways)
    while rest:
        (way,) = random.choices(list(rest), list(rest.values()))
        try:
            found = next(way)
        except StopIteration:
            del rest[way]
        else:
            yield found


def useful(some: Sequence[MoveCandidate], program: Program) -> list[MoveCandidate]:
    """The candidates except for moves on arrays whose memory no statement accesses, like a contracted temporary."""
    nest = program.nest
    used = {access.array.buffer for leaf in nest.leaves for access in leaf.accesses}
    return [choice for choice in some if (buffer := _buffer_of(choice.site)) is None or buffer in used]


def _buffer_of(site: Site) -> Buffer | None:
    match site:
        case Array():
            return site.buffer
        case Dimension():
            return site.array.buffer
        case _:
            return None


def family_weight(name: str) -> float:
    """The relative weight of a family in draws: `RARELY` if it only takes back other moves."""
    return RARELY if transformation(name).undoes else 1.0


def is_legal(program: Program, move: Move) -> bool:
    """True if a move is legal."""
    try:
        legal(program, move)
    except (IllegalMove, LocationError):
        return False
    return True


def step_if_legal(game: Game, move: Move) -> bool:
    """Make a move if it is legal; returns True if it was."""
    try:
        game.apply(move)
    except (IllegalMove, LocationError):
        return False
    return True
