"""Acme's strategy: neighbours of the cheapest program so far."""

from __future__ import annotations

from random import Random

from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import StrategyKind, StrategyOptions


class Descent:
    """Proposes at most `tries` neighbours of the cheapest program."""

    name = "descent"
    batch = 1

    def __init__(self, tries: int) -> None:
        self._tries = self._left = tries

    @property
    def settings(self) -> JSON:
        """The number of tries."""
        return {"tries": self._tries}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin at the root."""
        self._best, self._near, self._random = root, neighbourhood, random
        self._left = self._tries

    def ask(self) -> Proposal | None:
        """A neighbour of the cheapest program."""
        self._left -= 1
        near = None if self._left < 0 else self._near.neighbour(self._best.game, self._random)
        return None if near is None else Proposal(near, self._best)

    def tell(self, node: Node) -> None:
        """Go on from a cheaper program."""
        if node.cost < self._best.cost:
            self._best = node


def _made(steps: int, options: StrategyOptions | None) -> Descent:
    return Descent(steps if options is None else options["tries"])


def _parsed(text: str) -> StrategyOptions:
    name, _, value = text.partition("=")
    if name != "tries" or not value.isdecimal():
        raise UsageError(f"the strategy 'descent' takes tries=N, not '{text}'")
    return {"tries": int(value)}


DESCENT = StrategyKind(_made, _parsed)
