"""Strategies: which state is changed next. They ask for evaluations and are told costs; they know no clock and no file.

The driver (`pdojo.search.driver`) calls `start` once. Then it asks for a batch of proposals, evaluates those programs
that are new, and tells all of the batch in the order in which they were proposed, again and again.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from pdojo.errors import UsageError
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.node import Node, Proposal

__all__ = ["STRATEGIES", "Node", "Proposal", "Strategy", "strategy"]

STRATEGIES = ("sample", "anneal", "evolve", "elites", "model")
"""Names of the strategies."""


class Strategy(Protocol):
    """Decides what is evaluated next, from nothing but the costs that it was told and its random numbers."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything that proposals depend on beside the name and what `start` is given; stored with a run."""
        ...

    @property
    def batch(self) -> int:
        """Proposals that are asked for before the first of them is told: 1 if each step needs the last cost."""
        ...

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin a search, whatever was before. The root is evaluated; it may have failed, and its cost be infinite.

        Everything random is drawn from `random`.
        """
        ...

    def ask(self) -> Proposal | None:
        """The next state to evaluate; None if there is none before the costs of those asked for are told.

        None as the first answer of a batch ends the search. States that lead to a program evaluated before are
        welcome: they cost nothing and do not count, and what is told is the cost known.
        """
        ...

    def tell(self, node: Node) -> None:
        """What became of a proposal. Called for each in the order of `ask`; a failed one has infinite cost.

        `node.parent` is the proposal's parent. What was told to have a cost may fail later, as the best:
        then `node.cost` is infinite from there on, without another word.
        At the end of a search the last batch may be asked for in part.
        """
        ...


def strategy(name: str, steps: int = 1000) -> Strategy:
    """The strategy of that name with its usual settings, for a search that evaluates about so many programs.

    Raises UsageError if there is none.
    """
    match name:
        case "sample":
            from pdojo.search.strategies.sample import Sample

            return Sample()
        case "anneal":
            from pdojo.search.strategies.anneal import Anneal

            return Anneal(steps)
        case "evolve":
            from pdojo.search.strategies.evolve import Evolve

            return Evolve()
        case "elites":
            from pdojo.search.strategies.elites import Elites

            return Elites()
        case "model":
            from pdojo.search.strategies.model import Model

            return Model()
        case _:
            raise UsageError(f"unknown strategy '{name}'; known are {', '.join(STRATEGIES)}")
