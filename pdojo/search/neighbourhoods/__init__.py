"""Neighbourhoods: random states near a state."""

from __future__ import annotations

from pdojo.errors import UsageError
from pdojo.names import NEIGHBOURHOODS
from pdojo.search.contract.neighbourhood import Neighbourhood


def neighbourhood(name: str) -> Neighbourhood:
    """The neighbourhood with this name. Raises UsageError if there is none."""
    match name:
        case "edges":
            from pdojo.search.neighbourhoods.edges import Edges

            return Edges()
        case "mutate":
            from pdojo.search.neighbourhoods.mutate import Mutate

            return Mutate()
        case "heuristic":
            from pdojo.search.neighbourhoods.heuristic import Heuristic

            return Heuristic()
        case _:
            raise UsageError(f"unknown neighbourhood '{name}'; known are {', '.join(NEIGHBOURHOODS)}")
