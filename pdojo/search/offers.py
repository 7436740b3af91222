"""What an agent may do next: legal moves, and runs of one kind of move, with the programs that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random

from pdojo.dialect.analysis.program import Program
from pdojo.errors import IllegalMove, LocationError
from pdojo.search.candidates import Choice, choices
from pdojo.search.dojo import Dojo, fingerprint_of
from pdojo.search.neighbourhoods.drawing import legal_by_family, useful
from pdojo.transforms.apply import legal
from pdojo.transforms.move import Move

MOST = 16
"""Most moves of a run."""
EVERYWHERE = 0.25
"""Share of the offers that become runs."""


@dataclass(frozen=True)
class Offer:
    """Moves to make, one after another, and the program that they lead to."""

    moves: tuple[Move, ...]
    """By identifier: one, or a run of one family with the same parameters."""
    program: Program
    """The program afterwards; do not modify its kernel. Its rules are asked when the moves are made."""

    @property
    def text(self) -> str:
        """The program in canonical notation, without identifiers."""
        return self.program.text

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint that the state will have."""
        return fingerprint_of(self.text)

    def __str__(self) -> str:
        first = self.moves[0]
        return str(first) if len(self.moves) == 1 else f"{first.moved_to('everywhere')}"


def offers(dojo: Dojo, count: int, random: Random, *, everywhere: bool = False) -> Iterator[Offer]:
    """At most `count` legal moves of a state, each to another program, made as they are asked for.

    Each time a random family is drawn, then a move of it, so that families with hundreds of sizes do not crowd out the
    others. With `everywhere`, a part of the moves (`EVERYWHERE`) are made again, with the same parameters, at all other
    places where they are legal: one offer, many moves.
    """
    return islice(_distinct(dojo, random, everywhere=everywhere), count)


def _distinct(dojo: Dojo, random: Random, *, everywhere: bool) -> Iterator[Offer]:
    program = dojo.game.program
    met = {dojo.text}
    for choice in legal_by_family(program, random):
        offer = Offer((choice.move,), choice.transformation.rehearse(program, choice.site))
        if everywhere and random.random() < EVERYWHERE:
            offer = _everywhere(offer, choice, program)
        if offer.text not in met:
            met.add(offer.text)
            yield offer


def _everywhere(offer: Offer, first: Choice, before: Program) -> Offer:
    """The same family and parameters at all places of the program before, in textual order; invalidates `offer`."""
    moves, program = [*offer.moves], offer.program
    alike = useful(choices(before, [first.transformation.name]), before)
    for move in (choice.move for choice in alike if choice.move.params == first.move.params):
        if len(moves) == MOST:
            break
        if move == first.move:
            continue
        try:
            made, site = legal(program, move)
        except (IllegalMove, LocationError):
            continue
        program = made.perform(program, site)
        moves.append(move)
    return Offer(tuple(moves), program)
