"""Ensembles of trees of `ai.onnx.ml`: all trees take a step at once, then the weights of their leaves are summed up.

A step is an operation of its own, since the records that it finds are indices of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, TypeAlias

import numpy as np

from pdojo import build
from pdojo.build import Array
from pdojo.errors import UsageError
from pdojo.onnx.operators.ml_attributes import nodes_of, nodes_of_ensemble, weights_of, weights_of_ensemble
from pdojo.onnx.operators.ml_forest import Forest, Nodes, Numbers, Places, Weights
from pdojo.onnx.operators.ml_masks import MaskedForest, Masks
from pdojo.onnx.operators.ml_scores import (
    ML,
    TRANSFORMS,
    Labels,
    check_count,
    choice,
    pair,
    probit,
    rows_of,
    transformed,
    two_classes,
)
from pdojo.onnx.operators.registry import NeedsArrays, Node, Value, operator

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_FILL = {"MIN": inf, "MAX": -inf}
Finish: TypeAlias = "Callable[[Node, Array], Value | tuple[Value, ...]]"
"""The results of a node, from the records of leaves [samples, trees]."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose leaves add to targets."""

    forest: Forest
    weights: Weights
    groups: int
    """The number of targets to which trees add one after the other; 0 if a tree may add to any."""
    trees: int
    """The number of trees, without those that fill groups."""
    certain: tuple[bool, ...]
    """Whether a target gets a weight for each sample."""

    @staticmethod
    def of(node: Node, nodes: Nodes, weights: Weights) -> Ensemble:
        """The ensemble of nodes. Refuses what is no tree."""
        try:
            forest = Forest.of(nodes)
        except UsageError as error:
            node.contradicts(str(error))
        trees, count = forest.trees_of_records(), forest.trees
        if trees is None:
            return Ensemble(MaskedForest.of(nodes), weights, 0, count, (False,) * weights.targets)
        present = weights.present(forest).astype(bool)
        is_leaf = (forest.first == np.arange(len(forest.first))) & (trees >= 0)
        certain = np.zeros(weights.targets, bool)
        some = np.zeros((count, weights.targets), bool)
        for k in range(weights.targets):
            lacking = np.unique(trees[is_leaf & ~present[:, k]])
            certain[k] = len(lacking) < count
            some[trees[is_leaf & present[:, k]], k] = True
        order = _grouped(some) if weights.targets > 1 else None
        if order is None:
            return Ensemble(MaskedForest.of(nodes), weights, 0, count, tuple(certain.tolist()))
        forest, weights = _reordered(nodes, weights, order)
        return Ensemble(forest, weights, weights.targets, count, tuple(certain.tolist()))

    def scores(self, node: Node, records: Array, aggregate: str) -> Array:
        """The sums, means or extremes of the weights of leaves, [samples, targets]; 0 without weights."""
        table = self.weights.table(self.forest, _FILL.get(aggregate, 0))
        found = self._joined(node, records, table, aggregate)
        if aggregate == "AVERAGE":
            return found / self.trees
        if aggregate in _FILL and not all(self.certain):
            return build.where(self.has(node, records), found, 0)
        return found

    def has(self, node: Node, records: Array) -> Array:
        """Whether targets get a weight at all, [samples, targets]."""
        return self._joined(node, records, self.weights.present(self.forest), "MAX") > 0

    def _joined(self, node: Node, records: Array, table: Numbers, aggregate: str) -> Array:
        join = {"MIN": build.min, "MAX": build.max}.get(aggregate, build.sum)
        kind = "f64" if table.dtype == np.float64 else "f32"
        if self.groups:
            own = np.take_along_axis(table, self._targets()[:, None], 1)[:, 0]
            found = build.take(node.constant(own, kind), records, 0, outside="clamp")
            return join(build.reshape(found, (found.shape[0], self.groups, -1)), -1)
        used = np.unique(self.weights.target)
        if len(used) == 1:
            found = build.take(node.constant(table[:, used[0]], kind), records, 0, outside="clamp")
            one = join(found, -1, keepdims=True)
            # No leaf has a weight of the other targets.
            places = build.iota((found.shape[0], self.weights.targets), "i64", 1)
            return one if self.weights.targets == 1 else build.where(places == int(used[0]), one, 0)
        return join(build.take(node.constant(table, kind), records, 0, outside="clamp"), 1)

    def _targets(self) -> Places:
        """The target of each record, for trees in groups."""
        found = self.forest.trees_of_records()
        assert found is not None
        return np.maximum(found, 0) // (self.forest.trees // self.groups)


