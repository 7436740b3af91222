"""ONNX's reference evaluator, with operators that it lacks or computes wrongly: old versions of Softmax, and others."""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_non_max_suppression

from pdojo.onnx.reference_indexing import GatherElements, GatherND, Scatter, ScatterElements, ScatterND


def reference(model: ModelProto) -> ReferenceEvaluator:
    """The reference evaluator of a model.

    The evaluator of onnx 1.23 gives Softmax, LogSoftmax and Hardmax their meaning since version 13 in all versions, and
    LRN normalises as many channels as there are images. NonMaxSuppression takes no numbers, only arrays of one.
    GatherElements is wrong for axes of more than 64 elements, other gathers and scatters are loops of Python, and the
    old Scatter is missing.
    """
    versions = {each.domain: each.version for each in model.opset_import}
    old = versions.get("", versions.get("ai.onnx", 1)) < 13
    new: list[type[OpRun]] = [LRN, NonMaxSuppression, GatherElements, GatherND, Scatter, ScatterElements, ScatterND]
    return ReferenceEvaluator(model, new_ops=[*new, *([Softmax, LogSoftmax, Hardmax] if old else [])])


class LRN(OpRun):
    """The quotient by a power of the squares of neighbouring channels."""

    op_domain = ""

    def _run(
        self, x: NDArray[Any], alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int = 1
    ) -> tuple[NDArray[Any]]:
        sums = np.zeros_like(x)
        for channel in range(x.shape[1]):
            first = max(0, channel - (size - 1) // 2)
            sums[:, channel] = (x[:, first : channel + size // 2 + 1] ** 2).sum(axis=1)
        return (x / (bias + alpha / size * sums) ** beta,)


class NonMaxSuppression(op_non_max_suppression.NonMaxSuppression):
    """The boxes that no better one overlaps."""

    op_domain = ""

    def _run(self, *operands: Any, **attributes: Any) -> tuple[NDArray[Any]]:
        boxes, scores, *limits = operands
        given = [None if each is None else np.reshape(each, -1) for each in limits]
        return cast("Any", super())._run(boxes, scores, *given, **attributes)


class _Old(OpRun):
    """An operator that normalises rows: all axes from `axis` on, by default from 1, are one row."""

    op_domain = ""

    def rows(self, x: NDArray[Any]) -> NDArray[Any]:
        """The matrix of the rows."""
        # The evaluator passes the default of the newest version for an absent attribute.
        axis = next((each.i for each in self.onnx_node.attribute if each.name == "axis"), 1)
        return x.reshape(prod(x.shape[: axis % x.ndim]), -1)


class Softmax(_Old):
    """Softmax before version 13."""

    def _run(self, x: NDArray[Any], axis: int | None = None) -> tuple[NDArray[Any]]:
        rows = self.rows(x)
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        return ((powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape),)


class LogSoftmax(_Old):
    """LogSoftmax before version 13."""

    def _run(self, x: NDArray[Any], axis: int | None = None) -> tuple[NDArray[Any]]:
        rows = self.rows(x)
        shifted = rows - rows.max(axis=1, keepdims=True)
        return ((shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).reshape(x.shape),)


class Hardmax(_Old):
    """Hardmax before version 13."""

    def _run(self, x: NDArray[Any], axis: int | None = None) -> tuple[NDArray[Any]]:
        rows = self.rows(x)
        largest = np.zeros_like(rows)
        largest[np.arange(len(rows)), rows.argmax(axis=1)] = 1
        return (largest.reshape(x.shape),)
