"""What a kind of machine contributes to the heuristic neighbourhood (paper 4.2.1): alternatives to a complete trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from pdojo.dialect.machine import Machine
from pdojo.errors import UsageError
from pdojo.search.dojo import Dojo
from pdojo.search.experts.player import Player
from pdojo.search.targets.target import ExpertPass, target_of
from pdojo.transforms.game import Skipped
from pdojo.transforms.move import Move


@dataclass(frozen=True, slots=True)
class Edit:
    """A trace to become instead of the one that there is."""

    moves: Sequence[Move]
    """By identifier. Those that do not apply any more are skipped, and the trace is mended."""
    spared: str = ""
    """The transformation whose moves were edited: mending must not make the old ones again."""
    is_start: bool = False
    """Whether the moves are only the first of a trace, which the expert pass completes."""


Alteration: TypeAlias = Callable[[Dojo, Random], Edit | None]
"""One way to edit a trace; None if it draws an edit that is not possible."""


@dataclass(frozen=True)
class Proposals:
    """The alternatives for a kind of machine."""

    expert: ExpertPass
    """Makes the first trace."""
    alterations: Sequence[tuple[Alteration, int]]
    """The ways to edit a trace, and how often each is taken, relative to the others."""
    mend: Callable[[Player, Sequence[Skipped], str], None]
    """Makes up for moves that an edited trace has lost; the last argument is `Edit.spared`."""


def has_proposals(machine: Machine) -> bool:
    """Whether there are proposals for machines of that kind."""
    return target_of(machine).proposals is not None


def proposals_for(machine: Machine) -> Proposals:
    """The proposals for a machine. Raises UsageError if nobody wrote any for its kind."""
    found = target_of(machine).proposals
    if found is None:
        raise UsageError(
            f"the neighbourhood 'heuristic' has no proposals for {machine.name}, only for CPUs; use 'mutate' or 'edges'"
        )
    return found()
