"""Quantisation as `quantize_pt2e` writes it: the operators `quantized_decomposed` as operators of ATen.

Their names are in PyTorch once `torch.ao.quantization.fx` or torchao are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Decomposition = Callable[..., torch.Tensor]


def quantised_decompositions() -> dict[Any, Decomposition]:
    """The decompositions of the operators that PyTorch knows now."""
    found: dict[Any, Decomposition] = {}
    for name, functions in _FUNCTIONS.items():
        packet = getattr(torch.ops.quantized_decomposed, name, None)
        for overload in packet.overloads() if packet is not None else ():
            if overload in functions:
                found[getattr(packet, overload)] = functions[overload]
    return found


def _quantize(
    x: torch.Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: torch.dtype
) -> torch.Tensor:
    x = _wide(x)
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, quant_min, quant_max).to(dtype)


def _quantize_by_tensors(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, quant_min: int, quant_max: int, dtype: torch.dtype
) -> torch.Tensor:
    x = _wide(x)
    inverse = (1.0 / scale.reshape(()).double()).to(x.dtype)
    return torch.clamp(torch.round(x * inverse) + zero_point.reshape(()), quant_min, quant_max).to(dtype)


def _dequantize(
    x: torch.Tensor,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    scale, zero_point = (each.reshape(()) if isinstance(each, torch.Tensor) else each for each in (scale, zero_point))
    return (x.to(out_dtype or torch.float32) - zero_point) * scale


def _quantize_channels(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    x = _wide(x)
    scales, zero_points = _along(x, scales, axis), _along(x, zero_points, axis)
    return torch.clamp(torch.round(x * (1.0 / scales)) + zero_points, quant_min, quant_max).to(dtype)


def _dequantize_channels(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    centred = x if zero_points is None else x - _along(x, zero_points, axis)
    return (centred * _along(x, scales, axis)).to(out_dtype or torch.float32)


def _quantize_tokens(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    return x.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)


def _dequantize_tokens(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    output_dtype: torch.dtype,
) -> torch.Tensor:
    return ((x - zero_points) * scales).to(output_dtype)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _along(x: torch.Tensor, values: torch.Tensor, axis: int) -> torch.Tensor:
    """The values of the places of an axis, in the shape that broadcasts to `x`."""
    return values.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


_FUNCTIONS: Mapping[str, Mapping[str, Decomposition]] = {
    "quantize_per_tensor": {"default": _quantize, "tensor": _quantize_by_tensors},
    "dequantize_per_tensor": {"default": _dequantize, "tensor": _dequantize},
    "quantize_per_channel": {"default": _quantize_channels},
    "dequantize_per_channel": {"default": _dequantize_channels},
    "quantize_per_token": {"default": _quantize_tokens},
    "dequantize_per_token": {"default": _dequantize_tokens},
}
