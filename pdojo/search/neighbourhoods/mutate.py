"""Generic edits of traces for any machine: insert, delete and change moves anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from pdojo.search.contract.candidates import shuffled
from pdojo.search.contract.evaluation import JSON
from pdojo.search.neighbourhoods.composed import CLASSICAL, legal
from pdojo.search.neighbourhoods.drawing import UNIFORM, Drawing, Learned, Mixture, each_legal
from pdojo.search.neighbourhoods.editing import Editor
from pdojo.search.neighbourhoods.lengths import COPIES, STATEMENTS, LengthLimits
from pdojo.search.neighbourhoods.random_moves import choices_at, interleaved
from pdojo.search.neighbourhoods.remapping import mapped_anew, mappings, pairs
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

VERSION = 5
"""Version of the edits: each version draws other neighbours from the same random numbers."""


class Mutate:
    """A few edits at random places of the trace; later moves replay by identifier, as far as they apply.

    An inserted move comes from a random family, so that families with many candidates do not crowd out the others. It
    is made once, repeatedly at its place (a loop that moves inwards), or at all legal places (all temporaries in
    registers). A mixture draws some edits by a learned model.
    """

    name = "mutate"

    def __init__(self, tries: int = 6, mixture: Mixture | None = None, evaluations: int = 0) -> None:
        self.tries = tries
        """Greatest number of tries for a neighbour with another program."""
        self.mixture = mixture
        """Learned proposals among uniform ones; None for uniform ones only."""
        self.share = 0.0 if mixture is None else mixture.share(evaluations)
        """The share of edits that the model draws."""
        self._learned = UNIFORM if mixture is None else Learned(mixture.model)

    def after(self, evaluations: int) -> Mutate:
        """The neighbourhood after so many evaluations of a search."""
        return self if self.mixture is None else Mutate(self.tries, self.mixture, evaluations)

    def drawings(self) -> dict[Drawing, float]:
        """The ways to draw moves, and their shares; none is zero."""
        shares = {UNIFORM: 1.0} if self.mixture is None else {self._learned: self.share, UNIFORM: 1 - self.share}
        return {drawing: share for drawing, share in shares.items() if share > 0}

    def drawn(self, random: Random) -> Drawing:
        """The way in which an edit is drawn."""
        return self._learned if self.mixture is not None and random.random() < self.share else UNIFORM

    @property
    def settings(self) -> JSON:
        """The number of tries, the version of the edits, the limits on length, and the mixture, if there is one."""
        settings: JSON = {"tries": self.tries, "version": VERSION, "statements": STATEMENTS, "copies": COPIES}
        return settings if self.mixture is None else {**settings, "proposals": self.mixture.settings}

    def neighbour(self, game: Game, random: Random) -> Game | None:
        """A state with another program; None if no try found one."""
        own, limits = game.fingerprint, LengthLimits.of(game)
        for _ in range(self.tries):
            editor = Editor(game.fork(), limits, random, self.drawn)
            is_short = editor.edit()
            while is_short and random.random() < 0.5:
                is_short = editor.edit()
            if is_short and editor.game.fingerprint != own:
                editor.drop_detours()
                return editor.game
        return None

    def nearest(self, game: Game, random: Random) -> Iterator[Game]:
        """One move or classical transformation more at the end, one move less, or other mappings of scopes."""
        ways, limits = {self._longer(game, random): LONGER}, LengthLimits.of(game)
        ways |= {way(game, random): weight for way, weight in WAYS}
        return (near for near in interleaved(ways, random) if not limits.exceeded_by(near))

    def _longer(self, game: Game, random: Random) -> Iterator[Game]:
        before = [step.resolved for step in game.trace.steps]
        ways = {each_legal(way, game.program, before, random): share for way, share in self.drawings().items()}
        met: set[Move] = set()
        for choice in interleaved(ways, random) if len(ways) > 1 else next(iter(ways)):
            if choice.move not in met:
                met.add(choice.move)
                near = game.fork()
                near.apply(choice.move)
                yield near


def _shorter(game: Game, random: Random) -> Iterator[Game]:
    for at in shuffled(range(len(game.trace.steps)), random):
        near = game.fork()
        near.undo(at)
        yield near


def _remapped(game: Game, random: Random) -> Iterator[Game]:
    names = mappings()
    moves = [step.resolved for step in game.trace.steps]
    for at in shuffled([k for k, move in enumerate(moves) if move.name in names], random):
        plain = game.fork()
        plain.undo(at)
        program = plain.program
        for choice in shuffled(choices_at(program, names, moves[at].at), random):
            if choice.move.name != moves[at].name and choice.is_legal(program):
                near = plain.fork()
                near.apply(choice.move)
                yield near


def _composed(game: Game, random: Random) -> Iterator[Game]:
    every = [composed for transformations in CLASSICAL for composed in transformations(game)]
    for composed in legal(every, game.program, random):
        near = game.fork()
        composed.make(near)
        yield near


def _anew(game: Game, random: Random) -> Iterator[Game]:
    yield from interleaved({mapped_anew(game, pair, random): 1 for pair in pairs(game)}, random)


WAYS: tuple[tuple[Callable[[Game, Random], Iterator[Game]], float], ...] = (
    (_shorter, 1),
    (_remapped, 1),
    (_anew, 1),
    (_composed, 1),
)
"""Generators of nearest neighbours except longer ones, and their relative weights."""
LONGER = 2.0
"""The weight of neighbours with one move more."""
