"""Dynamically quantised models: products of bytes whose scales and zero points the model computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import ModelProto, helper, numpy_helper

from beside_runtime import TYPES, Draw, by_runtime
from pdojo import onnx
from pdojo.dialect.machines.registry import host, machine

NARROWER = "x86-64-avx2"
HOSTS = [None, pytest.param(NARROWER, marks=pytest.mark.skipif(
    not set(machine(NARROWER).features) <= set(host().features), reason="the processor has no AVX2"
))]  # fmt: skip


def model(nodes: Sequence[Any], x: Any, constants: dict[str, Any], outputs: Sequence[str]) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    known = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    graph = helper.make_graph(list(nodes), "dynamic", inputs, results, known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantised(product: Any, x: str = "x") -> list[Any]:
    """A product of `x`, quantised by its range, as a number, with its scale."""
    return [
        helper.make_node("DynamicQuantizeLinear", [x], ["q", "s", "z"]),
        product,
        helper.make_node("Cast", ["p"], ["f"], to=1),
        helper.make_node("Mul", ["s", "ws"], ["factor"]),
        helper.make_node("Mul", ["f", "factor"], ["m"]),
    ]


def windows(draw: Draw, rank: int) -> dict[str, Any]:
    return {
        "strides": [draw.among(1, 2) for _ in range(rank)],
        "dilations": [draw.among(1, 1, 2) for _ in range(rank)],
        "pads": [draw.among(0, 1, 2) for _ in range(2 * rank)],
        "group": draw.among(1, 1, 2, 4),
    }


def convolution(x: Any, w: Any, places: dict[str, Any]) -> Any:
    """The convolution of integers, whose borders are 0, by windows of NumPy."""
    rank, groups = x.ndim - 2, places["group"]
    ends = [*zip(places["pads"][:rank], places["pads"][rank:], strict=True)]
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), *ends])
    reach = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], places["dilations"], strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, x.ndim)))
    seen = seen[(..., *(slice(None, None, d) for d in places["dilations"]))]
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in places["strides"]))]
    parts = zip(np.split(seen, groups, 1), np.split(w.astype(np.int64), groups), strict=True)
    letters = "xyz"[:rank]
    rule = f"nc{letters}{letters.upper()},oc{letters.upper()}->no{letters}"
    return np.concatenate([np.einsum(rule, *part) for part in parts], 1)


@pytest.mark.parametrize("on", HOSTS)
@pytest.mark.parametrize("seed", range(6))
def test_convolutions(seed: int, on: str | None) -> None:
    """Integers are those of ONNX Runtime and NumPy, to the bit; what follows is rounded."""
    draw = Draw(seed)
    rank = draw.among(1, 2, 2)
    places, kind = windows(draw, rank), draw.among("u8", "i8")
    groups = places["group"]
    inputs, outputs = groups * draw.among(1, 3, 8), groups * draw.among(1, 5, 20)
    x = draw.numbers(draw.among(1, 2), inputs, *(draw.among(9, 17, 30) for _ in range(rank))) * 3
    w = draw.bytes(kind, outputs, inputs // groups, *(draw.among(1, 3) for _ in range(rank)))
    by_output = bool(seed == 3)  # ONNX Runtime takes one zero point
    zero = draw.bytes(kind, outputs) if by_output else draw.among(np.zeros((), TYPES[kind]), draw.bytes(kind))
    nodes = [
        *quantised(helper.make_node("ConvInteger", ["q", "w", "z", "wz"], ["p"], **places)),
        helper.make_node("Sigmoid", ["m"], ["y"]),
    ]
    written = model(nodes, x, {"w": w, "wz": zero, "ws": np.float32(0.001)}, ["q", "z", "p", "y"])
    q, z, p, y = onnx.load(written).compile(on, threads=draw.among(1, 2))(x)
    wanted = convolution(q.astype(int) - z, w - zero.astype(int).reshape(-1, *[1] * (rank + 1)), places)
    np.testing.assert_array_equal(p, wanted)
    if not by_output:
        theirs = by_runtime(written, {"x": x})
        for ours, other in zip((q, z, p), theirs, strict=False):
            np.testing.assert_array_equal(ours, other)
        np.testing.assert_allclose(y, theirs[3], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("on", HOSTS)
@pytest.mark.parametrize("seed", range(5))
def test_products(seed: int, on: str | None) -> None:
    draw = Draw(seed)
    kind = draw.among("u8", "i8")
    terms, columns = draw.among(5, 64, 130), draw.among(3, 48, 101)
    x = draw.numbers(*draw.among((), (2,)), draw.among(1, 1, 4, 33), terms)
    points = draw.among((), (columns,))
    zero = draw.bytes(kind, *points) if draw.flip() else np.zeros(points, TYPES[kind])
    constants = {
        "w": draw.bytes(kind, terms, columns),
        "wz": zero,
        "ws": draw.scale(*points),
        "b": draw.numbers(columns),
    }
    nodes = [
        *quantised(helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["p"])),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    written = model(nodes, x, constants, ["p", "y"])
    p, y = onnx.load(written).compile(on, threads=draw.among(1, 2))(x)
    theirs = by_runtime(written, {"x": x})
    np.testing.assert_array_equal(p, theirs[0])
    np.testing.assert_allclose(y, theirs[1], rtol=1e-6, atol=1e-6 * float(np.abs(theirs[1]).max()))
