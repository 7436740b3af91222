"""Strategies propose states to evaluate and learn their costs; they use neither clocks nor files.

The driver (`pdojo.search.engine.search`) calls `start` once. Then it repeatedly asks for a batch of proposals,
evaluates the new programs, and tells the whole batch in the order of the proposals.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol, runtime_checkable

from pdojo.errors import UsageError
from pdojo.perfllm.settings import Settings
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.names import STRATEGIES
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.engine.executor import ProposalExecutor
from pdojo.search.neighbourhoods import Neighbourhood

__all__ = ["Breeder", "Node", "Proposal", "Saved", "Strategy", "check_proposers", "strategy"]

MOST_PROPOSERS = 1024
"""Greatest number of proposing processes."""


class Strategy(Protocol):
    """Chooses the next states to evaluate, only from the costs told and its random numbers."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything, besides the name and the arguments of `start`, that proposals depend on; stored with a run."""
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


@runtime_checkable
class Breeder(Strategy, Protocol):
    """A strategy that names the parents of its proposals, so that several processes can make a batch's children."""

    def breed(self, children: ProposalExecutor) -> None:
        """Take all children from an executor. Called after `start`; without it, this process makes them."""
        ...


def strategy(name: str, steps: int = 1000, agent: Settings | None = None) -> Strategy:
    """The strategy with this name, for about `steps` evaluations, with its default settings.

    `agent` are the hyper-parameters of `perfllm`, None for the defaults. Raises UsageError if there is no such
    strategy, if a package is missing, or if `agent` is given for another strategy.
    """
    if agent is not None and name != "perfllm":
        raise UsageError(f"the strategy '{name}' has no agent; only 'perfllm' has")
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
            from pdojo.search.strategies.model import ModelStrategy

            return ModelStrategy()
        case "perfllm":
            from pdojo.perfllm.strategy import PerfLLM

            return PerfLLM(steps, agent)
        case _:
            raise UsageError(f"unknown strategy '{name}'; known are {', '.join(STRATEGIES)}")


def check_proposers(searching: Strategy, proposers: int) -> None:
    """Raise UsageError for an impossible number of proposing processes."""
    if type(proposers) is not int or not 1 <= proposers <= MOST_PROPOSERS:
        raise UsageError(f"1 to {MOST_PROPOSERS} processes propose, not {proposers!r}")
    if proposers > 1 and not isinstance(searching, Breeder):
        raise UsageError(f"the strategy '{searching.name}' proposes one program at a time, so leave out the proposers")
