"""Application of moves to a program, and listing of applicable moves, by the same checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pdojo.dialect.flow.program import Program
from pdojo.errors import IllegalMove, LocationError
from pdojo.transforms.base import Transformation
from pdojo.transforms.inverses import lead_back
from pdojo.transforms.legality.judge import Legality, Refusal, Verdict
from pdojo.transforms.legality.trials import rehearse
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate, transformation, transformation_names
from pdojo.transforms.site import Site, identify


@dataclass(frozen=True)
class Applied:
    """A move that was made on a copy of a program."""

    before: Program
    """The program before the move."""
    transformation: Transformation[Any]
    """The transformation with the move's parameters."""
    site: Site
    """The site in the program before."""
    program: Program
    """The program after the move."""

    @cached_property
    def move(self) -> Move:
        """The move, with a location for people, in the program before."""
        return self.transformation.at(self.before, self.site)

    @property
    def resolved(self) -> Move:
        """The move, located by identifiers, for replay."""
        return self.transformation.as_move(identify(self.site))

    @cached_property
    def inverse(self) -> Move | None:
        """The move that leads back, located by identifiers of the program after; None if no move does.

        It is legal, and gives the program before, but for names, declarations and indices of arrays that it makes. So
        guards and divisions whose form the move has changed may leave no inverse.
        """
        named = self.transformation.inverse(self.before, self.site)
        try:
            back = apply(self.program, named).program
        except (IllegalMove, LocationError):
            return None
        return named if lead_back(self.before, self.program, back) else None


def apply(program: Program, move: Move, *, verify: bool = True) -> Applied:
    """Apply a move to a copy of the program's kernel; `Game` adds a trace, undo, and many moves at once.

    Raises LocationError for a location that does not exist, IllegalMove with reason and witness for a refused move.
    Without `verify`, the move's check is trusted: the conditions of the program after it are not checked.
    """
    if verify:
        verdict = checked(program, move)
        after, _ = Legality.of(program).make(verdict)
    else:
        verdict = legal(program, move)
        after = rehearse(verdict.transformation, program, verdict.site)
    return Applied(program, verdict.transformation, verdict.site, after)


def legal(program: Program, move: Move, *, foresees: bool = True, remembers: bool = True) -> Verdict:
    """The verdict on a legal move. Raises LocationError or IllegalMove as `apply` does.

    Without `foresees`, the caller makes the move by `Legality.make`; `remembers` as in `Legality.ask`.
    """
    wanted = instantiate(move)
    site = wanted.resolve(program, move.at)
    verdict = Legality.of(program).ask(program, wanted, site, foresees=foresees, remembers=remembers)
    verdict.confirm()
    return verdict


def checked(program: Program, move: Move) -> Verdict:
    """`legal` without foresight; a move refused here has the same reason as in `legal`."""
    try:
        return legal(program, move, foresees=False)
    except IllegalMove:
        return legal(program, move)  # its reason may be another one


def candidates(program: Program, family: str = "", at: str = "") -> Iterator[Verdict]:
    """The verdicts on all candidate moves.

    `family` and `at` restrict the candidates to one name or one location. Raises IllegalMove for an unknown family, and
    LocationError for an unknown location.
    """
    legality = Legality.of(program)
    for kind, place in _kinds(program, family, at):
        for site, choice in kind.candidates(program):
            if place is None or identify(site) == place:
                yield legality.ask(program, choice, site)


def _kinds(program: Program, family: str, at: str) -> Iterator[tuple[type[Transformation[Any]], str | None]]:
    """The families of moves to list, each with the location to list; None for all locations."""
    nowhere: LocationError | None = None
    is_somewhere = False
    for name in (family,) if family else transformation_names():
        kind = transformation(name)
        try:
            place = identify(kind.resolve(program, at)) if at else None
        except LocationError as error:
            nowhere = nowhere or error
            continue
        is_somewhere = True
        yield kind, place
    if nowhere is not None and not is_somewhere:
        raise nowhere


def legal_moves(program: Program, family: str = "", at: str = "") -> list[Move]:
    """Every legal move, in a fixed order; `family` and `at` restrict them as in `candidates`."""
    return [verdict.move for verdict in candidates(program, family, at) if verdict.is_legal]


def refused_moves(program: Program, family: str = "", at: str = "") -> list[Refusal]:
    """Every refused candidate, with the reason; `family` and `at` restrict them as in `candidates`."""
    verdicts = candidates(program, family, at)
    return [refusal for verdict in verdicts if (refusal := verdict.refusal) is not None]
