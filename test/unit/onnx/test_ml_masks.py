"""Trees whose comparisons are made at once, and those that are walked, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
pytest.importorskip("onnxruntime", reason="the reference is ONNX Runtime")

from pdojo import onnx
from unit.onnx.ml_models import COMPARISONS, GRID, check, model, samples


def _trees(seed: int, counts: list[int], shape: str, *, equal: bool = False) -> dict[str, Any]:
    """Random trees of these numbers of leaves as attributes of a regressor: of any shape, or chains to one side."""
    random = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    weights: list[tuple[int, int]] = []

    def grow(tree: int, first: int, leaves: int) -> int:
        """Add a subtree from a number on, and give the next number."""
        if leaves == 1:
            rows.append((tree, first, 0, "LEAF", 0.0, 0, 0, 0))
            weights.append((tree, first))
            return first + 1
        yes = {"left": leaves - 1, "right": 1}.get(shape, int(random.integers(1, leaves)))
        place = len(rows)
        rows.append(())
        middle = grow(tree, first + 1, yes)
        end = grow(tree, middle, leaves - yes)
        mode = "BRANCH_LEQ" if equal else str(random.choice(list(COMPARISONS)))
        value = float(random.normal() if random.random() < 0.5 else random.choice(GRID[:-1]))
        # NaN that equals a number has two ways to a leaf.
        missing = int(random.integers(2)) if mode != "BRANCH_EQ" else 0
        rows[place] = (tree, first, int(random.integers(4)), mode, value, first + 1, middle, missing)
        return end

    for tree, leaves in enumerate(counts):
        grow(tree, 0, leaves)
    names = "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true".split()
    found = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    trees, nodes = zip(*weights, strict=True)
    numbers = random.normal(size=len(weights)).round(3).tolist()
    return found | {
        "target_ids": [0] * len(weights), "target_treeids": list(trees), "target_nodeids": list(nodes),
        "target_weights": numbers, "n_targets": 1,
    }  # fmt: skip


def _calls(proto: Any, inputs: Any) -> int:
    return len(onnx.load(proto).specialise(*inputs).calls)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", ["any", "left", "right"])
@pytest.mark.parametrize("leaves", [2, 31, 32, 33, 63, 64])
def test_few_leaves(leaves: int, shape: str, dtype: str) -> None:
    """As many bits as there are leaves, up to the last one, with trees of fewer leaves beside them, and NaN."""
    inputs = [samples(leaves, 150, dtype=dtype)]
    proto = model("TreeEnsembleRegressor", inputs, {"y": 1}, **_trees(leaves, [leaves, 1, 2, leaves, 5], shape))
    check(proto, inputs)
    assert _calls(proto, inputs) == 3


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("leaves", [65, 200])
def test_many_leaves(leaves: int, equal: bool) -> None:
    """Trees of more leaves are walked."""
    inputs = [samples(leaves, 150)]
    proto = model("TreeEnsembleRegressor", inputs, {"y": 1}, **_trees(leaves, [3, leaves, 1], "any", equal=equal))
    check(proto, inputs)
    assert _calls(proto, inputs) > 5


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 333])
def test_numbers_of_samples(rows: int) -> None:
    """Any number of samples."""
    inputs = [samples(rows, rows)]
    check(model("TreeEnsembleRegressor", inputs, {"y": 1}, **_trees(5, [9, 12, 31], "any")), inputs)


def test_computed_samples() -> None:
    """Samples that a kernel computes."""
    from onnx import helper

    given = [samples(3, 50)]
    proto = model("TreeEnsembleRegressor", given, {"y": 1}, **_trees(6, [20, 7, 32], "any"))
    before = helper.make_node("Scaler", ["x0"], ["z"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    proto.graph.node[0].input[0] = "z"
    proto.graph.node.insert(0, before)
    check(proto, given)


@pytest.mark.parametrize("targets", [1, 3])
def test_trees_of_many_depths(targets: int) -> None:
    """Steps leave out the trees that have ended."""
    inputs = [samples(8, 60)]
    attributes: dict[str, Any] = _trees(9, [70, 3, 100, 9, 80, 1, 12, 5], "any") | {"n_targets": targets}
    attributes["target_ids"] = [k % targets for k, _ in enumerate(attributes["target_ids"])]
    proto = model("TreeEnsembleRegressor", inputs, {"y": 1}, **attributes)
    check(proto, inputs)
    shapes = {step.outputs[0].shape for step in onnx.load(proto).specialise(*inputs).calls}
    assert len({shape[-1] for shape in shapes if shape[0] == 60}) > 2
