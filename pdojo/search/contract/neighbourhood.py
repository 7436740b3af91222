"""The protocol of neighbourhoods, which draw random states near a state."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Protocol, runtime_checkable

from pdojo.search.contract.evaluation import JSON
from pdojo.transforms.game import Game


class Neighbourhood(Protocol):
    """Draws random neighbours of states."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything except the name that proposals depend on; stored with a run."""
        ...

    def neighbour(self, game: Game, random: Random) -> Game | None:
        """A new state near `game`, which stays unchanged; None if none was found.

        The same state and the same random numbers give the same neighbour in every process.
        """
        ...


@runtime_checkable
class Scheduled(Neighbourhood, Protocol):
    """A neighbourhood that draws differently in the course of a search."""

    def after(self, evaluations: int) -> Neighbourhood:
        """The neighbourhood after so many evaluations."""
        ...


def near_after(near: Neighbourhood, evaluations: int) -> Neighbourhood:
    """A neighbourhood after so many evaluations of a search."""
    return near.after(evaluations) if isinstance(near, Scheduled) else near


@runtime_checkable
class Listing(Protocol):
    """A neighbourhood that can list the nearest neighbours."""

    def nearest(self, game: Game, random: Random) -> Iterator[Game]:
        """The nearest neighbours in random order, made lazily; some may repeat."""
        ...