def _grouped(some: Numbers) -> Places | None:
    """The trees of each target, one target after the other, -1 for none; None if one adds to several targets.

    `some` [trees, targets] says to which targets a tree adds.
    """
    trees, targets = some.shape
    longest = int(some.sum(0).max())
    if (some.sum(1) > 1).any() or targets * longest > 1.5 * trees or some.any(0).sum() < 2:
        return None
    order = np.full((targets, max(longest, 1)), -1)
    for k in range(targets):
        own = np.flatnonzero(some[:, k])
        order[k, : len(own)] = own
    return order.reshape(-1)


def _reordered(nodes: Nodes, weights: Weights, order: Places) -> tuple[Forest, Weights]:
    """The trees in an order, with a leaf without weights for -1."""
    empty = len(nodes.mode)
    nodes.append_leaf()
    nodes.roots = np.where(order < 0, empty, nodes.roots[order])
    return MaskedForest.of(nodes), weights


def walked(node: Node, forest: Forest, finish: Finish) -> Value | tuple[Value, ...]:
    """The results of `finish`, after the operations of all steps from the roots to the leaves."""
    x, kind = rows_of(node), forest.kind
    used = int(forest.feature.max())
    if used >= x.shape[1]:
        node.contradicts(f"a node compares feature {used} of samples of {x.shape[1]} features")
    if not x.size:
        node.refuse("there are no samples")
    if isinstance(forest, MaskedForest):
        masked = partial(_masked, masks=forest.masks, finish=finish)
        # Comparisons read a feature of neighbouring samples at once.
        raise NeedsArrays(
            lambda given: build.cast(build.transpose(rows_of(given)), kind), masked, kept=(), is_copy=True
        )
    first = partial(_start, forest=forest, finish=finish)
    if x.dtype == kind:
        return first(node)
    raise NeedsArrays(lambda given: build.cast(rows_of(given), kind), first, kept=())


def _masked(node: Node, masks: Masks, finish: Finish) -> Any:
    """The leaves by all comparisons at once; operand 0 are the samples, [features, samples]."""
    raise NeedsArrays(
        lambda given: masks.records(given, given.array(0)),
        lambda given: finish(given, build.transpose(given.array(0))),
        kept=(),
    )


def _start(node: Node, forest: Forest, finish: Finish) -> Any:
    """The step from the roots."""
    count = rows_of(node).shape[0]
    roots = build.iota((count, forest.trees), "i32", 1)
    if not forest.depth:
        return finish(node, roots)
    raise NeedsArrays(lambda given: _step(given, forest, roots), partial(_next, forest=forest, finish=finish, step=1))


def _next(node: Node, forest: Forest, finish: Finish, step: int, ended: tuple[tuple[int, int], ...] = ()) -> Any:
    """The steps from `step` on. The last operand are the records before.

    Those of trees that have ended are in operands from 1 on, in columns that `ended` has: from one number to another.
    """
    place = len(node.inputs) - 1
    records = node.array(place)
    if step == forest.depth:
        if not ended:
            return finish(node, records)

        def joined(given: Node) -> Array:
            parts = [given.array(1 + k)[:, first:last] for k, (first, last) in enumerate(ended)]
            return build.concatenate([given.array(place), *parts[::-1]], 1)

        raise NeedsArrays(joined, partial(_in_order, forest=forest, finish=finish), kept=())
    width, before = forest.widths[step], records.shape[1]
    ended = (*ended, (width, before)) if width < before else ended
    raise NeedsArrays(
        lambda given: _step(given, forest, given.array(place)[:, :width]),
        partial(_next, forest=forest, finish=finish, step=step + 1, ended=ended),
        kept=range(place + (width < before)),
    )


