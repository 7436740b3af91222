"""Recurrent networks of ONNX Runtime's domain, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from beside_runtime import Draw, check


@pytest.mark.parametrize("seed", range(16))
def test_networks(seed: int) -> None:
    draw = Draw(seed)
    steps, width, size = draw.among(1, 4), draw.among(3, 8), draw.among(4, 6)
    batch = draw.among(1, 3)
    kind = draw.among("forward", "reverse", "bidirectional")
    directions = 2 if kind == "bidirectional" else 1
    points = draw.among((directions,), (directions, 4 * size))
    types = draw.among("u8", "i8"), draw.among("u8", "i8")
    weights = [draw.bytes(types[0], directions, width, 4 * size), draw.bytes(types[0], directions, size, 4 * size)]
    middle = np.full(points, 128 if types[0] == "u8" else 0, weights[0].dtype)
    held = draw.flip()
    operands: list[Any] = [
        *(draw.numbers(steps, batch, width), *weights),
        draw.numbers(directions, 8 * size) if draw.flip() else None,
        draw.integers(1, steps + 1, batch) if draw.flip() else None,
        *(draw.numbers(directions, batch, size) if held else None for _ in range(2)),
        draw.numbers(directions, 3 * size) if draw.flip() else None,
        *(draw.scale(*points) / 10, middle, draw.scale(*points) / 10, middle),
    ]
    attributes: dict[str, Any] = {"direction": kind, "hidden_size": size}
    # Only activations, and the order of additions, round differently.
    check(
        draw,
        "DynamicQuantizeLSTM",
        operands,
        draw.among(["y", "h", "c"], ["", "h", "c"], ["y"]),
        fixed=[1, 2, 8, 9, 10, 11],
        rtol=2e-6,
        attributes=attributes,
    )
