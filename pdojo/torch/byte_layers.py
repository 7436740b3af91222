"""Linear functions of dequantised bytes, computed from the bytes: the form that `quantize_pt2e` writes.

The result of (x - p) s and (w - q) r is (sum (x - p)(w - q)) s r; the sums are exact.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.nn.functional import linear

_LINEAR = (linear, torch.ops.aten.linear.default, torch.ops.aten.linear)
_PREFIX = "quantized_decomposed.dequantize_per_"


def multiply_bytes(module: GraphModule) -> None:
    """Make linear functions of dequantised bytes, in the graph that Dynamo captured, products of these bytes.

    The input has one scale, the weights have one or one for each output.
    """
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target in _LINEAR and not node.kwargs and len(node.args) > 1:
            left, right = (_dequantised(each) for each in node.args[:2])
            if left is None or right is None or left[3] is not None or right[3] not in (None, 0):
                continue
            bias = node.args[2] if len(node.args) > 2 else None
            node.target, node.args = _linear, (*left[:3], *right[:3], bias)
    module.recompile()


def _dequantised(node: Any) -> tuple[Any, Any, Any, int | None] | None:
    """The bytes, the scale, the zero point and the axis (None: one scale) of a tensor; None if it is of no bytes."""
    if not isinstance(node, Node) or not str(node.target).startswith(_PREFIX) or node.kwargs:
        return None
    kind, rest = str(node.target).removeprefix(_PREFIX).partition(".")[0], node.args[1:]
    if kind not in ("tensor", "channel") or node.args[-1] not in (torch.uint8, torch.int8):
        return None
    axis: Any = rest[2] if kind == "channel" else None
    return node.args[0], rest[0], rest[1], axis


def _linear(
    x: torch.Tensor,
    scale: Any,
    zero: Any,
    weight: torch.Tensor,
    weight_scale: Any,
    weight_zero: Any,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """`linear` of the dequantised numbers; sums of products are integers of 32 bits."""
    signed, zero = _signed(x.reshape(-1, x.shape[-1]), zero)
    factors, weight_zero = _signed(weight, weight_zero)
    sums = torch._int_mm(signed, factors.t())
    sums = sums - zero * factors.sum(1, dtype=torch.int32)
    if isinstance(weight_zero, torch.Tensor) or weight_zero:
        sums = sums - weight_zero * (signed.sum(1, keepdim=True, dtype=torch.int32) - zero * x.shape[-1])
    found = sums.float() * (_single(scale) * _single(weight_scale))
    found = found if bias is None else found + bias
    return found.reshape(*x.shape[:-1], weight.shape[0])


def _signed(x: torch.Tensor, zero: Any) -> tuple[torch.Tensor, Any]:
    """Bytes as signed ones, and their zero points."""
    zero = _single(zero)
    zero = zero.to(torch.int32) if isinstance(zero, torch.Tensor) else zero
    if x.dtype == torch.int8:
        return x, zero
    return (x.to(torch.int16) - 128).to(torch.int8), (0 if zero is None else zero) - 128


def _single(value: Any) -> Any:
    """A number, or numbers for the columns; a tensor of one number may have an axis."""
    return value.reshape(()) if isinstance(value, torch.Tensor) and value.numel() == 1 else value
