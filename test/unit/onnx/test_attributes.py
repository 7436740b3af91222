"""Attributes whose defaults, signs and orders are easily mixed up: single nodes against ONNX's evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx", reason="needs onnx")

from onnx import ModelProto, helper, numpy_helper

from pdojo.onnx import load
from pdojo.onnx.reference import reference

Values: TypeAlias = NDArray[Any]
Case: TypeAlias = tuple[str, Sequence[Values], dict[str, Any]]


def random(*shape: int) -> Values:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


IMAGE, LINE = random(1, 2, 7, 5), random(1, 1, 9)
TAPS, BLOCK = random(3, 2, 3, 2), random(2, 3, 3, 2)
GRID = random(3, 4, 5)
TIES = np.array([[1, 3, 3], [2, 0, 2], [1, 3, 2]], np.float32)

CASES: dict[str, Case] = {
    "Conv, SAME_UPPER": ("Conv", [IMAGE, TAPS], {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "Conv, SAME_LOWER": ("Conv", [IMAGE, TAPS], {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "Conv, SAME of a window with gaps": ("Conv", [IMAGE, TAPS], {"auto_pad": "SAME_UPPER", "dilations": [2, 2]}),
    "Conv, SAME of a window less than its stride": (
        "Conv", [IMAGE, random(3, 2, 1, 2)], {"auto_pad": "SAME_UPPER", "strides": [4, 4]},
    ),
    "ConvTranspose, SAME_LOWER": ("ConvTranspose", [IMAGE, BLOCK], {"strides": [2, 1], "auto_pad": "SAME_LOWER"}),
    "ConvTranspose, SAME_UPPER": ("ConvTranspose", [IMAGE, BLOCK], {"strides": [2, 1], "auto_pad": "SAME_UPPER"}),
    "MaxPool, SAME_UPPER": ("MaxPool", [IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "ReduceMax, negative axes": ("ReduceMax", [GRID, np.array([-1, -3])], {"known": [1]}),
    "ReduceMean, without axes": ("ReduceMean", [GRID], {"keepdims": 0}),
    "ReduceSum, empty axes": ("ReduceSum", [GRID, np.array([], np.int64)], {"known": [1]}),
    "ReduceSum, empty axes change nothing": (
        "ReduceSum", [GRID, np.array([], np.int64)], {"known": [1], "noop_with_empty_axes": 1},
    ),
    "ArgMax, defaults": ("ArgMax", [TIES], {}),
    "Flatten, negative axis": ("Flatten", [GRID], {"axis": -1}),
    "Flatten, axis 0": ("Flatten", [GRID], {"axis": 0}),
    "Split, negative axis": ("Split", [GRID, np.array([1, 4])], {"known": [1], "axis": -1, "results": 2}),
    "GatherND, batches": ("GatherND", [GRID, np.array([[1], [0], [3]])], {"known": [1], "batch_dims": 1}),
    "Slice, negative axes": (
        "Slice", [GRID, np.array([1, -2]), np.array([4, 9]), np.array([-2, -1]), np.array([2, 1])],
        {"known": [1, 2, 3, 4]},
    ),
    "Slice, backwards": (
        "Slice", [GRID, np.array([-1, 3]), np.array([-9, 0]), np.array([-1, 1]), np.array([-2, -1])],
        {"known": [1, 2, 3, 4]},
    ),
    "Pad, some axes": (
        "Pad", [GRID, np.array([1, 2, 0, 3]), np.array(7, np.float32), np.array([-1, 0])], {"known": [1, 2, 3]}
    ),
    "CenterCropPad, odd": ("CenterCropPad", [GRID, np.array([6, 1, 5])], {"known": [1]}),
    "OneHot, defaults": ("OneHot", [np.array([[1, 0], [2, -1]]), np.array(3), random(2)], {"known": [1]}),
    "OneHot, negative axis": (
        "OneHot", [np.array([[1, 0], [2, -1]]), np.array(3), random(2)], {"known": [1], "axis": -2}
    ),
    "Gemm": ("Gemm", [random(4, 3), random(5, 4), random(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    "Transpose, defaults": ("Transpose", [GRID], {}),
    "Resize, some axes": (
        "Resize", [GRID, np.array([], np.float32), np.array([2, 0.5], np.float32)],
        {"known": [1, 2], "axes": [2, 1], "mode": "linear"},
    ),
    "Compress, no axis": ("Compress", [GRID, np.array([False, True, True])], {"known": [1]}),
    "MaxUnpool, output_shape": (
        "MaxUnpool", [random(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]]), np.array([1, 1, 5, 6])],
        {"known": [2], "kernel_shape": [2, 2], "strides": [2, 2]},
    ),
}  # fmt: skip


def model_of(
    operator: str, operands: Sequence[Values], attributes: Mapping[str, Any]
) -> tuple[ModelProto, Mapping[str, Values]]:
    """A model of one node, and its inputs: the operands that are not `known`."""
    more = dict(attributes)
    known: Sequence[int] = more.pop("known", ())
    results: int = more.pop("results", 1)
    names = [f"x{k}" for k in range(len(operands))]
    outputs = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(results)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, [each.name for each in outputs], "n", **more)],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for k, (name, value) in enumerate(zip(names, operands, strict=True))
            if k not in known
        ],
        outputs,
        [numpy_helper.from_array(operands[k], names[k]) for k in known],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return proto, {name: operands[k] for k, name in enumerate(names) if k not in known}


@pytest.mark.parametrize("case", CASES)
def test_attributes(case: str) -> None:
    operator, operands, attributes = CASES[case]
    proto, given = model_of(operator, operands, attributes)
    evaluator: Any = reference(proto)
    wanted: Sequence[Values] = evaluator.run(None, dict(given))
    found: Any = load(proto).interpret(**given)
    rows: Sequence[Values] = found if len(wanted) > 1 else [found]
    for ours, right in zip(rows, wanted, strict=True):
        assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-6)


EQUAL: dict[str, tuple[Case, dict[str, Any]]] = {
    "ConvTranspose, output_shape": (
        ("ConvTranspose", [IMAGE, BLOCK], {"strides": [2, 2], "output_shape": [14, 9]}),
        {"strides": [2, 2], "pads": [1, 1, 0, 0]},
    ),
    "ConvTranspose, output_shape and output_padding": (
        ("ConvTranspose", [IMAGE, BLOCK], {"strides": [2, 2], "output_shape": [14, 9], "output_padding": [1, 1]}),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    "MaxPool, SAME_LOWER": (
        ("MaxPool", [IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]},
    ),
    "MaxPool, SAME_UPPER of a window with gaps": (
        ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 3], "auto_pad": "SAME_UPPER"}),
        {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 1, 2]},
    ),
}


@pytest.mark.parametrize("case", EQUAL)
def test_padding_that_follows_from_other_attributes(case: str) -> None:
    """ONNX's evaluator computes none of these, or another one."""
    (operator, operands, attributes), others = EQUAL[case]
    (one, given), (other, _) = (model_of(operator, operands, each) for each in (attributes, others))
    np.testing.assert_array_equal(load(one).interpret(**given), load(other).interpret(**given))
