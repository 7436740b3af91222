"""Candidates of the moves in a state. Candidates are cheap: legality is checked only for drawn ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from pdojo.dialect.flow.program import Program
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import AnyTransformation, transformation, transformation_names
from pdojo.transforms.site import Site, identify

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MoveCandidate:
    """A candidate: a transformation with its parameters, and a site of the right shape."""

    transformation: AnyTransformation
    site: Site

    @property
    def move(self) -> Move:
        """The move, by identifier."""
        return self.transformation.as_move(identify(self.site))

    def is_legal(self, program: Program) -> bool:
        """True if the move is legal; `program` is the site's program."""
        return Legality.of(program).ask(program, self.transformation, self.site).is_legal

    def take_rehearsed(self, program: Program) -> Program | None:
        """The program after the move if the legality check has just made it, else None; the site's program then drops
        it.
        """
        return program.take_rehearsed((self.transformation, identify(self.site)))


def choices(program: Program, names: Sequence[str] | None = None) -> list[MoveCandidate]:
    """All candidates, or those of the transformations `names`, in a fixed order."""
    wanted = transformation_names() if names is None else names
    return [MoveCandidate(made, site) for name in wanted for site, made in transformation(name).candidates(program)]


def shuffled(items: Sequence[T], random: Random) -> Iterator[T]:
    """The items in random order; each item taken uses one random number."""
    rest = list(items)
    while rest:
        position = random.randrange(len(rest))
        rest[position], rest[-1] = rest[-1], rest[position]
        yield rest.pop()


def legal_candidates(program: Program, random: Random) -> Iterator[MoveCandidate]:
    """The legal candidates in random order, each checked on demand."""
    return (choice for choice in shuffled(choices(program), random) if choice.is_legal(program))
