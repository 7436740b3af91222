"""Features of `ai.onnx.ml`: scaled, normalised, imputed, chosen, joined and encoded."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo import build
from pdojo.build import Array
from pdojo.dialect.element_types import is_float
from pdojo.onnx.operators.ml_scores import ML, check_count, floats, integers, ints, rows_of
from pdojo.onnx.operators.registry import Known, NeedsArrays, Node, Value, operator


def _matrix(node: Node) -> tuple[Array, tuple[int, ...]]:
    """The operand as rows of features, and its own shape."""
    return rows_of(node), node.array(0).shape


def _of_features(node: Node, name: str, values: NDArray[Any], features: int, dtype: str) -> Array:
    """An attribute with a number for each feature, or one for all."""
    check_count(node, name, len(values), [1, features])
    return node.constant(values, dtype)


@operator("Scaler", domain=ML)
def scaler(node: Node) -> Array:
    """The differences from offsets times scales, as f32."""
    x, shape = _matrix(node)
    kind = "f64" if x.dtype == "f64" else "f32"
    offset, scale = (floats(node, name) for name in ("offset", "scale"))
    check_count(node, "scale", len(scale), [len(offset)])
    shifted = build.cast(x, kind) - _of_features(node, "offset", offset, x.shape[1], kind)
    found = shifted * _of_features(node, "scale", scale, x.shape[1], kind)
    return build.cast(build.reshape(found, shape), "f32")


@operator("Normalizer", domain=ML)
def normalizer(node: Node) -> Array:
    """Rows divided by their norms, as f32; rows whose norm is 0 stay."""
    x, shape = _matrix(node)
    rows, kind = build.cast(x, "f32"), node.choice("norm", ("MAX", "L1", "L2"))
    if kind == "L2":
        squares = rows * rows
        total = build.sum(squares, -1, keepdims=True)
        ratios = build.sqrt(squares / total)
        found = build.where(rows < 0, -ratios, ratios)
    else:
        total = build.max(rows, -1, keepdims=True) if kind == "MAX" else build.sum(abs(rows), -1, keepdims=True)
        found = rows / total
    return build.reshape(build.where(total == 0, rows, found), shape)


@operator("Imputer", domain=ML)
def imputer(node: Node) -> Array:
    """Features with the replaced value as other numbers."""
    x, shape = _matrix(node)
    names = ("imputed_value_floats", "replaced_value_float") if is_float(x.dtype) else (
        "imputed_value_int64s", "replaced_value_int64")  # fmt: skip
    values = (floats if is_float(x.dtype) else ints)(node, names[0])
    old, new = node.attribute(names[1], 0), _of_features(node, names[0], values, x.shape[1], x.dtype)
    is_old = x != x if isnan(old) else x == old
    return build.reshape(build.where(is_old, new, x), shape)


@operator("Binarizer", domain=ML)
def binarizer(node: Node) -> Array:
    """1 for elements above a threshold, 0 for others."""
    x = node.array(0)
    threshold = float(np.float32(node.attribute("threshold", 0.0)))
    # Integers are compared as floating-point numbers.
    above = (x if is_float(x.dtype) else build.cast(x, "f32")) > threshold
    return build.cast(above, x.dtype)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node) -> Array:
    """The elements at indices of the last axis; one axis becomes a row."""
    x, indices = node.array(0), node.indices(1)
    if not x.rank:
        node.contradicts("the array has no axes")
    flat: Any = build.reshape(indices, (-1,)) if isinstance(indices, Array) else indices.reshape(-1).tolist()
    found = build.take(x, flat, x.rank - 1, outside="refuse")
    return build.expand_dims(found, 0) if x.rank == 1 else found


@operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node) -> Array:
    """Inputs side by side, as f32, each with as many features as an attribute says: fewer, or zeros behind them."""
    counts, parts = ints(node, "inputdimensions"), list[Array]()
    check_count(node, "inputdimensions", len(counts), [len(node.inputs)])
    for operand, wanted in enumerate(counts.tolist()):
        x = node.array(operand)
        x = build.cast(build.reshape(x, (1 if x.rank == 1 else x.shape[0], -1)), "f32")
        part = x[:, : min(wanted, x.shape[1])]
        parts.append(build.pad(part, [(0, 0), (0, wanted - part.shape[1])]) if part.shape[1] < wanted else part)
    return build.concatenate(parts, 1)


@operator("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node) -> Array:
    """1 at the place of the category along a new axis, 0 elsewhere; without `zeros` other categories are an error."""
    x, categories = node.array(0), ints(node, "cats_int64s")
    if node.attribute("cats_strings"):
        node.refuse("its categories are strings, and its input is none")
    if not len(categories):
        node.contradicts("attribute 'cats_int64s' has no elements")
    if len(np.unique(categories)) < len(categories):
        node.refuse("attribute 'cats_int64s' has a category twice")
    if node.attribute("zeros", 1):
        return build.cast(_is_category(node, x, categories), "f32")
    count = len(categories)

    def index(given: Node) -> Array:
        matches = _is_category(given, given.array(0), categories)
        places = build.where(matches, build.iota(matches.shape, "i64", -1), count)
        return build.min(places, -1)

    def encoded(given: Node) -> Array:
        rows = given.constant(np.eye(count, dtype=np.float32), "f32")
        return build.take(rows, given.array(1), 0, outside="refuse")

    raise NeedsArrays(index, encoded)


def _is_category(node: Node, x: Array, categories: NDArray[np.int64]) -> Array:
    """Whether elements, cut to integers, are each category along a new axis, i1."""
    return build.cast(x, "i64")[..., None] == integers(node, categories)


@operator("LabelEncoder", domain=ML, since=2)
def label_encoder(node: Node) -> Array:
    """The values of keys, and a default for others."""
    x = node.array(0)
    keys = _column(node, "keys")
    values = _column(node, "values")
    if len(keys) != len(values) or not len(keys):
        node.contradicts(f"it has {len(keys)} keys and {len(values)} values")
    if len(np.unique(keys)) < len(keys):
        node.refuse("it has a key twice")
    default = _default(node, values)
    # Repeated keys without values, up to a power of 2, let encoders of similar size have the same kernels.
    more = (1 << (len(keys) - 1).bit_length()) - len(keys)
    keys, values = (
        np.concatenate([keys, np.repeat(keys[:1], more)]),
        np.concatenate([values, np.zeros(more, values.dtype)]),
    )
    known = node.constant(keys, x.dtype)
    matches = x[..., None] == known
    if node.opset >= 4 and is_float(x.dtype) and np.isnan(keys).any():
        # Until version 3 nothing is equal to NaN.
        matches = matches | ((x != x)[..., None] & (known != known))
    kind = "i64" if values.dtype.kind == "i" else "f64" if values.dtype == np.float64 else "f32"
    found = build.sum(build.where(matches, node.constant(values, kind), 0), -1)
    return build.where(build.any(matches, -1), found, node.constant(default, kind))


def _column(node: Node, name: str) -> NDArray[Any]:
    """The keys or the values: an attribute of one of three types, or a tensor."""
    tensor = node.attribute(f"{name}_tensor")
    given = [each for each in ("int64s", "floats", "strings") if node.attribute(f"{name}_{each}")]
    if len(given) + (tensor is not None) != 1:
        node.contradicts(f"it has {len(given) + (tensor is not None)} attributes with {name}, not one")
    if given == ["strings"] or (tensor is not None and np.asarray(tensor).dtype == object):
        node.refuse(f"its {name} are strings")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)
    return (ints if given == ["int64s"] else floats)(node, f"{name}_{given[0]}")


def _default(node: Node, values: NDArray[Any]) -> Known:
    """The value for other keys."""
    tensor = node.attribute("default_tensor")
    if tensor is not None:
        return np.asarray(tensor, values.dtype).reshape(())
    is_integer = values.dtype.kind == "i"
    return np.array(node.attribute(*(("default_int64", -1) if is_integer else ("default_float", -0.0))), values.dtype)


@operator("ZipMap", domain=ML)
def zip_map(node: Node) -> Value:
    """The tensor itself: kernels have no maps."""
    return node.value(0)
