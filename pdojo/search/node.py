"""Nodes: what a search knows of the states that it evaluated, and the states themselves as long as memory is cheap."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

from pdojo.dialect.analysis.program import Program
from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import Candidate, Evaluation
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace

MOST_STATES = 1024
"""States that are kept as they are; older ones are played again where they are asked for, at some 1 ms a move."""
MOST_NODES = 400_000
"""Scopes and statements of the programs that they hold, at some 3 KiB each: about 1.2 GiB."""


class States:
    """The states of nodes. A state holds some of the programs on its way (`History`), so only a bounded number is kept.

    What it shares with the state that it was made from counts once. The state that was used last is kept whatever it
    holds.
    """

    def __init__(self, root: Dojo, most_states: int = MOST_STATES, most_nodes: int = MOST_NODES) -> None:
        self._root = root.fork()
        self._most_states = most_states
        self._most_nodes = most_nodes
        self._states: OrderedDict[Node, Dojo] = OrderedDict()
        self._held: dict[Node, list[Program]] = {}
        """The programs that count as theirs."""
        self._holders: Counter[Program] = Counter()
        """How many states hold each program."""
        self._nodes = 0

    def put(self, node: Node, dojo: Dojo) -> None:
        """Keep the state of a node; the caller must not change it any more."""
        # Programs may have been made again since it was counted.
        self._drop(node)
        self._states[node] = dojo
        self._held[node] = list(dojo.game.programs.kept())
        for program in self._held[node]:
            self._nodes += 0 if program in self._holders else _size(program)
            self._holders[program] += 1
        while len(self._states) > 1 and (len(self._states) > self._most_states or self._nodes > self._most_nodes):
            self._drop(next(iter(self._states)))

    def _drop(self, node: Node) -> None:
        self._states.pop(node, None)
        for program in self._held.pop(node, ()):
            self._holders[program] -= 1
            if not self._holders[program]:
                del self._holders[program]
                self._nodes -= _size(program)

    def of(self, node: Node) -> Dojo:
        """The state of a node, which must not be changed."""
        found = self._states.get(node)
        if found is None:
            # What a trace has in common with its parent's is not played again.
            nearest = self._states.get(node.parent) if node.parent is not None else None
            found = (nearest or self._root).fork()
            skipped = found.become(node.moves)
            assert not skipped, f"a trace does not apply any more: {skipped[0]}"
        self.put(node, found)
        return found


def _size(program: Program) -> int:
    return len(program.nest.scopes) + len(program.nest.leaves)


@dataclass
class Verdict:
    """What is known of a program, for all nodes that have it: the best so far may turn out to be wrong later."""

    evaluation: Evaluation


@dataclass(frozen=True, eq=False)
class Node:
    """A state that was evaluated. Nodes are compared by identity."""

    number: int
    """Of the evaluation, in this search: 0 is the root. States with one program share the number of its evaluation."""
    moves: tuple[Move, ...]
    """The trace from the plain kernel, by identifier."""
    fingerprint: str
    """Of the program."""
    parent: Node | None
    """The state that this one was proposed from; None for the root."""
    verdict: Verdict
    states: States = field(repr=False)

    @property
    def evaluation(self) -> Evaluation:
        """What the strategy is told: the cost of the program, or its failure, also where that comes later."""
        return self.verdict.evaluation

    @property
    def cost(self) -> float:
        """The cost; infinite where the program failed."""
        return self.evaluation.cost

    @property
    def dojo(self) -> Dojo:
        """The state. Not to be changed: fork it."""
        return self.states.of(self)

    @property
    def trace(self) -> Trace:
        """The trace, as people read it and by identifier."""
        return self.dojo.trace


@dataclass(frozen=True)
class Proposal:
    """A state to evaluate. Who proposes it does not change it any more."""

    dojo: Dojo
    parent: Node | None
    """The state that it was made from; None for the one that a search starts from."""

    @cached_property
    def candidate(self) -> Candidate:
        """Its program."""
        return Candidate.of(self.dojo)
