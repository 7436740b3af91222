"""Functions of the leaves of single trees, which are tables, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
pytest.importorskip("onnxruntime", reason="the reference is ONNX Runtime")

from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from pdojo import onnx
from unit.onnx.ml_models import COMPARISONS, ML, Trees, check, expected, samples

ROWS = 23


class Forest:
    """A graph of ensembles of one tree each, and nodes behind them."""

    def __init__(
        self, seed: int, trees: int, classes: int = 0, modes: Sequence[str] = ("BRANCH_LEQ",), depth: int = 2
    ) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.values: list[str] = []
        self.labels: list[str] = []
        for k in range(trees):
            made = Trees(seed * 100 + k, 1, depth + k % 3, modes)
            name = f"t{k}"
            if classes:
                weights, labels = made.weights("class", range(classes), positive=True), [*range(classes)]
                results = [f"l{k}", name]
                self.add(
                    "TreeEnsembleClassifier", ["x0"], results, classlabels_int64s=labels, **made.attributes(), **weights
                )
                self.labels.append(f"l{k}")
            else:
                weights = made.weights("target", [0])
                self.add("TreeEnsembleRegressor", ["x0"], [name], n_targets=1, **made.attributes(), **weights)
            self.values.append(name)

    def add(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> str:
        """Add a node; the name of its first result."""
        domain = ML if operator.startswith("Tree") or operator == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result, and give its name."""
        return self.add(operator, inputs, [f"v{len(self.nodes)}"], **attributes)

    def known(self, value: Any, dtype: str = "f4") -> str:
        """Add a constant, and give its name."""
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def model(self, outputs: dict[str, int], rows: int | str = ROWS) -> ModelProto:
        """The model with outputs of these types."""
        given = [helper.make_tensor_value_info("x0", 1, [rows, 4])]
        made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
        graph = helper.make_graph(self.nodes, "g", given, made, self.constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _calls(proto: ModelProto, rows: int = ROWS) -> int:
    return len(onnx.load(proto).specialise(samples(1, rows)).calls)


def _chain(made: Forest, value: str, random: np.random.Generator) -> str:
    """A function of each row, of one column."""
    for _ in range(int(random.integers(1, 5))):
        match int(random.integers(6)):
            case 0:
                value = made.node("Mul", value, made.known(float(random.normal())))
            case 1:
                value = made.node("Max", made.known([[float(random.normal())]]), value)
            case 2:
                over = made.node("Greater", value, made.known([0.0]))
                value = made.node("Where", over, value, made.known([-0.25]))
            case 3:
                value = made.node("Add", value, made.node("Exp", made.node("Neg", made.node("Abs", value))))
            case 4:
                value = made.node("Reshape", value, made.known([-1, 1], "i8"))
            case _:
                number = made.node("Cast", made.node("Mul", value, made.known(3.0)), to=TensorProto.INT64)
                keys = list(range(-4, 5))
                numbers = [float(each) for each in random.normal(size=len(keys)).round(3)]
                value = made.node("LabelEncoder", number, keys_int64s=keys, values_floats=numbers, default_float=0.5)
    return value


@pytest.mark.parametrize("depth", [2, 8])
@pytest.mark.parametrize("seed", range(6))
def test_chains_of_rows(seed: int, depth: int) -> None:
    """Sums and stacks of functions of leaves, and functions that are results themselves; of few leaves and many."""
    random = np.random.default_rng(seed)
    made = Forest(seed, 5, modes=COMPARISONS, depth=depth)
    ends = [_chain(made, value, random) for value in made.values]
    total = made.node("Add", made.node("Sum", *ends[:4]), ends[4])
    proto = made.model({total: 1, made.node("Concat", *ends[::-1], axis=1): 1, ends[2]: 1, made.values[1]: 1})
    check(proto, [samples(seed, ROWS)])


@pytest.mark.parametrize("classes", [2, 3])
def test_votes(classes: int) -> None:
    """Classes with the greatest scores vote, as in AdaBoost: all comparisons and one lookup."""
    made = Forest(3, 6, classes)
    numbers, one = made.known([list(range(classes))], "i8"), made.node("ConstantOfShape", made.node("Shape", "t0"))
    votes: list[str] = []
    for k, value in enumerate(made.values):
        best = made.node("ArgMax", value, axis=1)
        chosen = made.node(
            "Where", made.node("Equal", best, numbers), made.node("Add", one, made.known(1.0)), made.known([-0.5])
        )
        votes.append(made.node("Mul", chosen, made.known(0.5 + k)))
    proto = made.model({made.node("Sum", *votes): 1})
    check(proto, [samples(5, ROWS)])
    assert _calls(proto) == 3


@pytest.mark.parametrize("classes", [2, 3])
def test_stacks(classes: int) -> None:
    """Scores side by side, and one behind the other for a mean, as in bagging; with labels."""
    made = Forest(7, 5, classes)
    first = [made.node("Reshape", value, made.known([1, -1, classes], "i8")) for value in made.values]
    order = [2, 0, 1, 4, 3]
    mean = made.node(
        "ReduceMean", made.node("Concat", *(first[k] for k in order), axis=0), made.known([0], "i8"), keepdims=0
    )
    wide = made.node("Concat", *made.values, axis=-1)
    proto = made.model({mean: 1, wide: 1, made.labels[0]: 7, made.labels[3]: 7})
    check(proto, [samples(9, ROWS)])


def test_nodes_across_rows() -> None:
    """Nodes that see several samples at once take the tensors."""
    made = Forest(11, 4)
    a, b, c, d = made.values
    across = [
        made.node("ReduceMax", a, made.known([0], "i8")),
        made.node("Reshape", b, made.known([1, ROWS], "i8")),
        made.node("Mul", c, made.known(np.arange(ROWS)[:, None])),
        made.node("Transpose", d, perm=[1, 0]),
        made.node("Mul", made.node("Squeeze", a, made.known([1], "i8")), b),
        made.node("CumSum", made.node("Mul", a, made.known(2.0)), made.known(0, "i8")),
        made.node("ArgMax", b, axis=0),
        made.node("Softmax", c, axis=0),
        made.node("Concat", a, b, axis=0),
        made.node("Mul", a, b),
        made.node("MatMul", made.node("Transpose", a, perm=[1, 0]), b),
    ]
    kinds = [7 if k == 6 else 1 for k in range(len(across))]
    check(made.model(dict(zip(across, kinds, strict=True))), [samples(13, ROWS)])


def test_trees_of_results() -> None:
    """Trees of samples that other trees compute, and of two inputs' worth of features."""
    made = Forest(17, 3)
    wide = made.node("Concat", *made.values, made.node("Sum", *made.values), axis=1)
    ends: list[str] = []
    for k in range(3):
        trees = Trees(40 + k, 1, 3, ["BRANCH_LT"])
        attributes = trees.attributes() | trees.weights("target", [0])
        ends.append(made.add("TreeEnsembleRegressor", [wide], [f"u{k}"], n_targets=1, **attributes))
    several = Trees(50, 4, 3, ["BRANCH_LEQ"])
    more = several.attributes() | several.weights("target", [0])
    other = made.add("TreeEnsembleRegressor", ["x0"], ["w"], n_targets=1, **more)
    check(made.model({made.node("Sum", *ends, other, made.values[0]): 1}), [samples(19, ROWS)])


def test_any_number_of_samples() -> None:
    """One plan for a range of batches, in which tables are the same."""
    made = Forest(23, 6, 3)
    shape = made.node("Shape", "t2")
    ones = made.node("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([2.0], np.float32)))
    ends = [made.node("Where", made.node("Greater", each, made.known([0.1])), ones, each) for each in made.values]
    proto = made.model({made.node("Sum", *ends): 1}, "n")
    compiled = onnx.load(proto).compile(tune="none")
    for rows in (31, 12, 5, 1, 2):
        inputs = [samples(rows, rows)]
        np.testing.assert_allclose(compiled(*inputs), expected(proto, inputs)[0], rtol=2e-6, atol=2e-6)
    assert _calls(proto) == 3


@pytest.mark.parametrize("depth", [3, 8])
def test_isolation_forest(depth: int) -> None:
    """Fifty trees are walked by as many kernels as the deepest has levels; all comparisons of small ones are one."""
    made = Forest(29, 50, depth=depth)
    ends = [made.node("Log", made.node("Max", value, made.known(0.25))) for value in made.values]
    proto = made.model({made.node("Sum", *ends): 1})
    check(proto, [samples(29, ROWS)], 1e-5)
    assert _calls(proto) == (3 if depth == 3 else 11)
