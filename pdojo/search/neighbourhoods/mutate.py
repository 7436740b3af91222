"""Generic edits of traces for any machine: insert, delete and change moves anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from pdojo.search.contract.candidates import shuffled
from pdojo.search.contract.dojo import Dojo
from pdojo.search.contract.evaluation import JSON
from pdojo.search.neighbourhoods.composed import CLASSICAL, legal
from pdojo.search.neighbourhoods.drawing import choices_at, each_family, interleaved
from pdojo.search.neighbourhoods.editing import Editor
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, Limits
from pdojo.search.neighbourhoods.remapping import mapped_anew, mappings, pairs

VERSION = 5
"""Version of the edits: each version draws other neighbours from the same random numbers."""


class Mutate:
    """A few edits at random places of the trace; later moves replay by identifier, as far as they apply.

    An inserted move comes from a random family, so that families with many candidates do not crowd out the others. It
    is made once, repeatedly at its place (a loop that moves inwards), or at all legal places (all temporaries in
    registers).
    """

    name = "mutate"

    def __init__(self, tries: int = 6) -> None:
        self.tries = tries
        """Greatest number of tries for a neighbour with another program."""

    @property
    def settings(self) -> JSON:
        """The number of tries, the version of the edits, and the limits on length."""
        return {"tries": self.tries, "version": VERSION, "statements": STATEMENTS, "copies": COPIES}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state with another program; None if no try found one."""
        own, limits = dojo.fingerprint, Limits.of(dojo)
        for _ in range(self.tries):
            editor = Editor(dojo.fork(), limits, random)
            is_short = editor.edit()
            while is_short and random.random() < 0.5:
                is_short = editor.edit()
            if is_short and editor.dojo.fingerprint != own:
                editor.drop_detours()
                return editor.dojo
        return None

    def nearest(self, dojo: Dojo, random: Random) -> Iterator[Dojo]:
        """One move or classical transformation more at the end, one move less, or other mappings of scopes."""
        ways, limits = {way(dojo, random): weight for way, weight in WAYS}, Limits.of(dojo)
        return (near for near in interleaved(ways, random) if not limits.exceeded_by(near))


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
    names = mappings()
    moves = [step.resolved for step in dojo.trace.steps]
    for at in shuffled([k for k, move in enumerate(moves) if move.name in names], random):
        plain = dojo.fork()
        plain.undo(at)
        program = plain.game.program
        for choice in shuffled(choices_at(program, names, moves[at].at), random):
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
    yield from interleaved({mapped_anew(dojo, pair, random): 1 for pair in pairs(dojo)}, random)


WAYS: tuple[tuple[Callable[[Dojo, Random], Iterator[Dojo]], float], ...] = (
    (_longer, 2),
    (_shorter, 1),
    (_remapped, 1),
    (_anew, 1),
    (_composed, 1),
)
"""Generators of nearest neighbours, and their relative weights."""
