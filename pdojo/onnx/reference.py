"""ONNX's reference evaluator, with the meaning that operators had in old versions of the operator set."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def reference(model: ModelProto) -> ReferenceEvaluator:
    """The reference evaluator of a model.

    The evaluator of onnx 1.23 gives Softmax, LogSoftmax and Hardmax their meaning since version 13 in all versions.
    """
    versions = {each.domain: each.version for each in model.opset_import}
    old = versions.get("", versions.get("ai.onnx", 1)) < 13
    return ReferenceEvaluator(model, new_ops=[Softmax, LogSoftmax, Hardmax] if old else None)


def _rows(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """The matrix whose rows are normalised: all axes from `axis` on are one row."""
    return x.reshape(prod(x.shape[: axis % x.ndim]), -1)


class Softmax(OpRun):
    """Softmax before version 13."""

    op_domain = ""

    def _run(self, x: NDArray[Any], axis: int = 1) -> tuple[NDArray[Any]]:
        rows = _rows(x, 1 if axis is None else axis)  # pyright: ignore[reportUnnecessaryComparison]  # absent
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        return ((powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape),)


class LogSoftmax(OpRun):
    """LogSoftmax before version 13."""

    op_domain = ""

    def _run(self, x: NDArray[Any], axis: int = 1) -> tuple[NDArray[Any]]:
        rows = _rows(x, 1 if axis is None else axis)  # pyright: ignore[reportUnnecessaryComparison]  # absent
        shifted = rows - rows.max(axis=1, keepdims=True)
        return ((shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).reshape(x.shape),)


class Hardmax(OpRun):
    """Hardmax before version 13."""

    op_domain = ""

    def _run(self, x: NDArray[Any], axis: int = 1) -> tuple[NDArray[Any]]:
        rows = _rows(x, 1 if axis is None else axis)  # pyright: ignore[reportUnnecessaryComparison]  # absent
        largest = rows.argmax(axis=1)[:, None] == np.arange(rows.shape[1])
        return (largest.astype(x.dtype).reshape(x.shape),)
