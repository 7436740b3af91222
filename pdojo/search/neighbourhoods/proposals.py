"""Proposals for the heuristic neighbourhood (paper 4.2.1), by a machine's backend.

Other packages add proposals by entry points of the group `pdojo.proposals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.plugins import PROPOSALS, find, plugins
from pdojo.errors import PluginError, UsageError
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.kind import ExpertPass
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.move import Move


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited trace."""

    moves: Sequence[Move]
    """The moves by identifier. Moves that do not apply are skipped, and the trace is mended."""
    spared: str = ""
    """The edited transformation: mending must not restore its old moves."""
    is_start: bool = False
    """True if the expert pass completes the trace."""


Alteration: TypeAlias = Callable[[Game, Random], Edit | None]
"""An edit of a trace; None if the drawn edit is impossible."""


@dataclass(frozen=True)
class Proposals:
    """The proposals for a kind of machine."""

    expert: ExpertPass
    """The pass that makes the first trace."""
    alterations: Sequence[tuple[Alteration, int]]
    """The edits and their relative weights."""
    mend: Callable[[PassBuilder, Sequence[Skipped], str], None]
    """Compensates for skipped moves of an edited trace; the last argument is `Edit.spared`."""


_OWN = {"llvm": "pdojo.search.neighbourhoods.cpu:PROPOSALS"}


def has_proposals(machine: Machine) -> bool:
    """True if there are proposals for the machine."""
    return machine.backend in (*_OWN, *plugins(PROPOSALS, _OWN))


def proposals_for(machine: Machine) -> Proposals:
    """The proposals for a machine. Raises UsageError if there are none, PluginError if its plugin is invalid."""
    found = find(PROPOSALS, machine.backend, _OWN)
    if found is None:
        raise UsageError(
            f"the neighbourhood 'heuristic' has no proposals for {machine.name}, only for CPUs; use 'mutate' or 'edges'"
        )
    if not isinstance(found, Proposals):
        raise PluginError(f"the proposals '{machine.backend}' are a {type(found).__name__}; they must be Proposals")
    return found
