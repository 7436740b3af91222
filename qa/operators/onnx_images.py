"""Nodes of ONNX for operators of images: pools and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qa.operators.onnx_nodes import NODES
from qa.operators.peers import AbsentError, Node, Operand, peer

Ends = Any
"""A number, or a number or a pair for each axis."""


def _pads(padding: Ends, rank: int) -> list[int]:
    rows = [padding] * rank if isinstance(padding, int) else padding
    pairs = [(row, row) if isinstance(row, int) else row for row in rows]
    return [before for before, _ in pairs] + [after for _, after in pairs]


def _each(value: int | Sequence[int], rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _windows(size: Sequence[int], stride: Any, padding: Ends, dilation: Any, *, ceil: bool) -> dict[str, Any]:
    rank = len(size)
    found = {"kernel_shape": list(size), "strides": _each(size if stride is None else stride, rank)}
    return found | {"pads": _pads(padding, rank), "dilations": _each(dilation, rank), "ceil_mode": int(ceil)}


@peer(NODES, "pool")
def _pool(
    accumulation: str, x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if accumulation != "max":
        raise AbsentError("it has no such pool")
    return Node("MaxPool", [x], _windows(size, stride, padding, dilation, ceil=ceil), opset=22)


@peer(NODES, "max_pool_with_places")
def _max_pool(
    x: Operand, size: Sequence[int], places: Operand, *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if x.shape[:2] != (1, 1):
        raise AbsentError("its indices are those in all images")
    return Node("MaxPool", [x], _windows(size, stride, padding, dilation, ceil=ceil), 2, opset=22)


@peer(NODES, "avg_pool")
def _avg_pool(
    x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, dilation: Any = 1, ceil: bool = False,
    count_padding: bool = True,
) -> Node:  # fmt: skip
    windows = _windows(size, stride, padding, dilation, ceil=ceil)
    return Node("AveragePool", [x], windows | {"count_include_pad": int(count_padding)}, opset=22)


@peer(NODES, "lp_pool")
def _lp_pool(
    x: Operand, size: Sequence[int], order: int, *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if tuple(size) == x.shape[2:]:
        return Node("GlobalLpPool", [x], {"p": order}, opset=22)
    return Node("LpPool", [x], _windows(size, stride, padding, dilation, ceil=ceil) | {"p": order}, opset=22)


@peer(NODES, "max_unpool")
def _max_unpool(x: Operand, indices: Operand, shape: Sequence[int]) -> Node:
    size = [extent - count + 1 for extent, count in zip(shape[2:], x.shape[2:], strict=True)]
    return Node("MaxUnpool", [x, indices], {"kernel_shape": size}, opset=22)


def _convolution(window: Sequence[int], stride: Any, padding: Ends, dilation: Any, groups: int) -> dict[str, Any]:
    rank = len(window)
    return {
        "kernel_shape": list(window),
        "strides": _each(stride, rank),
        "pads": _pads(padding, rank),
        "dilations": _each(dilation, rank),
        "group": groups,
    }


@peer(NODES, "conv")
def _conv(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    dilation: Any = 1, groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    return Node("Conv", [x, weights, *([] if bias is None else [bias])], attributes, opset=22)


@peer(NODES, "conv_transpose")
def _conv_transpose(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    attributes["output_padding"] = _each(output_padding, x.rank - 2)
    return Node("ConvTranspose", [x, weights, *([] if bias is None else [bias])], attributes, opset=22)


@peer(NODES, "folded")
def _folded(
    x: Operand, image: Sequence[int], block: Sequence[int], *, stride: Any, padding: Any, dilation: Any
) -> Node:
    attributes = {"strides": list(stride), "pads": _pads(padding, len(image)), "dilations": list(dilation)}
    return Node("Col2Im", [x, np.array(image), np.array(block)], attributes, opset=18)


@peer(NODES, "deform_conv")
def _deform_conv(
    x: Operand, weights: Operand, offset: Operand, bias: Operand | None = None, mask: Operand | None = None, *,
    stride: Any, padding: Any, dilation: Any, groups: int = 1, offset_groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    return Node("DeformConv", [x, weights, offset, bias, mask], attributes | {"offset_group": offset_groups}, opset=22)
