"""A network that ranks the programs of a kernel by cost, trained on programs of many kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from statistics import mean
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.perfllm.learner import Scale, Vector, import_torch, one_thread
from pdojo.perfllm.schema import Schema

WIDTH = 128
PAIRS = 256
"""Number of program pairs in an update."""
LEARNING_RATE = 1e-3
EVERY = 200
"""Number of updates between two evaluations on the held-out kernels."""
PATIENCE = 10
"""Number of evaluations without progress after which training ends."""


@dataclass(frozen=True)
class RankedSample:
    """A measured program."""

    kernel: str
    """Name of the problem; only costs of one problem are compared."""
    vector: Vector
    cost: float
    """The logarithm of its cost."""


class Ranking:
    """Predicts differences of log costs between programs of one kernel, in which common features of its programs
    cancel.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self._torch = torch = import_torch()
        self._scale = Scale(size)
        self._size = size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = _network(size)

    def costs(self, vectors: Sequence[Vector]) -> list[float]:
        """Predicted log costs of programs of one kernel, up to a constant."""
        with one_thread(), self._torch.no_grad():
            return self._net(self._inputs(vectors))[:, 0].tolist()

    def _inputs(self, vectors: Sequence[Vector]) -> Any:
        """The scaled vectors [programs, size]."""
        return self._torch.from_numpy(self._scale(numpy.stack(list(vectors))))

    def fit(
        self, samples: Sequence[RankedSample], held: Sequence[RankedSample], updates: int, random: Random
    ) -> list[float]:
        """Train on pairs of programs of one kernel each; returns the rank correlations on `held`, in order.

        The network with the best correlation is kept; without held-out samples, the last one.
        """
        for sample in samples:
            self._scale.saw(sample.vector)
        inputs = self._inputs([sample.vector for sample in samples])
        costs = self._torch.tensor([sample.cost for sample in samples])
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, sample in enumerate(samples):
            numbers[sample.kernel].append(number)
        groups = [group for group in numbers.values() if len(group) > 1]
        optimizer = self._torch.optim.AdamW(self._net.parameters(), lr=LEARNING_RATE, weight_decay=1e-3)
        found: list[float] = []
        best = deepcopy(self._net.state_dict())
        for number in range(1, updates + 1):
            pairs = self._torch.tensor([random.sample(random.choice(groups), 2) for _ in range(PAIRS)])
            self._update(inputs[pairs], costs[pairs], optimizer)
            if held and number % EVERY == 0:
                found.append(self.correlation(held))
                if found[-1] >= max(found):
                    best = deepcopy(self._net.state_dict())
                if len(found) - found.index(max(found)) > PATIENCE:
                    break
        if found:
            self._net.load_state_dict(best)
        return found

    def _update(self, inputs: Any, wanted: Any, optimizer: Any) -> None:
        """One step on pairs: `inputs` [pairs, 2, size], `wanted` [pairs, 2]."""
        with one_thread():
            predicted = self._net(inputs)[:, :, 0]
            differences = predicted[:, 0] - predicted[:, 1], wanted[:, 0] - wanted[:, 1]
            loss = self._torch.nn.functional.huber_loss(*differences)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def correlation(self, samples: Sequence[RankedSample]) -> float:
        """Mean over kernels of Spearman's rank correlation between predicted and measured costs; 0 without kernels."""
        groups = [group for group in _by_kernel(samples).values() if len(group) > 2]
        found = [spearman(self.costs([one.vector for one in group]), [one.cost for one in group]) for group in groups]
        return mean(found) if found else 0.0

    def state(self) -> dict[str, Any]:
        """Everything that `from_state` needs."""
        return {"size": self._size, "net": self._net.state_dict(), "scale": self._scale.state()}

    @staticmethod
    def schema(size: int) -> Schema:
        """The schema of `state` for vectors of that length."""
        with import_torch().device("meta"):
            return {"size": range(size, size + 1), "net": _network(size).state_dict(), "scale": Scale.schema(size)}

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> Ranking:
        """The ranking of `state`, which fits `schema`."""
        made = Ranking(state["size"])
        made._net.load_state_dict(state["net"])
        made._scale.restore(state["scale"])
        return made


def _network(size: int) -> Any:
    nn = import_torch().nn
    return nn.Sequential(nn.Linear(size, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 if either is constant."""
    ranks = [_ranks(numpy.array(each)) for each in (one, other)]
    if any(each.std() == 0 for each in ranks):
        return 0.0
    return float(numpy.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Ranks; equal values share the mean of theirs."""
    _, inverse, counts = numpy.unique(values, return_inverse=True, return_counts=True)
    ends = numpy.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[inverse]


def _by_kernel(samples: Sequence[RankedSample]) -> dict[str, list[RankedSample]]:
    found: dict[str, list[RankedSample]] = defaultdict(list)
    for sample in samples:
        found[sample.kernel].append(sample)
    return found
