"""The heuristic neighbourhood (paper 4.2.1): complete traces with expert alterations.

The first trace is the expert pass's. A neighbour changes some of its moves anywhere and keeps the others as far as they
apply. docs/search.md lists the alterations.
"""

from __future__ import annotations

from random import Random

from pdojo.passes.common.builder import PassBuilder
from pdojo.search.contract.evaluation import JSON
from pdojo.search.neighbourhoods.lengths import LengthLimits
from pdojo.search.neighbourhoods.proposals import Edit, Proposals
from pdojo.search.neighbourhoods.registry import proposals_for
from pdojo.transforms.game import Game

VERSION = 4
"""Version of the alterations: each version draws other neighbours from the same random numbers."""
SHORT = 3
"""Traces of fewer moves are incomplete: the expert pass completes them."""


class Heuristic:
    """Alternatives to a complete trace, from the machine's proposals."""

    name = "heuristic"

    def __init__(self, tries: int = 12) -> None:
        self.tries = tries
        """Greatest number of alterations tried for one neighbour."""
        self._tuned: tuple[Game, Game] | None = None

    def __reduce__(self) -> tuple[type[Heuristic], tuple[int]]:
        return Heuristic, (self.tries,)

    @property
    def settings(self) -> JSON:
        """The number of tries and the version of the alterations."""
        return {"tries": self.tries, "version": VERSION}

    def neighbour(self, game: Game, random: Random) -> Game | None:
        """The expert pass's program if the trace is incomplete, else an altered trace; None if none was found.

        Raises UsageError for machines without proposals.
        """
        proposals = proposals_for(game.machine)
        own, limits = game.fingerprint, LengthLimits.of(game)
        if len(game.trace.steps) < SHORT:
            tuned = self._expert(game, proposals)
            if tuned.fingerprint != own:
                return tuned.fork()
        ways, weights = zip(*proposals.alterations, strict=True)
        for _ in range(self.tries):
            (alter,) = random.choices(ways, weights)
            edit = alter(game, random)
            if edit is not None:
                near = _edited(game, edit, proposals)
                if near.fingerprint != own and not limits.exceeded_by(near):
                    return near
        return None

    def _expert(self, game: Game, proposals: Proposals) -> Game:
        """The state of the expert pass for a state; the last one is cached, as searches return to their root."""
        known = self._tuned
        if known is None or not _is_same(known[0], game):
            tuned = game.fork()
            PassBuilder.play(tuned, proposals.expert)
            self._tuned = known = game.fork(), tuned
        return known[1]


def _is_same(one: Game, other: Game) -> bool:
    """True if two states have the same kernel, machine and trace."""
    return (one.machine, one.initial.text, one.trace.steps) == (
        other.machine,
        other.initial.text,
        other.trace.steps,
    )


def _edited(game: Game, edit: Edit, proposals: Proposals) -> Game:
    near = game.fork()
    skipped = near.become(edit.moves)
    if edit.is_start:
        PassBuilder.play(near, proposals.expert)
    elif skipped:
        proposals.mend(PassBuilder(near), skipped, edit.spared)
    return near
