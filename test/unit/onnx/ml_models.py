"""Models of one node of `ai.onnx.ml`, random trees and samples, and the comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
runtime: Any = pytest.importorskip("onnxruntime", reason="the reference is ONNX Runtime")

from onnx import ModelProto, TensorProto, helper

from pdojo import onnx

Arrays = Sequence[NDArray[Any]]
ML = "ai.onnx.ml"
TYPES = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "i4": TensorProto.INT32, "i8": TensorProto.INT64}
GRID = np.array([-np.inf, -1.5, -1, -0.5, -0.0, 0, 0.25, 0.5, 1, 2, np.inf, np.nan], np.float32)
"""Numbers of comparisons and of samples: many are equal."""


def model(
    operator: str,
    inputs: Arrays,
    results: Mapping[str, int],
    version: int = 3,
    **attributes: Any,
) -> ModelProto:
    """A model of one node; results with their element types."""
    names = [f"x{k}" for k in range(len(inputs))]
    node = helper.make_node(operator, names, [*results], "n", domain=ML, **attributes)
    given = [
        helper.make_tensor_value_info(name, TYPES[each.dtype.str[1:]], each.shape)
        for name, each in zip(names, inputs, strict=True)
    ]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items() if name]
    graph = helper.make_graph([node], "g", given, made)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def expected(proto: ModelProto, inputs: Arrays) -> list[NDArray[Any]]:
    """The results of ONNX Runtime."""
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{k}": each for k, each in enumerate(inputs)})


def found(proto: ModelProto, inputs: Arrays) -> list[NDArray[Any]]:
    """The results of compiled kernels without moves."""
    results: Any = onnx.load(proto).compile(tune="none")(*inputs)
    return [*results] if isinstance(results, tuple) else [results]


def check(proto: ModelProto, inputs: Arrays, tolerance: float = 2e-6) -> None:
    """Compare all results: integers and NaN exactly."""
    for own, wanted in zip(found(proto, inputs), expected(proto, inputs), strict=True):
        assert own.shape == wanted.shape
        assert own.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(own, wanted, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(own, wanted)


TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
COMPARISONS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


class Trees:
    """Random trees as attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

    def __init__(self, seed: int, trees: int, depth: int, modes: Sequence[str], features: int = 4) -> None:
        self.random = np.random.default_rng(seed)
        self.columns: dict[str, list[Any]] = {
            name: [] for name in "treeids nodeids featureids modes values truenodeids falsenodeids".split()
        }
        self.features, self.modes, self.leaves = features, modes, list[tuple[int, int]]()
        for tree in range(trees):
            self._count = 0
            self._grow(tree, depth)

    def _grow(self, tree: int, depth: int) -> int:
        number, row = self._count, len(self.columns["modes"])
        self._count += 1
        is_leaf = not depth or (number > 0 and self.random.random() < 0.2)
        mode = "LEAF" if is_leaf else str(self.random.choice(list(self.modes)))
        value = 0.0 if is_leaf else float(self.random.choice(GRID[:-1]))
        new = (tree, number, int(self.random.integers(self.features)), mode, value, 0, 0)
        for column, each in zip(self.columns.values(), new, strict=True):
            column.append(each)
        if is_leaf:
            self.leaves.append((tree, number))
            return number
        # ONNX Runtime wants the child of a comparison that fails first.
        for name in ("falsenodeids", "truenodeids"):
            self.columns[name][row] = self._grow(tree, depth - 1)
        return number

    def attributes(self, *, missing: bool = False) -> dict[str, Any]:
        """The attributes of nodes."""
        found = {f"nodes_{name}": column for name, column in self.columns.items()}
        if missing:
            found["nodes_missing_value_tracks_true"] = self.random.integers(0, 2, len(self.columns["modes"])).tolist()
        return found

    def weights(
        self, prefix: str, targets: Sequence[int], *, share: float = 1, positive: bool = False, only: bool = False
    ) -> dict[str, Any]:
        """Weights of leaves: a share of all targets for each, or `only` one target for each tree."""
        rows: list[tuple[int, int, int, float]] = []
        for tree, number in self.leaves:
            for target in [targets[tree % len(targets)]] if only else targets:
                if self.random.random() < share:
                    value = float(self.random.normal())
                    rows.append((target, tree, number, abs(value) / 8 if positive else value))
        names = ("ids", "treeids", "nodeids", "weights")
        return {f"{prefix}_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def samples(seed: int, rows: int = 40, features: int = 4, dtype: str = "f4") -> NDArray[Any]:
    """Rows of numbers of the grid, of NaN, and of others."""
    random = np.random.default_rng(seed)
    if dtype[0] == "i":
        return random.integers(-3, 4, (rows, features)).astype(dtype)
    found = random.choice(GRID, (rows, features)).astype(dtype)
    return np.where(random.random(found.shape) < 0.3, random.normal(size=found.shape), found).astype(dtype)