def _in_order(node: Node, forest: Forest, finish: Finish) -> Any:
    """The results, from records of trees in the order in which they are walked: sums are in that of the model."""
    places = np.argsort(forest.order).tolist()
    raise NeedsArrays(
        lambda given: build.take(given.array(0), places, 1), lambda given: finish(given, given.array(0)), kept=()
    )


def _step(node: Node, forest: Forest, records: Array) -> Array:
    """The records of the children, [samples, trees]."""
    x = rows_of(node)

    def of(values: Numbers, dtype: str) -> Array:
        return build.take(node.constant(values, dtype), records, 0, outside="clamp")

    rows = build.iota(records.shape, "i64", 0)
    feature = build.gather(x, [rows, of(forest.feature, "i32")], outside="clamp")
    inside: Array | None = None
    if forest.low is not None:
        inside = feature >= of(forest.low, x.dtype)
    if forest.high is not None:
        below = feature <= of(forest.high, x.dtype)
        inside = below if inside is None else inside & below
    assert inside is not None
    return of(forest.first, "i32") + build.cast(inside, "i32")


Parts: TypeAlias = "tuple[Nodes, Ensemble, Finish]"
"""The trees of a node, their weights, and its results from the records of leaves."""


@operator("TreeEnsembleRegressor", domain=ML)
def tree_regressor(node: Node) -> Any:
    """The sums of the leaves of all trees, and other aggregates."""
    return _walked(node, _regressor_parts(node))


@operator("TreeEnsemble", domain=ML, since=5)
def tree_ensemble(node: Node) -> Any:
    """The aggregates of the leaves of all trees."""
    return _walked(node, _ensemble_parts(node))


@operator("TreeEnsembleClassifier", domain=ML)
def tree_classifier(node: Node) -> Any:
    """The classes with the greatest sums of the leaves of all trees, and the scores of all classes."""
    return _walked(node, _classifier_parts(node))


def _walked(node: Node, parts: Parts) -> Any:
    _, ensemble, finish = parts
    return walked(node, ensemble.forest, finish)


def _regressor_parts(node: Node) -> Parts:
    count, kind = node.attribute("n_targets", 1), rows_of(node).dtype
    weights, base = weights_of(node, "target", count, kind)
    check_count(node, "base_values", base.size, [0, count])
    aggregate, transform = node.choice("aggregate_function", AGGREGATES, "SUM"), _transform(node)
    nodes = nodes_of(node, kind)
    ensemble = Ensemble.of(node, nodes, weights)
    return nodes, ensemble, partial(_regression, ensemble, aggregate, base, transform, "f32")


def _ensemble_parts(node: Node) -> Parts:
    kind = rows_of(node).dtype
    number, after = int(node.attribute("aggregate_function", 1)), int(node.attribute("post_transform", 0))
    if not 0 <= number < len(AGGREGATES) or not 0 <= after < len(TRANSFORMS):
        node.contradicts(f"its aggregate and its transform have the numbers {number} and {after}, which mean nothing")
    nodes = nodes_of_ensemble(node, kind)
    ensemble = Ensemble.of(node, nodes, weights_of_ensemble(node, kind))
    transform, base = TRANSFORMS[after], np.empty(0, np.float32)
    return nodes, ensemble, partial(_regression, ensemble, AGGREGATES[number], base, transform, kind)


def _transform(node: Node) -> str:
    return node.choice("post_transform", TRANSFORMS)


def _regression(
    ensemble: Ensemble, aggregate: str, base: Numbers, transform: str, dtype: str, node: Node, records: Array
) -> Array:
    scores = ensemble.scores(node, records, aggregate)
    if base.size:
        scores = scores + node.constant(base, scores.dtype)
    if ensemble.weights.targets == 1:
        # ONNX Runtime has no other transform of one target.
        return build.cast(probit(build.cast(scores, "f32")) if transform == "PROBIT" else scores, dtype)
    return build.cast(transformed(build.cast(scores, "f32"), transform) if transform != "NONE" else scores, dtype)


def _classifier_parts(node: Node) -> Parts:
    labels, kind = Labels(node, "classlabels_int64s"), rows_of(node).dtype
    if not labels.count:
        node.contradicts("it has neither 'classlabels_int64s' nor 'classlabels_strings'")
    weights, base = weights_of(node, "class", labels.count, kind)
    check_count(node, "base_values", base.size, [0, labels.count] if labels.count > 2 else [0, 1, labels.count])
    nodes = nodes_of(node, kind)
    ensemble = Ensemble.of(node, nodes, weights)
    return nodes, ensemble, partial(_classification, ensemble, labels, base, _transform(node))


