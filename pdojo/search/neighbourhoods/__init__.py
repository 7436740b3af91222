"""Neighbourhoods: from a state to a random one nearby."""

from __future__ import annotations

from random import Random
from typing import Protocol

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON


class Neighbourhood(Protocol):
    """Which states are near a state, and how likely each is."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything that proposals depend on beside the name; stored with a run."""
        ...

    def neighbour(self, dojo: Dojo, random: Random) -> Dojo | None:
        """A state of its own near `dojo`, which is left as it is; None where none was found.

        The same state and the same random numbers give the same neighbour, in every process.
        """
        ...
