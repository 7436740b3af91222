"""Scorers of alternatives: a small network, and boosted trees, both as plain arrays that NumPy evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy
from numpy.typing import NDArray

from pdojo.errors import UsageError
from pdojo.search.proposals.places import Row
from pdojo.search.proposals.questions import Question

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Indices: TypeAlias = NDArray[numpy.int64]
Truths: TypeAlias = NDArray[numpy.bool_]
FARTHEST = 5.0
"""Greatest standardised feature: farther ones count as this one."""
HEAVIEST = 1e6
"""Greatest weight of a network: scores stay finite."""
MOST_NODES = 1 << 20
"""Greatest number of nodes of all trees."""


class Scorer(Protocol):
    """Scores alternatives; the probability of each is the softmax of the scores."""

    design: ClassVar[str]

    def scores(self, asked: Question) -> Row:
        """A score for each alternative."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights."""
        ...


class Network:
    """One hidden layer over standardised features."""

    design: ClassVar[str] = "network"

    def __init__(self, arrays: Arrays, sizes: tuple[int, int]) -> None:
        """Take weights. Raises UsageError if they do not fit features of these sizes."""
        size = sum(sizes)
        _check(arrays, ("mean", "scale", "first", "bias", "second"))
        width = arrays["bias"].shape[0] if arrays["bias"].ndim == 1 else 0
        shapes = {"mean": (size,), "scale": (size,), "first": (size, width), "bias": (width,), "second": (width,)}
        if not width or any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise UsageError("its network does not fit the features")
        if any(abs(arrays[name]).max(initial=0) > HEAVIEST for name in shapes):
            raise UsageError("its network has weights that are too large")
        self._arrays = {name: arrays[name].astype(numpy.float32) for name in shapes}
        self._split = sizes[0]

    def scores(self, asked: Question) -> Row:
        """A score for each alternative."""
        own, at = self._arrays, self._split
        hidden = _scaled(asked.items, own["mean"][at:], own["scale"][at:]) @ own["first"][at:]
        hidden += _scaled(asked.context, own["mean"][:at], own["scale"][:at]) @ own["first"][:at] + own["bias"]
        return numpy.maximum(hidden, 0) @ own["second"]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights."""
        return dict(self._arrays)


def _scaled(values: Row, mean: Row, scale: Row) -> Row:
    return numpy.clip((values - mean) * scale, -FARTHEST, FARTHEST)


class Trees:
    """A sum of regression trees. In a node, values up to the threshold go left; a leaf is its own child."""

    design: ClassVar[str] = "trees"

    def __init__(self, arrays: Arrays, sizes: tuple[int, int]) -> None:
        """Take trees [trees, nodes]. Raises UsageError if they do not fit features of these sizes."""
        _check(arrays, ("feature", "threshold", "left", "right", "value"))
        shape = arrays["feature"].shape
        if len(shape) != 2 or not 0 < shape[0] * shape[1] <= MOST_NODES:
            raise UsageError("it has no trees, or too many")
        if any(each.shape != shape for each in arrays.values()):
            raise UsageError("its trees do not fit each other")
        trees, most = shape
        own: Indices = numpy.arange(most, dtype=numpy.int64)
        left: Indices = arrays["left"].astype(numpy.int64)
        right: Indices = arrays["right"].astype(numpy.int64)
        feature: Indices = arrays["feature"].astype(numpy.int64)
        # Children come after their parents, so every path ends.
        is_leaf: Truths = (left == own) & (right == own)
        is_inner: Truths = (left > own) & (right > own) & (left < most) & (right < most)
        if not (is_leaf | is_inner).all() or not ((feature >= 0) & (feature < sum(sizes))).all():
            raise UsageError("its trees have wrong nodes")
        self._arrays = {name: arrays[name] for name in ("feature", "threshold", "left", "right", "value")}
        first: Indices = most * numpy.arange(trees, dtype=numpy.int64)[:, None]
        self._feature = feature.reshape(-1)
        self._threshold = arrays["threshold"].astype(numpy.float32).reshape(-1)
        self._children: Indices = numpy.stack([(right + first).reshape(-1), (left + first).reshape(-1)], axis=1)
        self._value = arrays["value"].astype(numpy.float32).reshape(-1)
        self._roots: Indices = first[:, 0]
        self._depth = _depth(left, right, is_leaf)

    def scores(self, asked: Question) -> Row:
        """A score for each alternative."""
        count = len(asked.items)
        whole = numpy.concatenate([numpy.broadcast_to(asked.context, (count, len(asked.context))), asked.items], axis=1)
        rows = numpy.arange(count)[:, None]
        nodes: Indices = numpy.broadcast_to(self._roots, (count, len(self._roots)))
        for _ in range(self._depth):
            is_left = whole[rows, self._feature[nodes]] <= self._threshold[nodes]
            nodes = self._children[nodes, is_left.astype(numpy.int64)]
        return self._value[nodes].sum(axis=1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The trees."""
        return dict(self._arrays)


def _depth(left: Indices, right: Indices, is_leaf: Truths) -> int:
    """The depth of the deepest tree."""
    depth = numpy.zeros(left.shape, dtype=numpy.int64)
    for node in reversed(range(left.shape[1])):
        below = [numpy.take_along_axis(depth, side[:, node : node + 1], axis=1)[:, 0] for side in (left, right)]
        depth[:, node] = numpy.where(is_leaf[:, node], 0, 1 + numpy.maximum(*below))
    return int(depth[:, 0].max())


def _check(arrays: Arrays, names: tuple[str, ...]) -> None:
    """Raise UsageError unless these are the arrays, of finite numbers."""
    if set(arrays) != set(names):
        raise UsageError("it has other weights")
    for name in names:
        if arrays[name].dtype.kind not in "fi" or not numpy.isfinite(arrays[name]).all():
            raise UsageError(f"its weights '{name}' are no finite numbers")


DESIGNS: Mapping[str, type[Network | Trees]] = {Network.design: Network, Trees.design: Trees}
"""The designs of scorers, by name."""
