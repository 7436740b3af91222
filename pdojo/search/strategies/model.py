"""A learned cost model that filters candidates before evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from random import Random
from typing import TYPE_CHECKING, Any

from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.contract.neighbourhood import Neighbourhood
from pdojo.search.contract.node import Node, Proposal
from pdojo.search.contract.strategy import ProposalExecutor, StrategyKind
from pdojo.search.features.program import features
from pdojo.search.features.structure import VERSION
from pdojo.search.strategies.sample import LOWEST, Sample
from pdojo.search.strategies.states import dump, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAILED = 3.0
"""Logarithm of the assumed cost of a failed program, relative to the slowest correct one."""
MOST_LEAVES = 8
"""Greatest number of leaves of each tree: small, as a search has hundreds of samples, not millions."""


@dataclass(eq=False)
class ModelStrategy:
    """Gradient boosting on features of programs predicts costs; only the predicted best are evaluated.

    A batch is the predicted best of several times as many candidates, plus some random candidates, which keep the model
    accurate. Candidates are drawn as in `sample`, with a higher power. Until enough programs are known, proposals are
    drawn as in `sample`.
    """

    name = "model"

    batch: int = 8
    pool: int = 4
    """Number of candidates per evaluated program."""
    random_share: float = 0.25
    """Fraction of a batch chosen at random instead of by the model."""
    enough: int = 24
    """Number of known programs from which the model is used."""
    power: float = 2.0
    """Exponent of 1 / cost in the probability of a parent."""
    trees: int = 60

    def __post_init__(self) -> None:
        import_learner()

    @property
    def settings(self) -> JSON:
        """The arguments and the version of the features."""
        return {**asdict(self), "features": VERSION}

    def start(self, root: Node, neighbourhood: Neighbourhood, random: Random) -> None:
        """Begin with the root as the only sample."""
        self._random = random
        self._sample = Sample(self.batch, power=self.power)
        self._sample.start(root, neighbourhood, random)
        self._seed = random.randrange(2**32)
        self._rows: list[list[float]] = []
        self._known: list[Node] = []
        self._numbers: set[int] = set()
        self._planned: list[Proposal] = []
        self._is_fresh = True
        """True if `tell` has received all costs of the last batch."""
        self._learn(root)

    def breed(self, children: ProposalExecutor) -> None:
        """Take children from an executor."""
        self._sample.breed(children)

    def ask(self) -> Proposal | None:
        """The next candidate of the batch."""
        if len(self._rows) < self.enough:
            return self._sample.ask()
        if self._is_fresh:
            self._planned = self._plan()
            self._is_fresh = False
        return self._planned.pop(0) if self._planned else None

    def tell(self, node: Node) -> None:
        """Add a sample for the model."""
        self._sample.tell(node)
        self._learn(node)
        self._is_fresh = True

    def save(self) -> bytes:
        """The samples of the model, and the parents."""
        numbers = [node.number for node in self._known]
        state = {"sample": self._sample.save().decode(), "seed": self._seed, "known": numbers, "rows": self._rows}
        return dump(state, self._random)

    def restore(self, data: bytes, nodes: Mapping[int, Node]) -> None:
        """Restore the strategy from `save`."""
        state = load(data, self._random)
        self._sample.restore(state["sample"].encode(), nodes)
        self._seed, self._rows = state["seed"], state["rows"]
        self._known = [nodes[number] for number in state["known"]]
        self._numbers = set(state["known"])

    def _learn(self, node: Node) -> None:
        if node.number not in self._numbers:
            self._numbers.add(node.number)
            self._rows.append(features(node.game.program.nest, node.game.machine))
            self._known.append(node)

    def _plan(self) -> list[Proposal]:
        """The candidates of a batch, best first, then the random ones."""
        pool: list[Proposal] = []
        self._sample.draw_at_once(self.batch * self.pool)
        while len(pool) < self.batch * self.pool:
            proposal = self._sample.ask()
            if proposal is None:
                break
            pool.append(proposal)
        at_random = min(len(pool), round(self.batch * self.random_share))
        chosen, rest = pool[:at_random], pool[at_random:]
        predicted = self._predict([features(p.game.program.nest, p.game.machine) for p in rest])
        ranked = sorted(range(len(rest)), key=lambda k: (predicted[k], k))
        best = [rest[k] for k in ranked[: self.batch - at_random]]
        for k in ranked[self.batch - at_random :]:
            self._sample.forget(rest[k])
        return [*best, *chosen]

    def _predict(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Predicted targets of programs by a model fitted to all samples."""
        if not rows:
            return []
        learner, limits = import_learner()
        with limits(limits=1):
            # One thread: the order of sums over several threads would vary.
            fitted = learner(
                max_iter=self.trees,
                learning_rate=0.15,
                max_leaf_nodes=MOST_LEAVES,
                min_samples_leaf=3,
                early_stopping=False,
                random_state=self._seed,
            ).fit(_matrix(self._rows), targets([node.cost for node in self._known]))
            return [float(value) for value in fitted.predict(_matrix(rows))]


def targets(costs: Sequence[float]) -> list[float]:
    """Logarithms of costs relative to the best; failed programs are worse than all others."""
    known = [log(max(cost, LOWEST)) for cost in costs if cost < float("inf")]
    best, worst = min(known, default=0.0), max(known, default=0.0)
    return [log(max(cost, LOWEST)) - best if cost < float("inf") else worst - best + FAILED for cost in costs]


def _matrix(rows: Sequence[Sequence[float]]) -> NDArray[Any]:
    import numpy

    return numpy.array(rows, dtype=numpy.float64)


def import_learner() -> Any:
    """The model's class, and the limiter of its threads. Raises UsageError if scikit-learn is not installed."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise UsageError(
            "the strategy 'model' needs scikit-learn: pip install 'pdojo[search]', or use 'evolve'"
        ) from None
    return HistGradientBoostingRegressor, threadpool_limits


STRATEGY = StrategyKind(lambda _steps, _options: ModelStrategy())
