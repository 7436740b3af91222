"""Trees of `ai.onnx.ml` against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pdojo.errors import UsageError

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
pytest.importorskip("onnxruntime", reason="the reference is ONNX Runtime")

from onnx import ModelProto, helper, numpy_helper, parser

from pdojo import onnx
from unit.onnx.ml_models import COMPARISONS, ML, TRANSFORMS, Trees, check, expected, model, samples


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("mode", [*COMPARISONS, ""])
def test_comparisons(mode: str, missing: bool) -> None:
    """Each comparison, and all of them together, of equal numbers, infinities and NaN."""
    trees = Trees(7, 6, 5, [mode] if mode else COMPARISONS)
    inputs = [samples(3, 200)]
    attributes = trees.attributes(missing=missing) | trees.weights("target", [0])
    check(model("TreeEnsembleRegressor", inputs, {"y": 1}, n_targets=1, **attributes), inputs)


@pytest.mark.parametrize("dtype", ["f8", "i4", "i8"])
def test_types_of_samples(dtype: str) -> None:
    """Samples of f64 are compared as such, integers as f32."""
    trees = Trees(1, 5, 4, COMPARISONS)
    inputs = [samples(4, 60, dtype=dtype)]
    attributes = trees.attributes() | trees.weights("class", [0, 1, 2])
    proto = model("TreeEnsembleClassifier", inputs, {"l": 7, "y": 1}, classlabels_int64s=[0, 1, 2], **attributes)
    check(proto, inputs)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_aggregates(aggregate: str, only: bool, targets: int) -> None:
    """Aggregates of all targets and of one for each tree, with base values."""
    trees = Trees(2, 7, 3, ["BRANCH_LEQ"])
    inputs = [samples(5)]
    share = 0.7 if targets > 1 else 1
    attributes = trees.attributes() | trees.weights("target", range(targets), share=share, only=only)
    base = [0.5, -1.0, 2.0][:targets]
    options: list[dict[str, Any]] = [{}, {"base_values": base}]
    for more in options:
        proto = model(
            "TreeEnsembleRegressor", inputs, {"y": 1},
            n_targets=targets, aggregate_function=aggregate, **attributes, **more,
        )  # fmt: skip
        check(proto, inputs)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_targets(transform: str) -> None:
    """Transforms of one target and of several."""
    inputs = [samples(6)]
    for targets in (1, 3):
        trees = Trees(3, 5, 3, ["BRANCH_LEQ"])
        attributes = trees.attributes() | trees.weights("target", range(targets), positive=transform == "PROBIT")
        proto = model(
            "TreeEnsembleRegressor", inputs, {"y": 1}, n_targets=targets, post_transform=transform, **attributes
        )
        check(proto, inputs, 2e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("base", [False, True])
def test_many_classes(transform: str, only: bool, base: bool) -> None:
    """Labels and scores of three classes, of which leaves may lack some."""
    trees = Trees(11, 7, 3, ["BRANCH_LEQ", "BRANCH_GT"])
    inputs = [samples(8)]
    weights = trees.weights("class", [0, 1, 2], share=0.8, only=only, positive=transform == "PROBIT")
    more: dict[str, Any] = {"base_values": [0.1, 0.2, -0.1]} if base else {}
    attributes = trees.attributes() | weights | more
    proto = model(
        "TreeEnsembleClassifier", inputs, {"l": 7, "y": 1},
        classlabels_int64s=[4, 7, 5], post_transform=transform, **attributes,
    )  # fmt: skip
    check(proto, inputs, 2e-5)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [[0], [1], [0, 1]])
@pytest.mark.parametrize("base", [0, 1, 2])
def test_two_classes(base: int, classes: Sequence[int], positive: bool, transform: str) -> None:
    """Two classes with weights of one of them, or of both, and all numbers of base values."""
    inputs = [samples(9)]
    for share in (1, 0.7):
        if base == 1 and len(classes) == 2 and share < 1:
            continue  # ONNX Runtime leaves a score open.
        trees = Trees(13, 5, 3, ["BRANCH_LEQ"])
        weights = trees.weights("class", classes, positive=positive, share=share)
        more: dict[str, Any] = {"base_values": [0.25, 0.125][:base]} if base else {}
        attributes = trees.attributes() | weights | more
        proto = model(
            "TreeEnsembleClassifier", inputs, {"l": 7, "y": 1},
            classlabels_int64s=[3, 8], post_transform=transform, **attributes,
        )  # fmt: skip
        check(proto, inputs)


MEMBER = 6


def ensemble(seed: int, trees: int, depth: int, dtype: str, modes: Sequence[int], targets: int = 2) -> dict[str, Any]:
    """Random attributes of TreeEnsemble, whose branches and leaves have numbers of their own."""
    source = Trees(seed, trees, depth, [COMPARISONS[0]])
    random, columns = source.random, source.columns
    rows, roots, leaves = dict[tuple[int, int], int](), list[int](), 0
    numbers = list(zip(columns["treeids"], columns["nodeids"], strict=True))
    is_leaf = [mode == "LEAF" for mode in columns["modes"]]
    for key, leaf in zip(numbers, is_leaf, strict=True):
        rows[key] = leaves if leaf else len(rows) - leaves
        leaves += leaf
        if key[1] == 0:
            roots.append(rows[key])
    kept = [k for k, leaf in enumerate(is_leaf) if not leaf]
    mode = random.choice(list(modes), len(kept)).astype(np.uint8)
    found: dict[str, Any] = {"tree_roots": roots, "nodes_featureids": [columns["featureids"][k] for k in kept]}
    for name in ("true", "false"):
        children = [(columns["treeids"][k], columns[f"{name}nodeids"][k]) for k in kept]
        found[f"nodes_{name}nodeids"] = [rows[child] for child in children]
        found[f"nodes_{name}leafs"] = [int(is_leaf[numbers.index(child)]) for child in children]
    sets = [[*random.permutation(6)[: random.integers(1, 5)], np.nan] for _ in range((mode == MEMBER).sum())]
    splits = np.where(mode == MEMBER, 0, [columns["values"][k] for k in kept])
    tensors = {"nodes_splits": splits, "leaf_weights": random.normal(size=leaves)}
    if sets:
        tensors["membership_values"] = np.concatenate(sets)
    found |= {name: numpy_helper.from_array(values.astype(dtype)) for name, values in tensors.items()}
    targetids = random.integers(0, targets, leaves).tolist()
    return {**found, "nodes_modes": numpy_helper.from_array(mode), "leaf_targetids": targetids, "n_targets": targets}


@pytest.mark.parametrize("modes", [[0], [MEMBER], range(7)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("targets", [1, 3])
def test_ensembles(targets: int, dtype: str, modes: Sequence[int]) -> None:
    """TreeEnsemble, with sets of numbers too."""
    x = samples(21, 100, dtype=dtype)
    # ONNX Runtime has sets of integers only.
    inputs = [np.round(x * 2) if MEMBER in modes else x]
    attributes = ensemble(22, 6, 4, dtype, modes, targets)
    check(model("TreeEnsemble", inputs, {"y": 1 if dtype == "f4" else 11}, 5, **attributes), inputs)


@pytest.mark.parametrize("aggregate", range(4))
@pytest.mark.parametrize("transform", range(3))
def test_aggregates_of_ensembles(transform: int, aggregate: int) -> None:
    """Aggregates and transforms by their numbers; ONNX Runtime takes 2 for softmax and 1 for logistic."""
    inputs = [samples(23)]
    attributes = {**ensemble(24, 6, 3, "f4", [0], 3), "aggregate_function": aggregate}
    proto, other = (
        model("TreeEnsemble", inputs, {"y": 1}, 5, post_transform=number, **attributes)
        for number in (transform, [0, 2, 1][transform])
    )
    np.testing.assert_allclose(onnx.load(proto).run(*inputs), expected(other, inputs)[0], rtol=2e-6, atol=2e-6)


def test_one_sample_one_tree_one_leaf() -> None:
    """The least ensembles."""
    for depth, rows in ((0, 3), (1, 1), (2, 1)):
        trees = Trees(5, 1, depth, ["BRANCH_LEQ"])
        inputs = [samples(6, rows)]
        attributes = trees.attributes() | trees.weights("target", [0])
        check(model("TreeEnsembleRegressor", inputs, {"y": 1}, n_targets=1, **attributes), inputs)


def test_many_trees_of_many_samples_with_moves() -> None:
    """Kernels of the pass, at several numbers of samples: one plan has all of them."""
    trees = Trees(8, 30, 7, ["BRANCH_LEQ"], features=9)
    attributes = trees.attributes() | trees.weights("class", range(4))
    proto = model(
        "TreeEnsembleClassifier", [samples(1, 700, 9)], {"l": 7, "y": 1}, classlabels_int64s=[0, 1, 2, 3], **attributes
    )
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    loaded = onnx.load(proto)
    for rows in (700, 40, 333):
        inputs = [samples(rows, rows, 9)]
        labels, scores = loaded.run(*inputs)
        wanted = expected(proto, inputs)
        np.testing.assert_array_equal(labels, wanted[0])
        np.testing.assert_allclose(scores, wanted[1], rtol=2e-6, atol=2e-6)


def two_outputs(strings: Sequence[str], *, maps: bool) -> tuple[ModelProto, np.ndarray[Any, np.dtype[np.float32]]]:
    """A classifier with labels of strings, whose scores are maps or a tensor."""
    trees, x = Trees(15, 5, 3, ["BRANCH_LEQ"]), samples(16)
    attributes = trees.attributes() | trees.weights("class", range(len(strings)))
    proto = model("TreeEnsembleClassifier", [x], {"l": 8, "y": 1}, classlabels_strings=strings, **attributes)
    if maps:
        proto.graph.node.append(helper.make_node("ZipMap", ["y"], ["z"], "m", domain=ML, classlabels_strings=strings))
        text = "<ir_version: 10, opset_import: ['' : 21]> g (float x) => (seq(map(string, float)) z) { z = A (x) }"
        proto.graph.output[1].CopyFrom(parser.parse_model(text.replace("'", '"')).graph.output[0])
    return proto, x


@pytest.mark.parametrize("maps", [False, True])
def test_labels_of_strings(maps: bool) -> None:
    """NumPy makes strings of the numbers of classes, unless nothing needs them; scores replace maps."""
    strings = ["low", "middle", "high"]
    proto, x = two_outputs(strings, maps=maps)
    labels, scores = onnx.load(proto).run(x)
    wanted = expected(proto, [x])
    assert labels.tolist() == wanted[0].tolist()
    rows = [[row[name] for name in strings] for row in wanted[1]] if maps else wanted[1]
    np.testing.assert_allclose(scores, rows, rtol=2e-6, atol=2e-6)
    explained = onnx.load(proto).explain(x)
    assert [each.title for each in explained.steps] == ["node 'n' (LabelEncoder)"]
    assert any("'z' is the tensor 'y'" in line for line in explained.remarks) == maps
    del proto.graph.output[0]
    loaded = onnx.load(proto)
    np.testing.assert_allclose(loaded.run(x), rows, rtol=2e-6, atol=2e-6)
    assert not loaded.explain(x).steps


@pytest.mark.parametrize(("changed", "reason"), [
    ({"nodes_modes": ["BRANCH_MOST"] * 3}, "attribute 'nodes_modes' has 'BRANCH_MOST', not one of BRANCH_LEQ"),
    ({"nodes_truenodeids": [7, 0, 0]}, "attribute 'nodes_truenodeids' has node 7, which its tree lacks"),
    ({"nodes_truenodeids": [0, 0, 0]}, "the children of a node lead back to it"),
    ({"nodes_values": [0.0]}, "attribute 'nodes_values' has 1 elements, not 3"),
    ({"nodes_nodeids": [0, 1, 1]}, "attribute 'nodes_nodeids' has a number twice in a tree"),
    ({"nodes_featureids": [9, 0, 0]}, "a node compares feature 9 of samples of 4 features"),
    ({"nodes_featureids": [-1, 0, 0]}, "attribute 'nodes_featureids' has -1, which is no feature"),
    ({"target_ids": [0, 3]}, "attribute 'target_ids' has numbers that are not from 0 to 0"),
    ({"target_nodeids": [1, 1]}, "a leaf has two weights of one target"),
    ({"target_nodeids": [1, 5]}, "attribute 'target_nodeids' has node 5, which its tree lacks"),
    ({"base_values": [1.0, 2.0]}, "attribute 'base_values' has 2 elements, not 0 or 1"),
    ({"aggregate_function": "MEDIAN"}, "attribute 'aggregate_function' is 'MEDIAN', not one of AVERAGE"),
    ({"post_transform": "TANH"}, "attribute 'post_transform' is 'TANH', not one of NONE"),
    ({"n_targets": 0}, "it has 0 targets, not at least 1"),
])  # fmt: skip
def test_wrong_attributes(changed: dict[str, Any], reason: str) -> None:
    """Each names the node."""
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "n_targets": 1,
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
    }  # fmt: skip
    inputs = [samples(1)]
    proto = model("TreeEnsembleRegressor", inputs, {"y": 1}, **(attributes | changed))
    with pytest.raises(UsageError, match=rf"node 'n' \(TreeEnsembleRegressor\): {reason}"):
        onnx.load(proto).run(*inputs)
