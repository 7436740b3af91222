"""Nodes that compute each row by itself, whatever the number of rows is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np
from onnx import NodeProto

from pdojo.model.graph import Known, Tensor
from pdojo.onnx.labels import ML
from pdojo.onnx.protos import python_value

_BY_ELEMENTS = frozenset(
    """
    Abs Add And Cast Ceil Clip Div Elu Equal Erf Exp Floor Greater GreaterOrEqual HardSigmoid Identity IsInf IsNaN
    LeakyRelu Less LessOrEqual Log Max Mean Min Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Softplus Sqrt Sub
    Sum Tanh Where Xor
    """.split()
)
_REDUCTIONS = frozenset(f"Reduce{name}" for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split())
_OLD = frozenset(["axis", "broadcast"])
"""Attributes of old versions of elementwise operators."""


def by_rows(proto: NodeProto, operands: Sequence[Known | None], is_table: Sequence[bool]) -> bool:
    """Whether row k of a node's result depends on row k of the tables among its operands only, for any number of rows.

    `operands` are the tables [rows, ...] and the known operands; None for absent ones.
    """
    attributes = {each.name: python_value(each) for each in proto.attribute}
    tables = [each for each, own in zip(operands, is_table, strict=True) if each is not None and own]
    others = [each for each, own in zip(operands, is_table, strict=True) if each is not None and not own]
    rank = tables[0].ndim
    match proto.domain, proto.op_type:
        case "", op if op in _BY_ELEMENTS:
            fit = all(each.ndim < rank or (each.ndim == rank and each.shape[0] == 1) for each in others)
            return fit and all(each.ndim == rank for each in tables) and not _OLD & attributes.keys()
        case ("", "ArgMax" | "ArgMin"):
            return _is_inner(attributes.get("axis", 0), rank)
        case ("", "Softmax" | "LogSoftmax"):
            return "axis" in attributes and _is_inner(attributes["axis"], rank)
        case "", op if op in _REDUCTIONS:
            return is_table[0] and len(tables) == 1 and _reduces_rows(attributes, others, rank)
        case "", "Concat":
            return not others and len({each.ndim for each in tables}) == 1 and _is_inner(attributes["axis"], rank)
        case "", "Reshape":
            return is_table[0] and len(tables) == 1 and _keeps_rows(attributes, others, tables[0])
        case domain, "LabelEncoder" if domain == ML:
            return True
        case _:
            return False


def _is_inner(axis: int, rank: int) -> bool:
    """Whether an axis is not that of rows."""
    return (axis + rank if axis < 0 else axis) > 0


def _reduces_rows(attributes: Mapping[str, Any], others: Sequence[Known], rank: int) -> bool:
    axes = others[0].reshape(-1).tolist() if others else list(attributes.get("axes", ()))
    return bool(axes) and all(_is_inner(axis, rank) for axis in axes)


def _keeps_rows(attributes: Mapping[str, Any], others: Sequence[Known], table: Known) -> bool:
    """Whether a reshape keeps the first axis, for any number of rows."""
    if not others or attributes.get("allowzero", 0):
        return False
    first, *shape = others[0].reshape(-1).tolist()
    if first == 0:
        return True
    sizes = [table.shape[n] if not extent and n < table.ndim else extent for n, extent in enumerate(shape, 1)]
    return first == -1 and min(sizes, default=1) > 0 and prod(sizes) * len(table) == table.size


def puts_axis_first(proto: NodeProto, operands: Sequence[object]) -> bool:
    """Whether a node reshapes [rows, ...] to [1, rows, ...]."""
    if (proto.domain, proto.op_type) != ("", "Reshape") or not isinstance(operands[1], np.ndarray):
        return False
    table, shape = cast("Tensor", operands[0]), cast("Known", operands[1]).reshape(-1).tolist()
    return shape[:2] == [1, -1] and [*table.shape[1:]] == shape[2:] and 0 not in shape
