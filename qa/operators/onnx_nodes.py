"""Nodes of ONNX that compute what operators of `pdojo.build` compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qa.operators import scalar_peers
from qa.operators.peers import AbsentError, Node, Operand, Table, peer

NODES: Table = scalar_peers.nodes()
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


def _reduction(name: str, default: Axes = None) -> Callable[..., Node]:
    """The peer of a reduction along axes."""

    def node(x: Operand, axis: Axes = default, *, keepdims: bool = False) -> Node:
        return Node(name, [x, _axes(x, axis)], {"keepdims": int(keepdims), "noop_with_empty_axes": int(axis == ())})

    return node


for _name, _operator in {
    "sum": "ReduceSum",
    "prod": "ReduceProd",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "mean": "ReduceMean",
    "sum_squares": "ReduceSumSquare",
    "log_sum": "ReduceLogSum",
}.items():
    peer(NODES, _name)(_reduction(_operator))
peer(NODES, "logsumexp")(_reduction("ReduceLogSumExp", -1))


@peer(NODES, "norm")
def _norm(x: Operand, order: float = 2, axis: Axes = None, *, keepdims: bool = False) -> Node:
    if order not in (1, 2):
        raise AbsentError("its norms are of order 1 and 2")
    return _reduction(f"ReduceL{order}")(x, axis, keepdims=keepdims)


@peer(NODES, "normalize")
def _normalize(x: Operand, order: float = 2, axis: int = -1) -> Node:
    return Node("LpNormalization", [x], {"p": order, "axis": axis})


def _place(name: str) -> Callable[..., Node]:
    def node(x: Operand, axis: int = -1, *, keepdims: bool = False, last: bool = False) -> Node:
        return Node(name, [x], {"axis": axis, "keepdims": int(keepdims), "select_last_index": int(last)})

    return node


peer(NODES, "argmax")(_place("ArgMax"))
peer(NODES, "argmin")(_place("ArgMin"))


@peer(NODES, "cumulative")
def _cumulative(
    accumulation: str, x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False
) -> Node:
    if accumulation not in ("+", "*"):
        raise AbsentError("its running accumulations are sums and products")
    facts = {"exclusive": int(exclusive), "reverse": int(reverse)}
    name, opset = ("CumSum", 23) if accumulation == "+" else ("CumProd", 26)
    return Node(name, [x, np.array(axis, np.int64)], facts, opset=opset)


@peer(NODES, "topk")
def _topk(x: Operand, count: int, axis: int = -1, *, largest: bool = True) -> Node:
    return Node("TopK", [x, np.array([count])], {"axis": axis, "largest": int(largest)}, 2)


@peer(NODES, "hardmax")
def _hardmax(x: Operand, axis: int = -1) -> Node:
    return Node("Hardmax", [x], {"axis": axis})


@peer(NODES, "matmul")
def _matmul(a: Operand, b: Operand) -> Node:
    return Node("MatMul", [a, b])


@peer(NODES, "contract")
def _contract(subscripts: str, *operands: Operand) -> Node:
    return Node("Einsum", operands, {"equation": subscripts})


@peer(NODES, "gemm")
def _gemm(a: Operand, b: Operand, c: Operand | None = None, *, alpha: float = 1, beta: float = 1) -> Node:
    return Node("Gemm", [a, b, c], {"alpha": float(alpha), "beta": float(beta)})


@peer(NODES, "det")
def _det(x: Operand) -> Node:
    return Node("Det", [x])


@peer(NODES, "mean_variance_norm")
def _mean_variance_norm(x: Operand, *, axis: Axes = (0, 2, 3)) -> Node:
    return Node("MeanVarianceNormalization", [x], {"axes": [int(d) for d in _axes(x, axis)]})


@peer(NODES, "local_response_norm")
def _local_response_norm(x: Operand, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Node:
    return Node("LRN", [x], {"size": size, "alpha": alpha, "beta": beta, "bias": bias})


@peer(NODES, "attention")
def _attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    mask: Operand | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float = 0,
) -> Node:
    if q.rank != 4:
        raise AbsentError("it takes four dimensions")
    if isinstance(mask, list):
        raise AbsentError("it takes one mask")
    if k.rank != 4 or v.rank != 4 or k.shape[0] != q.shape[0]:
        raise AbsentError("its batches do not broadcast")
    facts = {"is_causal": int(causal), "softcap": float(softcap)} | ({} if scale is None else {"scale": scale})
    return Node("Attention", [q, k, v, mask], facts)


@peer(NODES, "attention_with_statistics")
def _attention_with_weights(q: Operand, k: Operand, v: Operand, **facts: Any) -> Node:
    plain = _attention(q, k, v, **facts)
    attributes = {**plain.attributes, "qk_matmul_output_mode": 3}
    return Node("Attention", plain.inputs, attributes, 4, read=(0, None, None, None, 3))


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


@peer(NODES, "batch_norm_in_training")
def _batch_norm_in_training(*operands: Operand | None, momentum: float, unbiased: bool, eps: float = 1e-5) -> Node:
    if unbiased:
        raise AbsentError("running variances are biased")
    facts = {"training_mode": 1, "momentum": 1 - momentum, "epsilon": eps}
    return Node("BatchNormalization", operands, facts, 3, 15, read=(0, None, None, 1, 2))


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


@peer(NODES, "integer_power")
def _integer_power(x: Operand, exponent: Operand) -> Node:
    if (exponent.values.astype(np.float64) < 0).any():
        raise AbsentError("exponents are not negative")
    return Node("Pow", [x, exponent], opset=15)
