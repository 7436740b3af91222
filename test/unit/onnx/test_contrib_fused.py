"""Fused operators of ONNX Runtime's domain, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from beside_runtime import SEEDS, Draw, check


@pytest.mark.parametrize("op", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
@pytest.mark.parametrize("seed", SEEDS)
def test_activations(op: str, seed: int) -> None:
    draw = Draw(seed)
    shape = draw.extents(3)
    bias = [draw.numbers(shape[-1])] if op == "BiasGelu" or (op == "FastGelu" and draw.flip()) else []
    attributes = {"alpha": 0.7} if op == "QuickGelu" and draw.flip() else {}
    check(draw, op, [draw.numbers(*shape) * 3, *bias], attributes=attributes)


@pytest.mark.parametrize("seed", range(10))
def test_products(seed: int) -> None:
    draw = Draw(seed)
    rows, terms, columns, batch, other = draw.extents(5)
    attributes = {name: int(draw.flip()) for name in ("transA", "transB", "transBatchA", "transBatchB")}
    shapes: list[tuple[int, ...]] = []
    for letter, matrix in (("A", [rows, terms]), ("B", [terms, columns])):
        last = matrix[::-1] if attributes[f"trans{letter}"] else matrix
        moved = attributes[f"transBatch{letter}"]
        shapes.append((last[0], other, batch, last[1]) if moved else (other, batch, *last))
    operands = [draw.numbers(*shape) for shape in shapes]
    check(draw, "FusedMatMul", operands, attributes=attributes | {"alpha": draw.among(1.0, 0.3)})


_ACTIVATIONS: dict[str, list[float]] = {
    **{"Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.2], "Clip": [-0.5, 0.7]},
    **{"HardSigmoid": [0.3, 0.4], "HardSwish": [], "": []},
}


@pytest.mark.parametrize("activation", _ACTIVATIONS)
@pytest.mark.parametrize("seed", range(2))
def test_convolutions(activation: str, seed: int) -> None:
    draw = Draw(seed)
    groups = draw.among(1, 2)
    attributes: dict[str, Any] = {"group": groups, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    if activation:
        attributes["activation"] = activation
    if activation and _ACTIVATIONS[activation]:
        attributes["activation_params"] = _ACTIVATIONS[activation]
    bias = draw.numbers(6) if draw.flip() else None
    added = draw.numbers(2, 6, 3, 7) if draw.flip() else None
    operands = [draw.numbers(2, 4, 6, 7), draw.numbers(6, 4 // groups, 3, 2), bias, added]
    check(draw, "FusedConv", operands, attributes=attributes)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Tanh"])
@pytest.mark.parametrize("seed", SEEDS)
def test_linear_layers(activation: str, seed: int) -> None:
    draw = Draw(seed)
    rows, terms, columns = draw.extents(3)
    turned = [int(draw.flip()), int(draw.flip())]
    attributes: dict[str, Any] = {"transA": turned[0], "transB": turned[1], "alpha": 0.5, "beta": 2.0}
    attributes["activation"] = activation
    if activation == "LeakyRelu":
        attributes["activation_alpha"] = 0.3
    a = draw.numbers(*((terms, rows) if turned[0] else (rows, terms)))
    b = draw.numbers(*((columns, terms) if turned[1] else (terms, columns)))
    check(draw, "FusedGemm", [a, b, draw.numbers(columns) if draw.flip() else None], attributes=attributes)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("seed", range(8))
def test_norms_of_sums(op: str, seed: int) -> None:
    draw = Draw(seed)
    dtype = draw.among("f32", "f32", "f16")
    batch, length, width = draw.extents(3, 20)
    skip = draw.among((batch, length, width), (1, length, width), (length, width))
    beta = [draw.numbers(width, dtype=dtype) if draw.flip() else None] if op == "SkipLayerNormalization" else []
    operands = [draw.numbers(batch, length, width, dtype=dtype), draw.numbers(*skip, dtype=dtype)]
    operands += [draw.numbers(width, dtype=dtype), *beta, draw.numbers(width, dtype=dtype) if draw.flip() else None]
    outputs = draw.among(["y"], ["y", "", "", "sum"])
    attributes = {"epsilon": 1e-3} if draw.flip() else {"epsilon": 1e-5}
    check(draw, op, operands, outputs, rtol=2e-3 if dtype == "f16" else 1e-5, attributes=attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_root_mean_squares(seed: int) -> None:
    draw = Draw(seed)
    shape, axis = draw.extents(3, 20), draw.among(-1, 1, 2)
    operands = [draw.numbers(*shape), draw.numbers(*shape[axis:])]
    check(draw, "SimplifiedLayerNormalization", operands, domain="", attributes={"axis": axis, "epsilon": 1e-4})


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_embeddings(seed: int) -> None:
    draw = Draw(seed)
    batch, length = draw.extents(2)
    width = 16
    segments = draw.flip()
    operands = [
        draw.integers(0, 30, batch, length),
        draw.integers(0, 3, batch, length) if segments else None,
        *(draw.numbers(30, width), draw.numbers(12, width), draw.numbers(3, width) if segments else None),
        *(draw.numbers(width), draw.numbers(width)),
    ]
    lengths = draw.integers(1, length + 1, batch)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    operands += [mask if draw.flip() else None, draw.integers(0, 12, batch, length) if draw.flip() else None]
    outputs = ["y", "lengths", "sum"] if draw.flip() else ["y", "lengths"]
    check(draw, "EmbedLayerNormalization", operands, outputs)
