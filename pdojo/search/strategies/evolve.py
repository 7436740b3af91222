"""Regularised evolution: a population of traces; a child combines two of them or alters one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from pdojo.search.contract.neighbourhood import Listing, Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import Parents, StrategyKind
from pdojo.search.engine.executor import seed_of
from pdojo.search.engine.restarts import taken_up
from pdojo.search.strategies.batch_proposer import Around, BatchStrategy, Draw
from pdojo.search.strategies.states import NodeTable, dump, load, nodes_of


@dataclass(eq=False)
class Evolve(BatchStrategy):
    """The fastest of a few random members has a child; the oldest member dies (Real et al., 2019).

    Members age, so that a luckily measured program does not stay for ever. A child is a neighbour of its parent, or of
    a cross of its parent with another member. A population without progress is replaced: the next one begins with the
    root, and every third one with the champions of the earlier ones.
    """

    name = "evolve"

    population: int = 24
    """Number of members; the first ones are random descendants of the root."""
    tournament: int = 5
    """Number of members drawn, of which the fastest becomes a parent."""
    crossover: float = 0.4
    """Probability that a child has two parents."""
    patience: int = 100
    """Number of programs without progress before a population is replaced."""
    polish: float = 0.5
    """Probability of proposing a nearest neighbour of the champion, once the population is complete."""

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin the population with the root."""
        self.begin(root, neighbourhood, random)
        self._root = self._champion = root
        self.champions: list[Node] = []
        """The best of each replaced population."""
        self.members: deque[Node] = deque([root])
        self._waited = 0
        self._around: Around | None = None

    def tell(self, node: Node) -> None:
        """Add the child as the youngest member, unless it failed."""
        self._proposer.told(node)
        if node.evaluation.is_ok:
            self.members.append(node)
            while len(self.members) > self.population:
                self.members.popleft()
        self._waited += 1
        if node.cost < self._champion.cost:
            self._champion, self._waited = node, 0
        elif self._waited >= self.patience:
            self._begin_again()

    def save(self) -> bytes:
        """The population, the champions, and the number of the champion's proposed neighbours."""
        table = NodeTable()
        around = self._around
        state = {
            "members": [table.index(node) for node in self.members],
            "champions": [table.index(node) for node in self.champions],
            "champion": table.index(self._champion),
            "waited": self._waited,
            "around": None if around is None else [table.index(around.node), *around.place],
        }
        return dump({**state, "nodes": table.rows}, self._random)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        known = nodes_of(state["nodes"], nodes)
        self._proposer.seen.restore(nodes.values())
        self.members = deque(known[k] for k in state["members"])
        self.champions = [known[k] for k in state["champions"]]
        self._champion, self._waited = known[state["champion"]], state["waited"]
        if state["around"] is not None:
            number, *place = state["around"]
            self._around = Around(known[number], self._neighbourhood, *place)

    def _begin_again(self) -> None:
        """Begin another population from the root or from the champions."""
        self.champions.append(self._champion)
        self.members = deque(taken_up(self.champions) or [self._root])
        self._champion, self._waited = min(self.members, key=lambda member: member.cost), 0

    def _draw(self) -> Draw:
        return self._polished() or self._born()

    def _polished(self) -> Callable[[], Proposal | None] | None:
        """A proposal of the champion's next nearest neighbour, with probability `polish`; None otherwise."""
        listing = self._neighbourhood
        if not isinstance(listing, Listing) or len(self.members) < self.population:
            return None
        if self._random.random() >= self.polish:
            return None
        if self._around is None or self._around.node is not self._champion:
            self._around = Around(self._champion, listing, seed_of(self._random), self._proposer.seen.latest)
        return None if self._around.is_exhausted else self._around.next

    def _born(self) -> Parents:
        first = self._select()
        two = len(self.members) > 1 and self._random.random() < self.crossover
        return Parents(first, self._select() if two else None, seed_of(self._random))

    def _select(self) -> Node:
        # The first parents are drawn uniformly; otherwise all members would descend from the first fast one.
        drawn = self.tournament if len(self.members) >= self.population else 1
        return min((self._random.choice(self.members) for _ in range(drawn)), key=lambda member: member.cost)


STRATEGY = StrategyKind(lambda _steps, _options: Evolve())
