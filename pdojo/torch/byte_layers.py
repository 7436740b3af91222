"""Linear functions and convolutions of dequantised bytes, computed from the bytes: the form of `quantize_pt2e`.

The result of (x - p) s and (w - q) r is (sum (x - p)(w - q)) s r; the sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.nn.functional import linear

_ATEN: Any = torch.ops.aten
_LINEAR = (linear, _ATEN.linear.default, _ATEN.linear)
_CONV = tuple(
    target
    for name in ("conv1d", "conv2d", "conv3d")
    for target in (getattr(torch, name), getattr(_ATEN, name), getattr(_ATEN, name).default)
)
_PLACES = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
_PREFIX = "quantized_decomposed.dequantize_per_"
_LIBRARY = torch.library.Library("pdojo", "FRAGMENT")
_LIBRARY.define(
    "byte_conv(Tensor x, Tensor weight, SymInt zero, Tensor? zeros, int[] stride, int[] padding, int[] dilation,"
    " int groups) -> Tensor"
)
_Bytes = tuple[Any, Any, Any, int | None]
"""The bytes, the scale, the zero point, and the axis of several scales."""


def multiply_bytes(module: GraphModule) -> None:
    """Make linear functions and convolutions of dequantised bytes, in a captured graph, products of these bytes.

    The input has one scale, the weights have one or one for each output.
    """
    for node in module.graph.nodes:
        if node.op != "call_function" or node.target not in (*_LINEAR, *_CONV):
            continue
        is_linear = node.target in _LINEAR
        names = ("input", "weight", "bias", *(() if is_linear else _PLACES))
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        left, right = (_dequantised(given.get(name)) for name in names[:2])
        if left is None or right is None or left[3] is not None or right[3] not in (None, 0):
            continue
        if not is_linear and not _are_numbers(left[2], right[2], given.get("padding", 0)):
            continue
        places = [] if is_linear else [given.get(name, usual) for name, usual in _PLACES.items()]
        node.target = _linear if is_linear else _conv
        node.args, node.kwargs = (*left[:3], *right[:3], given.get("bias"), *places), {}
    module.recompile()


def _dequantised(node: Any) -> _Bytes | None:
    """The bytes that a tensor was dequantised from; None if it was not, or from no bytes."""
    if not isinstance(node, Node) or not str(node.target).startswith(_PREFIX) or node.kwargs:
        return None
    kind, rest = str(node.target).removeprefix(_PREFIX).partition(".")[0], node.args[1:]
    if kind not in ("tensor", "channel") or node.args[-1] not in (torch.uint8, torch.int8):
        return None
    axis: Any = rest[2] if kind == "channel" else None
    return node.args[0], rest[0], rest[1], axis


def _are_numbers(zero: Any, weight_zero: Any, padding: Any) -> bool:
    """Whether a convolution has a known zero point of its images, and borders in numbers."""
    return isinstance(zero, int) and isinstance(weight_zero, int | Node | None) and not isinstance(padding, str)


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
    factor = _single(scale) * _single(weight_scale)
    signed, zero = _signed(x.reshape(-1, x.shape[-1]), zero)
    factors, weight_zero = _signed(weight, weight_zero)
    sums = torch._int_mm(signed, factors.t())
    sums = sums - zero * factors.sum(1, dtype=torch.int32)
    if isinstance(weight_zero, torch.Tensor) or weight_zero:
        sums = sums - weight_zero * (signed.sum(1, keepdim=True, dtype=torch.int32) - zero * x.shape[-1])
    found = sums.float() * factor
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


def _conv(
    x: torch.Tensor,
    scale: Any,
    zero: int,
    weight: torch.Tensor,
    weight_scale: Any,
    weight_zero: Any,
    bias: torch.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> torch.Tensor:
    """The convolution of the dequantised numbers; sums of products are integers of 32 bits."""
    rank = weight.dim() - 2
    strides, ends, dilations = (_per_axis(each, rank) for each in (stride, padding, dilation))
    if isinstance(weight_zero, int):
        weight_zero = torch.full((weight.shape[0],), weight_zero, dtype=torch.int32) if weight_zero else None
    images = x if x.dim() > rank + 1 else x.unsqueeze(0)
    # The kernel of the sums takes what is computed before them.
    factor = _of_channels(_single(scale) * _single(weight_scale), rank)
    bias = None if bias is None else _of_channels(bias, rank)
    sums = torch.ops.pdojo.byte_conv(images, weight, zero, weight_zero, strides, ends, dilations, groups)
    found = sums.float() * factor
    found = found if bias is None else found + bias
    return found if x.dim() > rank + 1 else found.squeeze(0)


def _per_axis(numbers: Any, rank: int) -> list[int]:
    return [numbers] * rank if isinstance(numbers, int) else [*numbers] * (rank if len(numbers) == 1 else 1)


def _of_channels(values: Any, rank: int) -> Any:
    """A number, or numbers for the channels of images."""
    return values.reshape(-1, *[1] * rank) if isinstance(values, torch.Tensor) and values.dim() else values


def _sums(x: torch.Tensor, weight: torch.Tensor, zero: int, zeros: torch.Tensor | None, *places: Any) -> torch.Tensor:
    """The operator `byte_conv`: the convolution of bytes minus their zero points, in 32 bits."""
    factors = weight.double()
    if zeros is not None:
        factors = factors - zeros.reshape(-1, *[1] * (weight.dim() - 1))
    return _places(x.double() - zero, factors, *places).to(torch.int32).contiguous()


def _shape(x: torch.Tensor, weight: torch.Tensor, _: int, __: torch.Tensor | None, *places: Any) -> torch.Tensor:
    shape = _places(x.float(), weight.float(), *places).shape
    return torch.empty(shape, dtype=torch.int32, device=x.device)


def _places(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    convolution: Callable[..., torch.Tensor] = _ATEN.convolution.default
    return convolution(x, weight, None, stride, padding, dilation, False, [0] * len(stride), groups)


_LIBRARY.impl("byte_conv", _sums, "CompositeExplicitAutograd")
torch.library.register_fake("pdojo::byte_conv", _shape, lib=_LIBRARY)
