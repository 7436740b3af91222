"""The attributes of ensembles of trees as nodes and weights, checked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pdojo.onnx.operators.ml_forest import END, LEAF, MEMBER, MODES, Nodes, Numbers, Places, Weights
from pdojo.onnx.operators.ml_scores import check_count, floats, ints
from pdojo.onnx.operators.registry import Node


def _type_of(kind: str) -> np.dtype[Any]:
    """The type in which features of an element type are compared: that of f64, or f32."""
    return np.dtype(np.float64 if kind == "f64" else np.float32)


def _numbers(node: Node, name: str, kind: str) -> Numbers:
    """The numbers of an attribute, or of the tensor of f64 that it has since version 3."""
    found, tensor = floats(node, name), node.attribute(f"{name}_as_tensor")
    if tensor is None:
        return found.astype(_type_of(kind))
    if found.size:
        node.contradicts(f"it has both '{name}' and '{name}_as_tensor'")
    return _tensor(node, f"{name}_as_tensor", kind, np.asarray(tensor))


def _tensor(node: Node, name: str, kind: str, tensor: Numbers) -> Numbers:
    """A tensor as an array of one axis, of the type in which features are compared."""
    wanted = _type_of(kind)
    if tensor.dtype != wanted:
        node.contradicts(f"attribute '{name}' has elements of type {tensor.dtype}; samples of {kind} need {wanted}")
    return tensor.reshape(-1)


def nodes_of(node: Node, kind: str) -> Nodes:
    """The nodes of TreeEnsembleRegressor and TreeEnsembleClassifier."""
    trees, numbers = ints(node, "nodes_treeids"), ints(node, "nodes_nodeids")
    count, names = len(trees), node.attribute("nodes_modes", ())
    if not count:
        node.contradicts("attribute 'nodes_treeids' has no elements")
    columns = {name: ints(node, f"nodes_{name}") for name in ("featureids", "truenodeids", "falsenodeids")}
    value = _numbers(node, "nodes_values", kind)
    for name, found in {"nodeids": numbers, "modes": names, **columns, "values": value}.items():
        check_count(node, f"nodes_{name}", len(found), [count])
    unknown = next((name for name in names if name not in MODES or name == "BRANCH_MEMBER"), None)
    if unknown is not None:
        node.contradicts(f"attribute 'nodes_modes' has '{unknown}', not one of {', '.join((*MODES[:MEMBER], LEAF))}")
    mode = np.array([MODES.index(name) for name in names])
    places = _places(node, trees, numbers)
    own = np.arange(count)
    children: dict[str, Places] = {}
    for name in ("truenodeids", "falsenodeids"):
        keys = zip(trees.tolist(), columns[name].tolist(), strict=True)
        found = [place if is_leaf else places.get(key, -1)
                 for key, place, is_leaf in zip(keys, own.tolist(), (mode == END).tolist(), strict=True)]  # fmt: skip
        children[name] = _checked(node, f"nodes_{name}", np.array(found), columns[name])
    starts = np.flatnonzero(np.concatenate([[True], trees[1:] != trees[:-1]]))
    if len(np.unique(trees[starts])) < len(starts):
        node.contradicts("attribute 'nodes_treeids' has nodes of a tree apart from each other")
    features = _features(node, columns["featureids"], mode)
    yes, no = children.values()
    return Nodes(features, value, mode, yes, no, _missing(node, count), starts)


def _features(node: Node, features: Places, mode: Places) -> Places:
    found = np.where(mode == END, 0, features)
    if found.min() < 0:
        node.contradicts(f"attribute 'nodes_featureids' has {found.min()}, which is no feature")
    return found


def _missing(node: Node, count: int) -> Any:
    found = ints(node, "nodes_missing_value_tracks_true")
    check_count(node, "nodes_missing_value_tracks_true", len(found), [0, count])
    return found == 1 if len(found) else np.zeros(count, bool)


def _places(node: Node, trees: Places, numbers: Places) -> dict[tuple[int, int], int]:
    """The place of each node by its tree and number."""
    found = {key: k for k, key in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    if len(found) < len(trees):
        node.contradicts("attribute 'nodes_nodeids' has a number twice in a tree")
    return found


def _checked(node: Node, name: str, places: Places, numbers: Places) -> Places:
    """Places of nodes, none of which is missing."""
    if (places < 0).any():
        node.contradicts(f"attribute '{name}' has node {numbers[places < 0][0]}, which its tree lacks")
    return places


def weights_of(node: Node, prefix: str, count: int, kind: str) -> tuple[Weights, Numbers]:
    """The weights of leaves, and the base values."""
    if count < 1:
        node.contradicts(f"it has {count} targets, not at least 1")
    columns = {name: ints(node, f"{prefix}_{name}") for name in ("ids", "treeids", "nodeids")}
    values = _numbers(node, f"{prefix}_weights", kind)
    for name, found in columns.items():
        check_count(node, f"{prefix}_{name}", len(found), [len(values)])
    trees, numbers = ints(node, "nodes_treeids"), ints(node, "nodes_nodeids")
    places = _places(node, trees, numbers)
    keys = zip(columns["treeids"].tolist(), columns["nodeids"].tolist(), strict=True)
    found = np.array([places.get(key, -1) for key in keys], np.int64)
    _checked(node, f"{prefix}_nodeids", found, columns["nodeids"])
    is_leaf = np.array([name == LEAF for name in node.attribute("nodes_modes", ())], bool)
    # ONNX Runtime ignores weights of branches, which some converters write.
    kept = is_leaf[found]
    made = Weights(found[kept], columns["ids"][kept], values[kept], count)
    return _checked_weights(node, f"{prefix}_ids", made), _numbers(node, "base_values", kind)


def _checked_weights(node: Node, name: str, weights: Weights) -> Weights:
    if len(weights.target) and not 0 <= weights.target.min() <= weights.target.max() < weights.targets:
        node.contradicts(f"attribute '{name}' has numbers that are not from 0 to {weights.targets - 1}")
    if len(np.unique(weights.node * weights.targets + weights.target)) < len(weights.node):
        node.refuse("a leaf has two weights of one target")
    return weights


def nodes_of_ensemble(node: Node, kind: str) -> Nodes:
    """The nodes of TreeEnsemble: its branches, then its leaves."""
    value = _tensor(node, "nodes_splits", kind, np.asarray(node.attribute("nodes_splits", ())))
    count, leaves = len(value), len(ints(node, "leaf_targetids"))
    mode = np.asarray(node.attribute("nodes_modes", ()), np.int64).reshape(-1)
    columns = {name: ints(node, f"nodes_{name}")
               for name in ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")}  # fmt: skip
    for name, found in {"modes": mode, **columns}.items():
        check_count(node, f"nodes_{name}", len(found), [count])
    if not count or mode.max() > MEMBER:
        node.contradicts(f"it has {count} nodes, or one with a mode above {MEMBER}")
    children: dict[str, Places] = {}
    for name in ("true", "false"):
        numbers, is_leaf = columns[f"{name}nodeids"], columns[f"{name}leafs"] != 0
        wrong = (numbers < 0) | (numbers >= np.where(is_leaf, leaves, count))
        _checked(node, f"nodes_{name}nodeids", np.where(wrong, -1, 0), numbers)
        children[name] = np.concatenate([np.where(is_leaf, count, 0) + numbers, count + np.arange(leaves)])
    roots = ints(node, "tree_roots")
    if not len(roots) or roots.min() < 0 or roots.max() >= count:
        node.contradicts(f"attribute 'tree_roots' has numbers that are not from 0 to {count - 1}, or none")
    ends = np.full(leaves, END)
    found = Nodes(
        np.concatenate([_features(node, columns["featureids"], mode), np.zeros(leaves, np.int64)]),
        np.concatenate([value, np.zeros(leaves, value.dtype)]),
        np.concatenate([mode, ends]),
        children["true"],
        children["false"],
        np.concatenate([_missing(node, count), np.zeros(leaves, bool)]),
        roots,
    )
    found.expand_members(_sets(node, kind, int((mode == MEMBER).sum())))
    return found


def _sets(node: Node, kind: str, wanted: int) -> list[Numbers]:
    """The sets of numbers of nodes with the mode of members, which NaN separates."""
    given = node.attribute("membership_values")
    values = np.empty(0) if given is None else _tensor(node, "membership_values", kind, np.asarray(given))
    ends = [-1, *np.flatnonzero(np.isnan(values)).tolist()]
    if not len(values) or not np.isnan(values[-1]):
        ends.append(len(values))
    found = [values[start + 1 : end] for start, end in pairwise(ends)]
    found = [each for each in found if wanted or len(each)]
    if len(found) != wanted:
        node.contradicts(f"attribute 'membership_values' has {len(found)} sets of numbers for {wanted} nodes")
    return found


def weights_of_ensemble(node: Node, kind: str) -> Weights:
    """The weights of TreeEnsemble, one of each leaf."""
    given, targets = np.asarray(node.attribute("leaf_weights", ())), ints(node, "leaf_targetids")
    values, first = _tensor(node, "leaf_weights", kind, given), len(ints(node, "nodes_featureids"))
    check_count(node, "leaf_weights", len(values), [len(targets)])
    if (count := node.attribute("n_targets", 0)) < 1:
        node.contradicts(f"attribute 'n_targets' is {count}, not at least 1")
    return _checked_weights(node, "leaf_targetids", Weights(first + np.arange(len(targets)), targets, values, count))
