"""MAP-Elites (Mouret and Clune, 2015): the fastest program of each kind stays and has children."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass
from random import Random

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node
from pdojo.search.contract.strategy import Parents, StrategyKind
from pdojo.search.engine.executor import seed_of
from pdojo.search.strategies.batch_proposer import Around, BatchStrategy, Draw
from pdojo.search.strategies.states import NodeTable, dump, load, nodes_of

PARTS, WHOLE = "split_reduction", "merge_reduction"
"""The moves that make and merge partial sums."""


@dataclass(frozen=True)
class Elite:
    """The best program of its kind."""

    node: Node
    length: float
    """Factor on the cost, which makes longer programs count as slightly slower."""
    near: Around
    """Its nearest neighbours that are not proposed yet."""

    @property
    def worth(self) -> float:
        """Cost times length factor; less is better."""
        return self.node.cost * self.length


@dataclass(eq=False)
class Elites(BatchStrategy):
    """The fastest program of each kind stays, and has children even if other kinds are faster.

    Programs of one kind use the same features: mappings of scopes, registers, partial sums. A feature that only pays
    together with a second one survives until the second one appears; a population of the fastest programs would lose
    it. A child is a neighbour of its parent, or of a cross of its parent with another elite.
    """

    name = "elites"

    greed: float = 0.5
    """Probability that the fastest elite is the parent; otherwise the parent is drawn uniformly."""
    crossover: float = 0.3
    """Probability that a child has two parents."""
    polish: float = 0.5
    """Probability of proposing the parent's next nearest neighbour, if there is one left."""
    parsimony: float = 0.02
    """Relative penalty for each statement when elites are compared."""

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Make the root the first elite."""
        self.begin(root, neighbourhood, random)
        self._best = self._elite(root)
        self.elites: dict[frozenset[str], Elite] = {kind_of(root): self._best}
        """The elites, keyed by kind."""

    def tell(self, node: Node) -> None:
        """Replace the elite of the same kind if the child is better."""
        self._proposer.told(node)
        if not node.evaluation.is_ok:
            return
        kind = kind_of(node)
        present = self.elites.get(kind)
        elite = self._elite(node)
        if present is None or elite.worth < present.worth:
            self.elites[kind] = elite
        if node.cost < self._best.node.cost:
            self._best = elite

    def save(self) -> bytes:
        """The elites, keyed by kind, and the number of proposed neighbours of each."""
        table = NodeTable()

        def stored(elite: Elite) -> list[float]:
            return [table.index(elite.node), elite.length, *elite.near.place]

        # The fastest is usually also an elite, and then shares its neighbours.
        same = next((k for k, each in enumerate(self.elites.values()) if each is self._best), None)
        elites = [[sorted(kind), *stored(elite)] for kind, elite in self.elites.items()]
        state = {"elites": elites, "best": stored(self._best), "same": same}
        return dump({**state, "nodes": table.rows}, self._random)

    def restore(self, data: bytes, nodes: abc.Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        known = nodes_of(state["nodes"], nodes)
        self._proposer.seen.restore(nodes.values())

        def restored(number: int, length: float, *place: int) -> Elite:
            return Elite(known[number], length, Around(known[number], self._neighbourhood, *place))

        self.elites = {frozenset(kind): restored(*elite) for kind, *elite in state["elites"]}
        same = state["same"]
        self._best = restored(*state["best"]) if same is None else dict(enumerate(self.elites.values()))[same]

    def _elite(self, node: Node) -> Elite:
        statements = len(node.game.program.nest.leaves)
        near = Around(node, self._neighbourhood, seed_of(self._random), self._proposer.seen.latest)
        return Elite(node, 1 + self.parsimony * statements, near)

    def _draw(self) -> Draw:
        elite = self._fastest() if self._random.random() < self.greed else self._any()
        if self._random.random() < self.polish and not elite.near.is_exhausted:
            return elite.near.next
        two = len(self.elites) > 1 and self._random.random() < self.crossover
        return Parents(elite.node, self._any().node if two else None, seed_of(self._random))

    def _fastest(self) -> Elite:
        """The elite of least cost, regardless of its length, that has not failed."""
        if not self._best.node.evaluation.is_ok:
            self._best = min(self.elites.values(), key=lambda elite: elite.node.cost)
        return self._best

    def _any(self) -> Elite:
        alive = [elite for elite in self.elites.values() if elite.node.evaluation.is_ok]
        return self._random.choice(alive or list(self.elites.values()))


def kind_of(node: Node) -> frozenset[str]:
    """The features that a program uses: mappings of scopes, registers, partial sums."""
    nest = node.game.program.nest
    mappings = {scope.mapping.name.lower() for scope in nest.scopes if scope.mapping is not Mapping.SEQUENTIAL}
    memories = {access.array.buffer.memory.value for leaf in nest.leaves for access in leaf.accesses}
    names = [move.name for move in node.moves]
    sums = {PARTS} if names.count(PARTS) > names.count(WHOLE) else set[str]()
    return frozenset(mappings | (memories & {Memory.REGISTER.value}) | sums)


STRATEGY = StrategyKind(lambda _steps, _options: Elites())
