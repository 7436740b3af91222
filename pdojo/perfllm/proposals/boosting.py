"""Gradient boosting for choices: each tree fits the difference between the answers and the softmax of the scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.perfllm.proposals.examples import Example
from pdojo.search.proposals.scorers import Trees

DEPTH = 4
"""Greatest depth of a tree."""
RATE = 0.3
"""Share of a tree's step that is made."""
FEATURES = 0.4
"""Share of the features that are tried at a node."""
SMALLEST = 12
"""Fewest rows of a leaf."""
GREATEST = 3.0
"""Greatest value of a leaf before the rate."""


def fit_trees(
    examples: Sequence[Example], sizes: tuple[int, int], rounds: Sequence[int], seed: int
) -> Iterator[tuple[int, Trees]]:
    """The trees after each number of rounds, in ascending order. Raises UsageError if scikit-learn is missing."""
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError:
        raise UsageError("boosted trees need scikit-learn: pip install 'pdojo[search]'") from None
    counts = [len(example.asked.items) for example in examples]
    rows = numpy.concatenate(
        [
            numpy.concatenate([numpy.tile(e.asked.context, (n, 1)), e.asked.items], axis=1)
            for e, n in zip(examples, counts, strict=True)
        ]
    )
    group = numpy.repeat(numpy.arange(len(examples)), counts)
    firsts = numpy.cumsum([0, *counts[:-1]])
    wanted = numpy.zeros(len(rows))
    wanted[firsts + numpy.array([example.answer for example in examples])] = 1.0
    weight = numpy.array([example.weight for example in examples])[group]
    scores = numpy.zeros(len(rows))
    grown: list[Any] = []
    for number in range(1, max(rounds) + 1):
        likely = _softmax(scores, group, firsts)
        gradient, curvature = wanted - likely, likely * (1 - likely)
        tree: Any = DecisionTreeRegressor(
            max_depth=DEPTH, min_samples_leaf=SMALLEST, max_features=FEATURES, random_state=seed + number
        )
        tree.fit(rows, gradient, sample_weight=weight)
        leaves: NDArray[Any] = tree.apply(rows)
        size = tree.tree_.node_count
        step = numpy.bincount(leaves, weight * gradient, size) / (numpy.bincount(leaves, weight * curvature, size) + 1)
        values = RATE * numpy.clip(step, -GREATEST, GREATEST)
        scores += values[leaves]
        grown.append((tree.tree_, values))
        if number in rounds:
            yield number, Trees(_arrays(grown), sizes)


def _softmax(scores: NDArray[Any], group: NDArray[Any], firsts: NDArray[Any]) -> NDArray[Any]:
    """The probability of each row within its group."""
    powers = numpy.exp(scores - numpy.maximum.reduceat(scores, firsts)[group])
    return powers / numpy.add.reduceat(powers, firsts)[group]


def _arrays(grown: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """The trees in the form of `Trees`."""
    most = max(tree.node_count for tree, _ in grown)
    shape = (len(grown), most)
    own = numpy.tile(numpy.arange(most, dtype=numpy.int32), (len(grown), 1))
    found = {
        "feature": numpy.zeros(shape, dtype=numpy.int32),
        "threshold": numpy.zeros(shape, dtype=numpy.float32),
        "left": own,
        "right": own.copy(),
        "value": numpy.zeros(shape, dtype=numpy.float32),
    }
    for row, (tree, values) in enumerate(grown):
        inner = numpy.flatnonzero(tree.children_left >= 0)
        found["feature"][row, inner] = tree.feature[inner]
        # A threshold between two values of float32 keeps the side of both if it is rounded down to one.
        found["threshold"][row, inner] = _rounded_down(tree.threshold[inner])
        found["left"][row, inner] = tree.children_left[inner]
        found["right"][row, inner] = tree.children_right[inner]
        found["value"][row, : tree.node_count] = values
    return found


def _rounded_down(values: NDArray[Any]) -> NDArray[numpy.float32]:
    rounded = values.astype(numpy.float32)
    return numpy.where(rounded > values, numpy.nextafter(rounded, numpy.float32(-numpy.inf)), rounded)
