"""Nodes: evaluated states, with a bounded cache of their programs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

from pdojo.dialect.flow.program import Program
from pdojo.search.contract.evaluation import Candidate, Evaluation
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace

MOST_STATES = 1024
"""Greatest number of cached states; others are replayed on demand, at about 1 ms per move."""
MOST_NODES = 400_000
"""Greatest number of scopes and statements of the cached programs, at about 3 KiB each: about 1.2 GiB."""


class States:
    """The states of nodes. A state keeps some programs of its trace (`History`), so only a bounded number is cached.

    Programs that several states share count once. The last used state is always kept.
    """

    def __init__(self, root: Game, most_states: int = MOST_STATES, most_nodes: int = MOST_NODES) -> None:
        self._root = root.fork()
        self._most_states = most_states
        self._most_nodes = most_nodes
        self._states: OrderedDict[Node, Game] = OrderedDict()
        self._held: dict[Node, list[Program]] = {}
        """The programs that each cached state keeps."""
        self._holders: Counter[Program] = Counter()
        """Number of states that keep each program."""
        self._nodes = 0

    def put(self, node: Node, game: Game) -> None:
        """Cache the state of a node; the caller must not change it afterwards."""
        # The state may keep other programs than when it was cached.
        self._drop(node)
        self._states[node] = game
        self._held[node] = list(game.programs.kept())
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

    def of(self, node: Node) -> Game:
        """The state of a node; do not change it."""
        found = self._states.get(node)
        if found is None:
            # The common prefix with the parent's trace is not replayed.
            nearest = self._states.get(node.parent) if node.parent is not None else None
            found = (nearest or self._root).fork()
            skipped = found.become(node.moves)
            assert not skipped, f"a trace does not apply any more: {skipped[0]}"
        self.put(node, found)
        return found


def _size(program: Program) -> int:
    return len(program.nest.scopes) + len(program.nest.leaves)


@dataclass
class SharedEvaluation:
    """The evaluation of a program, shared by all its nodes: an incumbent may fail later."""

    evaluation: Evaluation


@dataclass(frozen=True, eq=False)
class Node:
    """An evaluated state. Nodes are compared by identity."""

    number: int
    """Number of the program's evaluation in this search; 0 is the root. States with equal programs share it."""
    moves: tuple[Move, ...]
    """The trace from the plain kernel, located by identifier."""
    fingerprint: str
    """The program's fingerprint."""
    parent: Node | None
    """The state that this one was proposed from; None for the root."""
    verdict: SharedEvaluation
    states: States = field(repr=False)

    @property
    def evaluation(self) -> Evaluation:
        """The program's cost or failure; a cost may turn into a failure later."""
        return self.verdict.evaluation

    @property
    def cost(self) -> float:
        """The cost; infinite after a failure."""
        return self.evaluation.cost

    @property
    def game(self) -> Game:
        """The state; fork it before changing it."""
        return self.states.of(self)

    @property
    def trace(self) -> Trace:
        """The trace, in readable form and by identifier."""
        return self.game.trace


@dataclass(frozen=True)
class Proposal:
    """A state to evaluate. The proposer must not change it afterwards."""

    game: Game
    parent: Node | None
    """The state from which it was made; None for the root."""

    @cached_property
    def candidate(self) -> Candidate:
        """The state's program."""
        return Candidate.of(self.game)

    @property
    def trace(self) -> Trace:
        """The state's trace."""
        return self.game.trace


@dataclass(frozen=True)
class LoggedProposal:
    """A proposal of a log, whose moves are not replayed."""

    candidate: Candidate
    trace: Trace
    parent: Node | None
