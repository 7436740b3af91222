"""Nodes of ONNX that compute what operators of `pdojo.build` compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qa.operators.peers import AbsentError, Node, Operand, Table, peer

NODES: Table = {}
Axes = int | Sequence[int] | None


def _axes(x: Operand, axis: Axes) -> Any:
    """The operand of axes; an empty list is no axis."""
    return np.array(range(x.rank) if axis is None else [axis] if isinstance(axis, int) else list(axis), np.int64)


def _first_of_last(x: Operand, axis: Axes) -> int:
    """The first of the last axes, if `axis` means them."""
    axes = sorted(d % x.rank for d in _axes(x, axis))
    if axes != list(range(x.rank - len(axes), x.rank)):
        raise AbsentError("it normalises the last axes")
    return axes[0] - x.rank


def _needs(*operands: Operand | None) -> None:
    if None in operands:
        raise AbsentError("scale and shift are no options")


@peer(NODES, "softmax")
def _softmax(x: Operand, axis: int = -1) -> Node:
    return Node("Softmax", [x], {"axis": axis})


@peer(NODES, "log_softmax")
def _log_softmax(x: Operand, axis: int = -1) -> Node:
    return Node("LogSoftmax", [x], {"axis": axis})


def _reduction(name: str, x: Operand, axis: Axes, *, keepdims: bool) -> Node:
    return Node(name, [x, _axes(x, axis)], {"keepdims": int(keepdims), "noop_with_empty_axes": int(axis == ())})


@peer(NODES, "logsumexp")
def _logsumexp(x: Operand, axis: Axes = -1, *, keepdims: bool = False) -> Node:
    return _reduction("ReduceLogSumExp", x, axis, keepdims=keepdims)


@peer(NODES, "sum")
def _sum(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Node:
    return _reduction("ReduceSum", x, axis, keepdims=keepdims)


@peer(NODES, "layer_norm", "layer_norm_with_statistics")
def _layer_norm(
    x: Operand, scale: Operand | None = None, shift: Operand | None = None, *, axis: Axes = -1, eps: float = 1e-5
) -> Node:
    _needs(scale)
    return Node("LayerNormalization", [x, scale, shift], {"axis": _first_of_last(x, axis), "epsilon": eps}, 3)


@peer(NODES, "rms_norm")
def _rms_norm(x: Operand, scale: Operand | None = None, *, axis: Axes = -1, eps: float = 1e-5) -> Node:
    _needs(scale)
    return Node("RMSNormalization", [x, scale], {"axis": _first_of_last(x, axis), "epsilon": eps})


@peer(NODES, "group_norm")
def _group_norm(
    x: Operand, groups: int, scale: Operand | None = None, shift: Operand | None = None, *, eps: float = 1e-5
) -> Node:
    _needs(scale, shift)
    return Node("GroupNormalization", [x, scale, shift], {"num_groups": groups, "epsilon": eps})


@peer(NODES, "instance_norm")
def _instance_norm(
    x: Operand, scale: Operand | None = None, shift: Operand | None = None, *, eps: float = 1e-5
) -> Node:
    _needs(scale, shift)
    return Node("InstanceNormalization", [x, scale, shift], {"epsilon": eps})


@peer(NODES, "batch_norm")
def _batch_norm(
    x: Operand,
    scale: Operand | None = None,
    shift: Operand | None = None,
    *,
    statistics: tuple[Operand, Operand] | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Node:
    _needs(scale, shift)
    if statistics is None:
        raise AbsentError("training needs running statistics")
    if axis % x.rank != 1:
        raise AbsentError("channels are along axis 1")
    return Node("BatchNormalization", [x, scale, shift, *statistics], {"epsilon": eps})
