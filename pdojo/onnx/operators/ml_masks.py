"""Trees of few leaves without walks: all comparisons of a tree at once, each of which rules out leaves.

Leaves are numbered so that those of a node's first child, which is for features in its interval, come before those of
the second one. A bit stands for a leaf. A comparison that does not hold clears the bits of the first child's leaves;
the lowest bit that is left is the leaf (Lucchese et al., "QuickScorer", 2015; for vectors of samples: "V-QuickScorer").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.onnx.operators.ml_forest import END, Forest, Nodes, Numbers, Places
from pdojo.onnx.operators.registry import Node

_MOST_LEAVES = 64
_PER_STEP = 16
"""The comparisons of 32 leaves, or half of those of 64, that take as long as a step of a walk."""


@dataclass(frozen=True, eq=False)
class Masks:
    """The comparisons of all trees, [trees, comparisons]; some rule out nothing."""

    feature: NDArray[np.int32]
    low: Numbers | None
    """The least numbers of the intervals; None if nothing is below one."""
    high: Numbers | None
    bits: Places
    """The leaves that are left if a feature is not in the interval, as i32 if there are at most 32, else as i64."""
    node: Places
    """The node of each leaf, [trees * leaves]; the first leaf's for numbers without leaf."""
    leaves: int
    """The most leaves of a tree."""

    @staticmethod
    def of(nodes: Nodes, depth: int) -> Masks | None:
        """The comparisons of trees; None if walks of `depth` steps take less time. `nodes` are those of a forest."""
        low, high, turned = nodes.intervals()
        first = np.where(turned, nodes.no, nodes.yes).tolist()
        second = np.where(turned, nodes.yes, nodes.no).tolist()
        is_leaf = (nodes.mode == END).tolist()
        trees: list[tuple[list[int], list[tuple[int, int, int]]]] = []
        for root in nodes.roots.tolist():
            found = _leaves_of(root, first, second, is_leaf)
            if found is None:
                return None
            trees.append(found)
        leaves = max(len(own) for own, _ in trees)
        count = max(1, *(len(rows) for _, rows in trees))
        if count * (1 if leaves <= 32 else 2) > _PER_STEP * depth:
            return None
        node = np.array([own + own[:1] * (leaves - len(own)) for own, _ in trees]).reshape(-1)
        places = np.full((len(trees), count), -1)
        bits = np.full((len(trees), count), -1, np.int64)
        for tree, (_, rows) in enumerate(trees):
            for k, (place, start, end) in enumerate(rows):
                places[tree, k] = place
                bits[tree, k] = ~np.int64(np.uint64((1 << end) - (1 << start)).view(np.int64))
        branch = places >= 0
        has_low = bool((low[places][branch] > -np.inf).any())
        has_high = not has_low or bool((high[places][branch] < np.inf).any() or np.isnan(high[places][branch]).any())
        return Masks(
            np.where(branch, nodes.feature[places], 0).astype(np.int32),
            low[places] if has_low else None,
            high[places] if has_high else None,
            bits,
            node,
            leaves,
        )

    @property
    def kind(self) -> str:
        """The element type of bits."""
        return "i32" if self.leaves <= 32 else "i64"

    def records(self, node: Node, x: Array) -> Array:
        """The numbers of the leaves of samples [features, samples] among those of all trees, [trees, samples]."""

        def of(values: NDArray[Any], dtype: str) -> Array:
            return build.expand_dims(node.constant(values, dtype), 2)

        found, bits = build.take(x, node.constant(self.feature, "i32"), 0, outside="clamp"), of(self.bits, self.kind)
        left: Array | None = None
        if self.low is not None:
            left = build.where(found >= of(self.low, x.dtype), -1, bits)
        if self.high is not None:
            below = build.where(found <= of(self.high, x.dtype), -1, bits)
            left = below if left is None else left & below
        assert left is not None
        left = build.reduce("and", left, 1)
        return build.cast(_lowest_bit(left), "i32") + build.iota(left.shape, "i32", 0) * self.leaves


@dataclass(frozen=True, eq=False)
class MaskedForest(Forest):
    """Trees whose records are the leaves, as many for each tree."""

    masks: Masks

    @staticmethod
    def of(nodes: Nodes) -> Forest:
        """The trees with masks if they have few leaves; else with records of all nodes. Raises UsageError."""
        forest = Forest.of(nodes)
        masks = Masks.of(nodes, forest.depth)
        if masks is None:
            order = nodes.deepest_first()
            found = replace(Forest.of(replace(nodes, roots=nodes.roots[order])), order=order)
            return found if len(set(found.widths)) > 1 else forest
        own = np.arange(len(masks.node), dtype=np.int32)
        return MaskedForest(
            masks.feature,
            masks.low,
            masks.high,
            own,
            masks.node,
            forest.depth,
            forest.trees,
            forest.kind,
            (),
            forest.order,
            masks,
        )

    def trees_of_records(self) -> Places:
        """The tree of each record."""
        return np.arange(len(self.node)) // self.masks.leaves


def _leaves_of(
    root: int, first: list[int], second: list[int], is_leaf: list[bool]
) -> tuple[list[int], list[tuple[int, int, int]]] | None:
    """The leaves in order, and each branch with the numbers of the first child's leaves; None if there are too many.

    A node with several parents counts once for each way to it.
    """
    leaves: list[int] = []
    rows: list[tuple[int, int, int]] = []
    waiting: list[tuple[int, int]] = [(root, -1)]
    while waiting:
        node, start = waiting.pop()
        if start >= 0:
            # All leaves of its first child are there.
            rows.append((node, start, len(leaves)))
        elif not is_leaf[node]:
            waiting += [(second[node], -1), (node, len(leaves)), (first[node], -1)]
        else:
            leaves.append(node)
            if len(leaves) > _MOST_LEAVES:
                return None
    return leaves, rows


def _lowest_bit(left: Array) -> Array:
    """The place of the lowest bit: the exponent of its value as a floating-point number."""
    lowest = left & -left
    if left.dtype == "i32":
        return (build.bitcast(build.cast(lowest, "f32"), "i32") >> 23 & 255) - 127
    return (build.bitcast(build.cast(lowest, "f64"), "i64") >> 52 & 2047) - 1023
