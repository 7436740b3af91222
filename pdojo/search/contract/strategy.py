"""The protocol of strategies: they propose states to evaluate and learn their costs, without clocks and files.

`pdojo.search.engine.search` calls `start` once. Then it repeatedly asks for a batch of proposals, evaluates the new
programs, and tells the whole batch in the order of the proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.transforms.game import Game

MOST_PROPOSERS = 1024
"""Greatest number of proposing processes."""


@dataclass(frozen=True)
class Parents:
    """The parents of a child, and its seed. Equal orders give the same child in every process."""

    first: Node
    second: Node | None
    """The other parent of a cross; None for a neighbour of the first."""
    seed: int
    evaluations: int = 0
    """Number of the latest evaluation, on which the neighbourhood may depend (`Scheduled`)."""


class ProposalExecutor(Protocol):
    """Makes children."""

    def of(self, wanted: Iterable[Parents]) -> Iterator[Game | None]:
        """The children, in order; None for parents without a child."""
        ...

    def rest(self) -> None:
        """Return when no child is being made. Children that were not taken yet are given up."""
        ...


class Strategy(Protocol):
    """Chooses the next states to evaluate, only from the costs told and its random numbers."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything except the name and the arguments of `start` that proposals depend on; stored with a run."""
        ...

    @property
    def batch(self) -> int:
        """Number of proposals before `tell` is called; 1 if each step needs the last cost."""
        ...

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin a new search. The root is already evaluated; its cost is infinite if it failed.

        All random numbers come from `random`.
        """
        ...

    def ask(self) -> Proposal | None:
        """The next state to evaluate; None if the strategy needs the costs of earlier proposals first.

        None as the first answer of a batch ends the search. A state whose program is known is allowed: it does not
        count, and `tell` receives the known cost.
        """
        ...

    def tell(self, node: Node) -> None:
        """Receive the result of a proposal, in the order of `ask`; a failed one has infinite cost.

        `node.parent` is the proposal's parent. An incumbent may fail later: `node.cost` then becomes infinite without
        notice. At the end of a search, only part of the last batch may be asked for.
        """
        ...


@runtime_checkable
class Saved(Strategy, Protocol):
    """A strategy with a saved state, so that an interrupted search need not propose everything again."""

    def save(self) -> bytes:
        """The state after a whole batch was told, including random numbers; it determines everything later."""
        ...

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`, after `start`; `nodes` are all programs told before, by number."""
        ...


class OutdatedState(Exception):
    """Raised if a state was saved by other code, whose proposals would differ."""


@runtime_checkable
class Breeder(Strategy, Protocol):
    """A strategy that names the parents of its proposals, so that several processes can make a batch's children."""

    def breed(self, children: ProposalExecutor) -> None:
        """Take all children from an executor. Called after `start`; without it, this process makes them."""
        ...


StrategyOptions: TypeAlias = Mapping[str, Any]
"""Options of a strategy, keyed by name."""


@dataclass(frozen=True)
class StrategyKind:
    """A strategy by name: a module of `pdojo.search.strategies`, or an entry point of the group `pdojo.strategies`."""

    make: Callable[[int, StrategyOptions | None], Strategy]
    """Makes a strategy for about so many evaluations; options of None are the defaults.

    Raises UsageError for wrong options, or if a package is missing.
    """
    parse: Callable[[str], StrategyOptions] | None = None
    """Reads options from a command line (`NAME=VALUE,...`), or raises UsageError; None if the strategy has none."""


def check_proposers(searching: Strategy, proposers: int) -> None:
    """Raise UsageError for an impossible number of proposing processes."""
    if type(proposers) is not int or not 1 <= proposers <= MOST_PROPOSERS:
        raise UsageError(f"1 to {MOST_PROPOSERS} processes propose, not {proposers!r}")
    if proposers > 1 and not isinstance(searching, Breeder):
        raise UsageError(f"the strategy '{searching.name}' proposes one program at a time, so leave out the proposers")
