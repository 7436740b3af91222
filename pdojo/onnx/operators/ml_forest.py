"""Ensembles of trees as tables: a record for each node, whose children are neighbours.

A step from record r leads to `first[r]`, plus 1 if the feature is in the interval [low, high] of r. Each comparison
with a number is such an interval, exactly. Nothing is in the interval of a leaf, which is its own first, and NaN is in
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.errors import UsageError

Numbers: TypeAlias = NDArray[Any]
Places: TypeAlias = NDArray[np.int64]
LEAF = "LEAF"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", LEAF)
"""The comparisons of nodes: TreeEnsemble has their places in this list."""
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, END = range(len(MODES))
_IS_NUMBER = len(MODES)
"""The comparison that all features but NaN pass."""
_MOST_PADDED = 1 << 16
"""The most records that leaves follow, up to a power of 2."""
_SAVED = 0.02
"""The least share of all steps of all trees that is left out at once."""
_OPPOSITE = np.array([GT, GTE, LT, LEQ, NEQ, EQ, MEMBER, END, _IS_NUMBER])


@dataclass
class Nodes:
    """The nodes of an ensemble, and the places of their children."""

    feature: Places
    value: Numbers
    """The numbers of comparisons, of the element type in which features are compared."""
    mode: Places
    """The places of comparisons in `MODES`."""
    yes: Places
    """The children if the comparison holds; a leaf's are the leaf."""
    no: Places
    missing: NDArray[np.bool_]
    """Whether NaN passes the comparison."""
    roots: Places

    def append(self, **columns: Sequence[float] | NDArray[Any]) -> None:
        """Add nodes."""
        for name, added in columns.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.asarray(added, old.dtype)]))

    def deepest_first(self) -> Places:
        """The numbers of the trees, sorted by their depth."""
        is_leaf = self.mode == END
        return np.argsort(-_depths(self, is_leaf, _depth(self, is_leaf)), kind="stable")

    @staticmethod
    def joined(trees: Sequence[Nodes]) -> Nodes:
        """The nodes of several ensembles, one after the other."""
        starts = np.cumsum([0, *(len(each.mode) for each in trees[:-1])])
        rows = list(zip(trees, starts.tolist(), strict=True))
        return Nodes(
            np.concatenate([each.feature for each in trees]),
            np.concatenate([each.value for each in trees]),
            np.concatenate([each.mode for each in trees]),
            np.concatenate([each.yes + start for each, start in rows]),
            np.concatenate([each.no + start for each, start in rows]),
            np.concatenate([each.missing for each in trees]),
            np.concatenate([each.roots + start for each, start in rows]),
        )

    def append_leaf(self) -> None:
        """Add a leaf."""
        own = [len(self.mode)]
        self.append(feature=[0], value=[0], mode=[END], yes=own, no=own, missing=[False])

    def expand_members(self, sets: Sequence[Numbers]) -> None:
        """Turn each node with a set of numbers, in order, into a chain of comparisons with one of them."""
        for node, members in zip(np.flatnonzero(self.mode == MEMBER), sets, strict=True):
            numbers = members if len(members) else np.array([np.nan])
            start = len(self.mode)
            links = [int(node), *range(start, start + len(numbers) - 1)]
            more = len(numbers) - 1
            self.append(
                feature=[self.feature[node]] * more,
                value=numbers[1:],
                mode=[EQ] * more,
                yes=[self.yes[node]] * more,
                no=[*links[2:], self.no[node]][:more],
                missing=[False] * more,
            )
            self.mode[node], self.value[node] = EQ, numbers[0]
            if more:
                self.no[node] = links[1]

    def expand_missing(self) -> None:
        """Put a test for NaN before comparisons with it that are no interval then."""
        inner = self.missing & (self.mode < NEQ) & ((self.mode == EQ) | np.isnan(self.value))
        old = np.flatnonzero(inner)
        start = len(self.mode)
        self.append(
            feature=self.feature[old],
            value=self.value[old],
            mode=self.mode[old],
            yes=self.yes[old],
            no=self.no[old],
            missing=np.zeros(len(old), bool),
        )
        self.no[old] = self.yes[old]
        self.yes[old] = np.arange(start, len(self.mode))
        self.mode[old], self.missing[old] = _IS_NUMBER, False

    def intervals(self) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
        """The ends of the interval of each node, and whether features in it do not pass the comparison."""
        infinite = np.array(np.inf, self.value.dtype)
        # x < t is x <= the number before t.
        before, after = np.nextafter(self.value, -infinite), np.nextafter(self.value, infinite)
        before[self.value == -infinite], after[self.value == infinite] = np.nan, np.nan
        # A comparison that NaN passes holds where its opposite does not.
        turned = (self.mode == NEQ) | (self.missing & (self.mode < EQ))
        mode = np.where(self.missing & (self.mode < EQ), _OPPOSITE[self.mode], self.mode)
        low, high = np.full_like(self.value, -np.inf), np.full_like(self.value, np.inf)
        for own, numbers in ((GTE, self.value), (GT, after), (EQ, self.value), (NEQ, self.value)):
            low = np.where(mode == own, numbers, low)
        for own, numbers in ((LEQ, self.value), (LT, before), (EQ, self.value), (NEQ, self.value)):
            high = np.where(mode == own, numbers, high)
        return low, high, turned


