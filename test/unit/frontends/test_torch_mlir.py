"""Programs in the form of torch-mlir's linalg-on-tensors output give PyTorch's results.

torch-mlir is no part of the environment: the files of `torch_mlir` are written after its output for a linear layer with
ReLU, softmax, and a convolution with max pooling, and put into the generic form by MLIR.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import pdojo

FOLDER = Path(__file__).with_name("torch_mlir")


def linear(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w.T + b, 0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def conv(x: Any, w: Any, b: Any) -> Any:
    windows = sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))
    y = np.einsum("nchwij,fcij->nfhw", windows, w) + b[:, None, None]
    return y.reshape(1, 4, 4, 2, 4, 2).max((3, 5))


CASES = {
    "linear": (linear, [(4, 8), (16, 8), (16,)]),
    "softmax": (softmax, [(4, 8)]),
    "conv": (conv, [(1, 3, 8, 8), (4, 3, 3, 3), (4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    meaning, shapes = CASES[name]
    rng = np.random.default_rng(2)
    arguments = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    kernel = pdojo.load(FOLDER / f"{name}.mlir")
    for each in (kernel, pdojo.tune(kernel, align=1, measure=False).kernel):
        found: Any = pdojo.run(each, *arguments)
        np.testing.assert_allclose(found, meaning(*arguments), rtol=1e-5, atol=1e-6)
