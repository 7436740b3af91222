"""Regularised evolution: a population of traces; a child combines two of them or alters one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random

from pdojo.search.dojo import Dojo
from pdojo.search.evaluation import JSON
from pdojo.search.neighbourhoods import Listing, Neighbourhood
from pdojo.search.neighbourhoods.crossing import cross
from pdojo.search.node import Node, Proposal
from pdojo.search.restarts import taken_up
from pdojo.search.strategies.seen import Seen


class Evolve:
    """The fastest of a few random members has a child; the oldest member dies (Real et al., 2019).

    Members age, so that a luckily measured program does not stay for ever. A child is a neighbour of its parent, or of
    a cross of its parent with another member. A population without progress is replaced: the next one begins with the
    root, every third one with the champions of the earlier ones.
    """

    name = "evolve"

    def __init__(
        self,
        batch: int = 8,
        population: int = 24,
        tournament: int = 5,
        crossover: float = 0.4,
        patience: int = 100,
        polish: float = 0.5,
        tries: int = 16,
    ) -> None:
        self.batch = batch
        self.population = population
        """Number of members; the first ones are random descendants of the root."""
        self.tournament = tournament
        """Number of members of which the fastest becomes a parent."""
        self.crossover = crossover
        """Probability that a child has two parents."""
        self.patience = patience
        """Number of programs without progress after which a population is replaced."""
        self.polish = polish
        """Probability of proposing a nearest neighbour of the champion, once the population is complete."""
        self.tries = tries
        """Most children drawn for one proposal."""

    @property
    def settings(self) -> JSON:
        """The arguments."""
        return {
            "batch": self.batch,
            "population": self.population,
            "tournament": self.tournament,
            "crossover": self.crossover,
            "patience": self.patience,
            "polish": self.polish,
            "tries": self.tries,
        }

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin the population with the root."""
        self._neighbourhood = neighbourhood
        self._random = random
        self._seen = Seen(root)
        self._root = self._champion = root
        self.champions: list[Node] = []
        """The best of each replaced population."""
        self.members: deque[Node] = deque([root])
        self._waited = 0
        self._around: tuple[Node, Iterator[Dojo]] | None = None

    def ask(self) -> Proposal | None:
        """A child of a member."""
        return self._seen.fresh(self._child, self.tries)

    def tell(self, node: Node) -> None:
        """Add the child as the youngest member, unless it failed."""
        self._seen.told(node)
        if node.evaluation.is_ok:
            self.members.append(node)
            while len(self.members) > self.population:
                self.members.popleft()
        self._waited += 1
        if node.cost < self._champion.cost:
            self._champion, self._waited = node, 0
        elif self._waited >= self.patience:
            self._begin_again()

    def _begin_again(self) -> None:
        """Begin another population from the root or from the champions."""
        self.champions.append(self._champion)
        self.members = deque(taken_up(self.champions) or [self._root])
        self._champion, self._waited = min(self.members, key=lambda member: member.cost), 0

    def _child(self) -> Proposal | None:
        near = self._polished()
        return self._born() if near is None else near

    def _polished(self) -> Proposal | None:
        """The champion's next nearest neighbour, with probability `polish`; None otherwise."""
        listing = self._neighbourhood
        if not isinstance(listing, Listing) or len(self.members) < self.population:
            return None
        if self._random.random() >= self.polish:
            return None
        if self._around is None or self._around[0] is not self._champion:
            self._around = self._champion, listing.nearest(self._champion.dojo, self._random)
        near = next(self._around[1], None)
        return None if near is None else Proposal(near, self._champion)

    def _born(self) -> Proposal | None:
        parent = self._select()
        two = len(self.members) > 1 and self._random.random() < self.crossover
        other = self._select() if two else None
        return offspring(parent, other, self._neighbourhood, self._seen, self._random)

    def _select(self) -> Node:
        # The first parents are drawn uniformly: else all members would descend from the first fast one.
        drawn = self.tournament if len(self.members) >= self.population else 1
        return min((self._random.choice(self.members) for _ in range(drawn)), key=lambda member: member.cost)


def offspring(
    parent: Node, other: Node | None, neighbourhood: Neighbourhood, seen: Seen, random: Random
) -> Proposal | None:
    """A neighbour of the parent or of its cross with `other`; half of the time the cross itself if it is new.

    The moves of a cross are made as far as they apply.
    """
    base: Dojo = parent.dojo
    if other is not None:
        base = base.fork()
        base.become(cross(parent.moves, other.moves, random))
        crossed = Proposal(base, parent)
        if crossed not in seen and random.random() < 0.5:
            return crossed
    near = neighbourhood.neighbour(base, random)
    return None if near is None else Proposal(near, parent)