PARTS: Mapping[str, Callable[[Node], Parts]] = {
    "TreeEnsembleRegressor": _regressor_parts,
    "TreeEnsemble": _ensemble_parts,
    "TreeEnsembleClassifier": _classifier_parts,
}
"""The parts of ensembles, keyed by operator."""


def _classification(
    ensemble: Ensemble, labels: Labels, base: Numbers, transform: str, node: Node, records: Array
) -> tuple[Array, Array]:
    scores = ensemble.scores(node, records, "SUM")
    if labels.count == 2:
        return _binary(ensemble, labels, base, transform, node, records)
    if base.size:
        scores = scores + node.constant(base, scores.dtype)
    after = build.cast(scores, "f32")
    if labels.count == 1:
        return choice(scores[:, 0] > 0, 1, 0), probit(after) if transform == "PROBIT" else after
    known = scores if base.size or all(ensemble.certain) else build.where(ensemble.has(node, records), scores, -inf)
    return labels.of(node, build.argmax(known, -1)), transformed(after, transform)


def _binary(
    ensemble: Ensemble, labels: Labels, base: Numbers, transform: str, node: Node, records: Array
) -> tuple[Array, Array]:
    """Two classes, each of which may have no weight for some samples, or none at all."""
    weights, some = ensemble.weights, np.unique(ensemble.weights.target)
    case = _Case(len(some) < 2, bool((weights.value >= 0).all()), base.tolist(), transform)
    scores = ensemble.scores(node, records, "SUM")
    # What has no weight is 0, with base values too.
    has = ensemble.has(node, records) if not all(ensemble.certain) else None
    first = None if has is None or ensemble.certain[0] else has[:, 0]
    if 1 not in some:
        number, found = _without_second(node, scores, first, case)
    elif has is None or ensemble.certain[1]:
        number, found = _with_second(scores, first, case)
    else:
        number, found = (
            build.where(has[:, 1] if one.rank == 1 else has[:, 1:], one, other)
            for one, other in zip(
                _with_second(scores, first, case), _without_second(node, scores, first, case), strict=True
            )
        )
    # With weights of both classes, the labels are 0 and 1 whatever the attribute says.
    return labels.of(node, number) if case.one_class else number, found


@dataclass(frozen=True)
class _Case:
    """How two classes are scored."""

    one_class: bool
    """Whether all weights are of one of the two classes."""
    positive: bool
    """Whether no weight is negative."""
    base: Sequence[float]
    transform: str

    def number(self, score: Array) -> Array:
        """The number of the class by the decisive score."""
        return choice(score > (0.5 if self.one_class and self.positive else 0), 1, 0)


def _with_second(scores: Array, has_first: Array | None, case: _Case) -> tuple[Array, Array]:
    """The numbers of classes, and the scores of both, of samples with a weight of the second class."""
    first, second = scores[:, 0], scores[:, 1]
    if len(case.base) == 2:
        second = first + case.base[1]
        first = -second
    elif case.base:
        first = first + case.base[0]
    both = pair(_known(has_first, first), second)
    return case.number(second), transformed(build.cast(both, "f32"), case.transform)


def _without_second(node: Node, scores: Array, has_first: Array | None, case: _Case) -> tuple[Array, Array]:
    """The numbers of classes, and the scores of both, of samples without weight of the second class."""
    first = _known(has_first, scores[:, 0] + case.base[0] if case.base else scores[:, 0])
    number, score = case.number(first), build.cast(first, "f32")
    if len(case.base) == 2:
        return number, transformed(pair(score, build.constant(0, "f32", score.shape)), case.transform)
    if case.transform == "PROBIT" or (case.base and not case.one_class):
        node.refuse("ONNX Runtime leaves the score of the second class open, which has no weights")
    return number, two_classes(score, case.transform, positive=case.one_class and case.positive)


def _known(has: Array | None, score: Array) -> Array:
    return score if has is None else build.where(has, score, 0)
