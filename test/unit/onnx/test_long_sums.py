"""Sums of millions of numbers in ONNX models, against f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")

from onnx import parser

from pdojo import onnx

Values = NDArray[Any]

SHAPE = (1, 2, 1 << 11, 1 << 11)
SUMS: dict[str, Callable[[Values], Values]] = {
    "ReduceSum": lambda x: x.sum((2, 3), keepdims=True),
    "ReduceMean": lambda x: x.mean((2, 3), keepdims=True),
    "ReduceL1": lambda x: x.sum((2, 3), keepdims=True),
    "ReduceL2": lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)),
    "ReduceSumSquare": lambda x: (x * x).sum((2, 3), keepdims=True),
    "ReduceLogSum": lambda x: np.log(x.sum((2, 3), keepdims=True)),
    "ReduceLogSumExp": lambda x: np.log(np.exp(x).sum((2, 3), keepdims=True)),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
}


@pytest.mark.parametrize("tune", ["none", "pass"])
def test_errors_of_four_million_terms(tune: Literal["none", "pass"]) -> None:
    kind = f"float[{', '.join(map(str, SHAPE))}]"
    calls = [f"{name} = {name}(x{', axes' * name.startswith('Reduce')})" for name in SUMS]
    model = onnx.OnnxModel(
        parser.parse_model(f"""
            <ir_version: 8, opset_import: ["": 18]>
            sums ({kind} x) => ({", ".join(f"float[1, 2, 1, 1] {name}" for name in SUMS)})
            <int64[2] axes = {{2, 3}}> {{ {" ".join(calls)} }}""")
    )
    x = np.random.default_rng(0).random(SHAPE, np.float32) + np.float32(0.5)
    found: Any = model.compile(tune=tune)(x)
    bound = 32 * float(np.finfo(np.float32).eps)
    for result, (name, reference) in zip(found, SUMS.items(), strict=True):
        np.testing.assert_allclose(result, reference(x.astype(np.float64)), rtol=bound, err_msg=name)