@dataclass(frozen=True, eq=False)
class Forest:
    """The records of all trees: first those of the roots, then pairs of children."""

    feature: NDArray[np.int32]
    low: Numbers | None
    """The least numbers of the intervals; None if nothing is below one."""
    high: Numbers | None
    first: NDArray[np.int32]
    """The first record of the children; a leaf's own."""
    node: Places
    """The node of each record."""
    depth: int
    trees: int
    kind: str
    """The element type in which features are compared."""
    widths: tuple[int, ...]
    """For each step the first trees that take it: at least those that have not ended before."""
    order: Places
    """The numbers of the trees in the order in which they are walked."""

    @staticmethod
    def of(nodes: Nodes) -> Forest:
        """The records of nodes. Raises UsageError for a tree that is none."""
        nodes.expand_missing()
        low, high, turned = nodes.intervals()
        is_leaf, count = nodes.mode == END, len(nodes.roots)
        depth = _depth(nodes, is_leaf)
        branches = np.flatnonzero(~is_leaf)
        place = np.full(len(is_leaf), -1)
        place[branches] = count + 2 * np.arange(len(branches))
        children = np.stack(
            [np.where(turned, nodes.yes, nodes.no)[branches], np.where(turned, nodes.no, nodes.yes)[branches]], 1
        )
        node = np.concatenate([nodes.roots, children.reshape(-1)])
        # Ensembles of similar size, such as the single trees of an isolation forest, have the same kernels.
        more = (1 << (len(node) - 1).bit_length()) - len(node) if len(node) <= _MOST_PADDED else 0
        leaf = np.flatnonzero(is_leaf)[:1]
        node = np.concatenate([node, np.repeat(leaf, more)])
        first = np.where(is_leaf[node], np.arange(len(node)), place[node])
        if len(node) >= 1 << 31:
            raise UsageError(f"the trees have {len(node)} records, not less than 2^31")
        has_low = bool((low[branches] > -np.inf).any())
        has_high = not has_low or bool((high[branches] < np.inf).any()) or bool(np.isnan(high[branches]).any())
        low[is_leaf], high[is_leaf] = np.nan, np.nan
        return Forest(
            np.where(is_leaf, 0, nodes.feature)[node].astype(np.int32),
            low[node] if has_low else None,
            high[node] if has_high else None,
            first.astype(np.int32),
            node,
            depth,
            count,
            "f64" if nodes.value.dtype == np.float64 else "f32",
            _widths(nodes, is_leaf, depth),
            np.arange(count),
        )

    def trees_of_records(self) -> Places | None:
        """The tree of each record, -1 for those of none; None if trees share some."""
        found = np.concatenate([self.order, np.full(len(self.node) - self.trees, -1)])
        front = np.arange(self.trees)
        while len(front := front[self.first[front] != front]):
            children = np.concatenate([self.first[front], self.first[front] + 1])
            trees = np.tile(found[front], 2)
            if ((found[children] >= 0) & (found[children] != trees)).any():
                return None
            found[children] = trees
            if (found[children] != trees).any():
                return None
            front = np.unique(children)
        return found


def _depth(nodes: Nodes, is_leaf: NDArray[np.bool_]) -> int:
    """The length of the longest path from a root. Raises UsageError for a path without end."""
    depth, front, branches = 0, nodes.roots, int((~is_leaf).sum())
    while len(front := front[~is_leaf[front]]):
        if depth > branches:
            raise UsageError("the children of a node lead back to it")
        front = np.unique(np.concatenate([nodes.yes[front], nodes.no[front]]))
        depth += 1
    return depth


def _depths(nodes: Nodes, is_leaf: NDArray[np.bool_], depth: int) -> Places:
    """The depth of each tree, of which `depth` is the greatest."""
    heights = np.zeros(len(is_leaf), np.int64)
    for _ in range(depth):
        heights = np.where(is_leaf, 0, 1 + np.maximum(heights[nodes.yes], heights[nodes.no]))
    return heights[nodes.roots]


def _widths(nodes: Nodes, is_leaf: NDArray[np.bool_], depth: int) -> tuple[int, ...]:
    """`Forest.widths`. Other widths are other kernels: a step takes the trees of the one before if it saves few."""
    depths = _depths(nodes, is_leaf, depth)
    found: list[int] = []
    width = len(depths)
    for step in range(depth):
        walking = int(np.flatnonzero(depths > step)[-1]) + 1
        if (width - walking) * (depth - step) >= _SAVED * len(depths) * depth:
            width = walking
        found.append(width)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights that leaves add to targets."""

    node: Places
    target: Places
    value: Numbers
    targets: int

    def table(self, forest: Forest, fill: float) -> Numbers:
        """The weights of each record, [records, targets]; `fill` where it has none."""
        found = np.full((int(forest.node.max()) + 1, self.targets), fill, self.value.dtype)
        known = self.node < len(found)
        found[self.node[known], self.target[known]] = self.value[known]
        return found[forest.node]

    def present(self, forest: Forest) -> Numbers:
        """1 where a record has a weight, and 0 elsewhere, [records, targets]."""
        ones = Weights(self.node, self.target, np.ones_like(self.value), self.targets)
        return ones.table(forest, 0)
