"""Proposals for the heuristic neighbourhood by a machine's backend.

Other packages add proposals by entry points of the group `pdojo.proposals`.
"""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.plugins import PROPOSALS, find, plugins
from pdojo.errors import PluginError, UsageError
from pdojo.search.neighbourhoods.proposals import Proposals

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
