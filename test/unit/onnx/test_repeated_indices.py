"""Operators that store elements at indices, with indices that are given several times, against ONNX's evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import ModelProto, helper, numpy_helper

from pdojo.errors import UsageError
from pdojo.onnx import load

Values: TypeAlias = NDArray[Any]


def model_of(
    operator: str, given: Mapping[str, Values], known: Mapping[str, Values], rank: int, **more: Any
) -> ModelProto:
    """A model of one node; its operands are `x`, `i` and `u`, as far as they are there."""
    opset = more.pop("opset", 18)
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in {**given, **known}.items()}
    operands = [name for name in "xiu" if name in kinds]
    graph = helper.make_graph(
        [helper.make_node(operator, operands, ["y"], "n", **more)],
        "g",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()],
        [helper.make_tensor_value_info("y", kinds["u" if "u" in kinds else "x"], [None] * rank)],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def results(proto: ModelProto, given: Mapping[str, Values]) -> Sequence[Values]:
    """The output of the interpreted and of the compiled model."""
    return [load(proto).interpret(**given), load(proto).compile(tune="none")(**given)]


def random(*shape: int) -> Values:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def test_elements_that_go_around_a_cache() -> None:
    """The last of the elements that have one place counts. ONNX's evaluator takes no more than the cache has."""
    cache, new = random(2, 1, 4, 3), random(2, 1, 6, 3)
    proto = model_of("TensorScatter", {"x": cache, "i": new}, {"u": np.array([1, 3])}, 4, opset=24, mode="circular")
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    wanted = cache.copy()
    for image, start in enumerate((1, 3)):
        for k in range(6):
            wanted[image, 0, (start + k) % 4] = new[image, 0, k]
    for found in results(proto, {"x": cache, "i": new}):
        np.testing.assert_array_equal(found, wanted)


def test_windows_that_overlap_store_their_maximum_once() -> None:
    pool = helper.make_node("MaxPool", ["x"], ["v", "i"], kernel_shape=[2, 2], strides=[1, 1])
    back = helper.make_node("MaxUnpool", ["v", "i"], ["y"], kernel_shape=[2, 2], strides=[1, 1])
    info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 1, 3, 3]) for name in "xy"]
    graph = helper.make_graph([pool, back], "g", info[:1], info[1:])
    x = np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, 1, 1] = 9
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for found in results(proto, {"x": x}):
        np.testing.assert_array_equal(found, x)


def test_too_many_comparisons_are_refused() -> None:
    x, indices = np.zeros((1, 8, 64, 64), np.float32), np.zeros((1, 8, 64, 64), np.int64)
    proto = model_of("MaxUnpool", {"x": x, "i": indices}, {}, 4, kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(
        UsageError,
        match=r"^node 'n' \(MaxUnpool\): each of its 32768 indices would be compared with the 16384 places",
    ):
        load(proto).specialise(x, indices)
