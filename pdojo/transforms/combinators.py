"""Passes of one's own out of moves: ordinary functions on a game, put together by ordinary functions.

A `Play` makes moves on a game; where it cannot, it raises IllegalMove or LocationError. `seq`, `attempt`, `repeat`,
`everywhere` and `where` make larger plays of smaller ones. Every move is checked and recorded in the trace as if it
had been made by hand, so whatever a play does keeps the meaning of the program and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.transforms.base import identify
from pdojo.transforms.game import Game
from pdojo.transforms.move import Param
from pdojo.transforms.registry import transformation

Play: TypeAlias = Callable[[Game], None]
"""Makes moves; raises IllegalMove or LocationError where it cannot."""

Predicate: TypeAlias = Callable[[Any], bool]
"""A question about a site: a `Scope`, a `Leaf`, an `Array` or a `Dimension` of `pdojo.transforms.base`."""


def move(text: str) -> Play:
    """One move at one place: `move("tile_scope@t:0{size=16}")`."""
    return lambda game: game.apply(text)


def seq(*plays: Play) -> Play:
    """One after the other; what comes after one that cannot be made is not made."""

    def play(game: Game) -> None:
        for each in plays:
            each(game)

    return play


def attempt(play: Play, otherwise: Play | None = None) -> Play:
    """All of a play or nothing of it: where it cannot be made, the game is as before and `otherwise` is made."""

    def attempted(game: Game) -> None:
        before = len(game.trace.steps)
        try:
            play(game)
        except (IllegalMove, LocationError):
            _return_to(game, before)
            if otherwise is not None:
                otherwise(game)

    return attempted


def repeat(play: Play, limit: int = 1000) -> Play:
    """Again and again until it cannot be made or makes no move. Raises UsageError after `limit` times."""
    once = attempt(play)

    def repeated(game: Game) -> None:
        for _ in range(limit):
            before = len(game.trace.steps)
            once(game)
            if len(game.trace.steps) == before:
                return
        raise UsageError(f"a play was repeated {limit} times and could still be made; does it undo itself?")

    return repeated


def everywhere(name: str, when: Predicate = lambda _: True, **params: Param) -> Play:
    """A move wherever it is legal and `when` holds, each place once; legality is asked anew after every move.

    Parameters that are given select among the choices that the transformation proposes; where it proposes several, the
    first legal one is made. Places that a move creates are visited too.
    """
    family = transformation(name)

    def play(game: Game) -> None:
        visited: set[str] = set()
        while (found := _next(game, visited)) is not None:
            game.apply(found)

    def _next(game: Game, visited: set[str]) -> str | None:
        for site, choice in family.candidates(game.program):
            proposed = choice.as_move(identify(site))
            wanted = params.items() <= dict(proposed.params).items()
            if proposed.at in visited or not wanted or not when(site):
                continue
            if choice.refusal(game.program, site) is None:
                visited.add(proposed.at)
                return str(proposed)
        return None

    return play


def where(predicate: Callable[[Game], bool], play: Play, otherwise: Play | None = None) -> Play:
    """A play if something holds of the game, else `otherwise`."""

    def chosen(game: Game) -> None:
        if predicate(game):
            play(game)
        elif otherwise is not None:
            otherwise(game)

    return chosen


def _return_to(game: Game, moves: int) -> None:
    """Take back all moves but the first so many."""
    while len(game.trace.steps) > moves:
        game.undo()
