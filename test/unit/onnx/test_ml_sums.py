"""Linear models, support vectors and features of `ai.onnx.ml` against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.errors import IndexOutOfRange, UsageError

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")
pytest.importorskip("onnxruntime", reason="the reference is ONNX Runtime")


from onnx import TensorProto, helper

from pdojo import onnx
from unit.onnx.ml_models import ML, TRANSFORMS, check, model, samples


def normal(seed: int, rows: int = 40, features: int = 5) -> NDArray[np.float32]:
    """Rows of normal numbers."""
    return np.random.default_rng(seed).normal(size=(rows, features)).astype(np.float32)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("offsets", [False, True])
def test_linear_regressor(targets: int, offsets: bool, transform: str) -> None:
    """Sums with and without intercepts, and transforms of several targets."""
    random, inputs = np.random.default_rng(1), [normal(2)]
    scale = 0.1 if transform == "PROBIT" else 1
    more = {"intercepts": random.uniform(0.4, 0.6, targets).tolist()} if offsets or scale < 1 else {}
    proto = model(
        "LinearRegressor", inputs, {"y": 1}, 1, coefficients=(random.normal(size=targets * 5) * scale).tolist(),
        targets=targets, post_transform=transform, **more,
    )  # fmt: skip
    check(proto, inputs, 1e-3 if transform == "PROBIT" else 1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("scores", "labels"), [(1, [3, 9]), (2, [5, 2]), (4, [1, 5, 0, 9])])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_linear_classifier(dtype: str, scores: int, labels: Sequence[int], transform: str) -> None:
    """One score of two classes, and one for each."""
    random = np.random.default_rng(3)
    inputs = [(normal(4) * 3).astype(dtype)]
    scale = 0.05 if transform == "PROBIT" else 1
    proto = model(
        "LinearClassifier", inputs, {"l": 7, "y": 1}, 1, coefficients=(random.normal(size=scores * 5) * scale).tolist(),
        intercepts=random.uniform(0.4, 0.6, scores).tolist(), classlabels_ints=labels, post_transform=transform,
    )  # fmt: skip
    if transform == "PROBIT" and scores == 1:
        with pytest.raises(UsageError, match="no second score of a PROBIT"):
            onnx.load(proto).run(*inputs)
    else:
        check(proto, inputs, 1e-3 if transform == "PROBIT" else 1e-5)


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.5, 1.0, 3.0], "RBF": [0.3, 0.0, 0.0], "SIGMOID": [0.1, 0.2, 0.0]}


@pytest.mark.parametrize("kernel", [*KERNELS, "POLY4"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(kernel: str, one_class: int) -> None:
    """All kernel functions."""
    random, inputs = np.random.default_rng(5), [normal(6)]
    parameters = [0.5, 1.0, 4.0] if kernel == "POLY4" else KERNELS[kernel]
    proto = model(
        "SVMRegressor", inputs, {"y": 1}, 1, coefficients=random.normal(size=12).tolist(), n_supports=12, rho=[0.3],
        support_vectors=random.normal(size=60).tolist(), kernel_type=kernel[:7].rstrip("4"), kernel_params=parameters,
        one_class=one_class,
    )  # fmt: skip
    check(proto, inputs, 1e-3 if kernel == "POLY4" else 5e-5)


def test_svm_regressor_without_vectors() -> None:
    """A row of coefficients."""
    random, inputs = np.random.default_rng(7), [normal(8)]
    coefficients = random.normal(size=5).tolist()
    proto = model(
        "SVMRegressor", inputs, {"y": 1}, 1, coefficients=coefficients, rho=[0.3], kernel_params=[0.0, 0.0, 0.0]
    )
    check(proto, inputs, 1e-5)


def svm(seed: int, counts: Sequence[int], kernel: str, **more: Any) -> dict[str, Any]:
    """The attributes of a classifier with support vectors."""
    random, classes, total = np.random.default_rng(seed), len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    return {
        "classlabels_ints": (np.arange(classes) * 2 + 3).tolist(),
        "vectors_per_class": list(counts),
        "coefficients": random.normal(size=(classes - 1) * total).tolist(),
        "support_vectors": random.normal(size=total * 5).tolist(),
        "rho": random.normal(size=pairs).tolist(),
        "kernel_type": kernel,
        "kernel_params": KERNELS[kernel],
        **more,
    }


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("counts", [[3, 5], [4, 2, 3], [2, 3, 1, 4]])
@pytest.mark.parametrize("kernel", [*KERNELS])
def test_svm_classifier(kernel: str, counts: Sequence[int], transform: str) -> None:
    """Votes and scores of pairs of classes."""
    inputs = [normal(9)]
    attributes = svm(10, counts, kernel, post_transform=transform)
    check(model("SVMClassifier", inputs, {"l": 7, "y": 1}, 1, **attributes), inputs, 2e-4)


@pytest.mark.parametrize("counts", [[3, 5], [4, 2, 3], [2, 3, 1, 4, 2]])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_svm_probabilities(dtype: str, counts: Sequence[int]) -> None:
    """Probabilities of classes from those of pairs."""
    random, inputs = np.random.default_rng(11), [normal(12, 200).astype(dtype)]
    pairs = len(counts) * (len(counts) - 1) // 2
    chances = {"prob_a": random.normal(size=pairs).tolist(), "prob_b": random.normal(size=pairs).tolist()}
    check(model("SVMClassifier", inputs, {"l": 7, "y": 1}, 1, **svm(13, counts, "RBF", **chances)), inputs, 1e-4)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("transform", TRANSFORMS[:4])
def test_svm_classifier_without_vectors(transform: str, classes: int, positive: bool) -> None:
    """A row of coefficients for each class."""
    random, inputs = np.random.default_rng(14), [normal(15)]
    weights = random.normal(size=classes * 5)
    proto = model(
        "SVMClassifier", inputs, {"l": 7, "y": 1}, 1, coefficients=(abs(weights) if positive else weights).tolist(),
        classlabels_ints=[7, 4, 9][:classes], rho=[0.1], post_transform=transform, kernel_params=[0.0, 0.0, 0.0],
    )  # fmt: skip
    check(proto, inputs, 1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("count", [1, 4])
def test_scaler(dtype: str, count: int) -> None:
    """Offsets and scales of all features or of each."""
    inputs = [samples(1, dtype=dtype)]
    offset, scale = np.random.default_rng(2).normal(size=(2, count)).tolist()
    check(model("Scaler", inputs, {"y": 1}, 1, offset=offset, scale=scale), inputs)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(dtype: str, norm: str) -> None:
    """Norms, also of rows of zeros."""
    rows = (np.random.default_rng(3).normal(size=(20, 4)) * 4).astype(dtype)
    rows[3] = 0
    inputs = [rows]
    check(model("Normalizer", inputs, {"y": 1}, 1, norm=norm), inputs)


@pytest.mark.parametrize("old", [float("nan"), 0.5])
@pytest.mark.parametrize("count", [1, 4])
def test_imputer(count: int, old: float) -> None:
    """NaN and other numbers replaced."""
    inputs = [samples(4)]
    new = [5.0, 6.0, 7.0, 8.0][:count]
    check(model("Imputer", inputs, {"y": 1}, 1, imputed_value_floats=new, replaced_value_float=old), inputs)
    inputs = [samples(5, dtype="i8")]
    integers = [9, 8, 7, 6][:count]
    check(model("Imputer", inputs, {"y": 7}, 1, imputed_value_int64s=integers, replaced_value_int64=2), inputs)


def test_binarizer() -> None:
    """Numbers above a threshold; ONNX Runtime refuses NaN."""
    inputs = [np.nan_to_num(samples(6))]
    check(model("Binarizer", inputs, {"y": 1}, 1, threshold=0.25), inputs)


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7)])
def test_array_feature_extractor(shape: Sequence[int]) -> None:
    """Known and computed indices of the last axis."""
    random = np.random.default_rng(7)
    inputs = [random.normal(size=shape).astype(np.float32), np.array([[3, 0, 6]])]
    check(model("ArrayFeatureExtractor", inputs, {"y": 1}, 1), inputs)


def test_feature_vectorizer() -> None:
    """Inputs as they are, shortened and extended."""
    for dtype in ("f4", "f8", "i8"):
        inputs = [samples(seed, dtype=dtype) for seed in (8, 9, 10)]
        check(model("FeatureVectorizer", inputs, {"y": 1}, 1, inputdimensions=[4, 2, 6]), inputs)


@pytest.mark.parametrize("categories", [[-1, 0, 1, 2], [5, -3, 2, 0, 1]])
def test_one_hot_encoder(categories: Sequence[int]) -> None:
    """Integers and numbers that are cut to integers; unknown categories are zeros."""
    for dtype in ("i8", "f4"):
        inputs = [(samples(11, dtype="i8") if dtype == "i8" else normal(12) * 2).astype(dtype)]
        check(model("OneHotEncoder", inputs, {"y": 1}, 1, cats_int64s=categories), inputs)


def test_one_hot_encoder_of_known_categories() -> None:
    """Without zeros for other categories these are errors of the call."""
    inputs = [np.random.default_rng(16).choice([5, -3, 2], (30, 2))]
    proto = model("OneHotEncoder", inputs, {"y": 1}, 1, cats_int64s=[5, -3, 2], zeros=0)
    check(proto, inputs)
    with pytest.raises(IndexOutOfRange):
        onnx.load(proto).run(np.full((30, 2), 4))


def test_one_hot_encoder_of_strings() -> None:
    """NumPy computes it."""
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], "n", domain=ML, cats_strings=["a", "b", "c"])
    given = [helper.make_tensor_value_info("x", TensorProto.STRING, [3])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])]
    graph = helper.make_graph([node], "g", given, made)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    x = np.array(["b", "d", "a"], object)
    assert np.array_equal(onnx.load(proto).run(x), [[0, 1, 0], [0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(("keys", "values", "kinds"), [
    ("int64s", "int64s", ("i8", 7)), ("int64s", "floats", ("i8", 1)),
    ("floats", "int64s", ("f4", 7)), ("floats", "floats", ("f4", 1)),
])  # fmt: skip
def test_label_encoder(keys: str, values: str, kinds: tuple[str, int]) -> None:
    """Keys and values of both types, NaN too, with a default for others."""
    known = {"int64s": [3, -2, 1], "floats": [0.5, -1.0, float("nan"), 2.0]}
    new = {"int64s": [10**17 + 1, -5, 0, 3], "floats": [0.125, -2.5, float("inf"), 9.0]}
    inputs = [samples(13, dtype=kinds[0])]
    attributes = {f"keys_{keys}": known[keys], f"values_{values}": new[values][: len(known[keys])]}
    default = {"default_int64": 77} if values == "int64s" else {"default_float": 77.5}
    check(model("LabelEncoder", inputs, {"y": kinds[1]}, 2, **attributes, **default), inputs)
    check(model("LabelEncoder", inputs, {"y": kinds[1]}, 2, **attributes), inputs)


def test_label_encoder_of_tensors() -> None:
    """Keys and values as tensors, since version 4, where NaN is equal to NaN."""
    from onnx import numpy_helper

    for inputs, keys in (([samples(14, dtype="i8")], [2, 0, -1]), ([samples(15)], [0.5, float("nan"), -1])):
        columns = {"keys": np.array(keys, inputs[0].dtype), "values": np.array([1.5, 2.5, 3.5], np.float32)}
        attributes = {f"{name}_tensor": numpy_helper.from_array(column) for name, column in columns.items()}
        default = numpy_helper.from_array(np.array([7], np.float32))
        check(model("LabelEncoder", inputs, {"y": 1}, 4, default_tensor=default, **attributes), inputs)
