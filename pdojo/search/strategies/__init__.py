"""Strategies propose states to evaluate and learn their costs; they use neither clock nor files.

The driver (`pdojo.search.engine.search`) calls `start` once. Then it repeatedly asks for a batch of proposals,
evaluates the new programs, and tells the whole batch in the order of the proposals.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol, runtime_checkable

from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.names import STRATEGIES
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.engine.executor import ProposalExecutor
from pdojo.search.neighbourhoods import Neighbourhood
from pdojo.search.perfllm.settings import Settings

__all__ = ["Breeder", "Node", "Proposal", "Saved", "Strategy", "check_proposers", "strategy"]

MOST_PROPOSERS = 1024
"""Most processes that propose."""


class Strategy(Protocol):
    """Chooses the next states to evaluate, only from the costs told and its random numbers."""

    @property
    def name(self) -> str:
        """One word, for command lines, tables and the database."""
        ...

    @property
    def settings(self) -> JSON:
        """Everything that proposals depend on beside the name and the arguments of `start`; stored with a run."""
        ...

    @property
    def batch(self) -> int:
        """Number of proposals before the first of them is told; 1 if each step needs the last cost."""
        ...

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin a new search. The root is evaluated; its cost is infinite if it failed.

        All random numbers come from `random`.
        """
        ...

    def ask(self) -> Proposal | None:
        """The next state to evaluate; None if the strategy needs the costs of earlier proposals first.

        None as the first answer of a batch ends the search. States whose program is known are allowed: they do not
        count, and the known cost is told.
        """
        ...

    def tell(self, node: Node) -> None:
        """Receive the result of a proposal, in the order of `ask`; a failed one has infinite cost.

        `node.parent` is the proposal's parent. An incumbent may fail later: `node.cost` then becomes infinite without
        notice. At the end of a search only a part of the last batch may be asked for.
        """
        ...


@runtime_checkable
class Saved(Strategy, Protocol):
    """A strategy whose state is saved: an interrupted search restores it instead of proposing everything again."""

    def save(self) -> bytes:
        """The state when a whole batch was told, random numbers included: it determines all that comes later."""
        ...

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Become the strategy that was saved. Called after `start`; `nodes` are all programs told then, by number."""
        ...


@runtime_checkable
class Breeder(Strategy, Protocol):
    """A strategy that says whose children it proposes, so that several processes can make those of a batch."""

    def breed(self, children: ProposalExecutor) -> None:
        """Take all children from there. Called after `start`; without it they are made in this process."""
        ...


def strategy(name: str, steps: int = 1000, agent: Settings | None = None) -> Strategy:
    """The strategy of that name, for about `steps` evaluations, with its default settings.

    `agent` are the hyper-parameters of `perfllm`, None for the default ones. Raises UsageError if there is no such
    strategy, if a package is missing, and for hyper-parameters of another strategy.
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
            from pdojo.search.strategies.model import Model

            return Model()
        case "perfllm":
            from pdojo.search.strategies.perfllm import PerfLLM

            return PerfLLM(steps, agent)
        case _:
            raise UsageError(f"unknown strategy '{name}'; known are {', '.join(STRATEGIES)}")


def check_proposers(searching: Strategy, proposers: int) -> None:
    """Raise UsageError for a number of processes that cannot propose."""
    if type(proposers) is not int or not 1 <= proposers <= MOST_PROPOSERS:
        raise UsageError(f"1 to {MOST_PROPOSERS} processes propose, not {proposers!r}")
    if proposers > 1 and not isinstance(searching, Breeder):
        raise UsageError(f"the strategy '{searching.name}' proposes one program at a time, so leave out the proposers")
