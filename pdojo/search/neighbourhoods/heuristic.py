"""The heuristic neighbourhood (paper 4.2.1): complete traces, altered as somebody who knows the machine would.

A trace is not built from start to end. The first one is that of the expert pass; its neighbours have some moves changed
at any point and the others left as they are, as far as they still apply. docs/search.md lists the alterations.
"""

from __future__ import annotations

from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.experts.player import Player
from pdojo.search.neighbourhoods.lengths import is_too_long
from pdojo.search.neighbourhoods.proposals import Edit, Proposals, proposals_for

VERSION = 4
"""Of the alterations: the same random numbers lead to other neighbours under another one."""
SHORT = 3
"""Moves below which a trace is not complete, so that the expert pass makes the next one."""


class Heuristic:
    """Alternatives to a complete trace, by what the machine's proposals alter."""

    name = "heuristic"

    def __init__(self, tries: int = 12) -> None:
        self.tries = tries
        """Alterations that are tried until one leads to another program."""
        self._tuned: tuple[Dojo, Dojo] | None = None

    @property
    def settings(self) -> JSON:
        """How often it tries, and the version of the alterations."""
        return {"tries": self.tries, "version": VERSION}

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """What the expert pass makes of a trace that has hardly begun, else an alternative; None if none was found.

        Raises UsageError for machines without proposals.
        """
        proposals = proposals_for(dojo.machine)
        own = dojo.fingerprint
        if len(dojo.trace.steps) < SHORT:
            tuned = self._expert(dojo, proposals)
            if tuned.fingerprint != own:
                return tuned.fork()
        ways, weights = zip(*proposals.alterations, strict=True)
        for _ in range(self.tries):
            (alter,) = random.choices(ways, weights)
            edit = alter(dojo, random)
            if edit is not None:
                near = _edited(dojo, edit, proposals)
                if near.fingerprint != own and not is_too_long(near, dojo):
                    return near
        return None

    def _expert(self, dojo: Dojo, proposals: Proposals) -> Dojo:
        """What the expert pass makes of a state; remembered, as searches come back to their root."""
        known = self._tuned
        if known is None or not _is_same(known[0], dojo):
            tuned = dojo.fork()
            proposals.expert(tuned.game)
            self._tuned = known = dojo.fork(), tuned
        return known[1]


def _is_same(one: Dojo, other: Dojo) -> bool:
    """Whether two states have one kernel, one machine and one trace."""
    return (one.machine, one.game.initial.text, one.trace.steps) == (
        other.machine,
        other.game.initial.text,
        other.trace.steps,
    )


def _edited(dojo: Dojo, edit: Edit, proposals: Proposals) -> Dojo:
    """The state that an edit leads to."""
    near = dojo.fork()
    skipped = near.become(edit.moves)
    if edit.is_start:
        proposals.expert(near.game)
    elif skipped:
        proposals.mend(Player(near.game), skipped, edit.spared)
    return near
