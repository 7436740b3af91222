"""Reductions of windows of images [N, C, *spatial] or [C, *spatial], and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.build import tabled_windows as tabled
from pdojo.build.pools import max_pool_with_places
from pdojo.build.reductions import MOST_I32
from pdojo.torch.operators.convolutions import per_axis
from pdojo.torch.operators.registry import Call, aten

Numbers = int | Sequence[int]


def _rank(call: Call) -> int:
    """The number of spatial axes, from the operator's name."""
    return next(rank for rank in (1, 2, 3) if f"{rank}d" in call.operator)


def _windows(call: Call, size: Numbers, stride: Numbers, padding: Numbers, **more: Any) -> dict[str, Any]:
    """The arguments of windows; the stride is their size by default."""
    rank = _rank(call)

    def numbers(value: Numbers) -> list[int]:
        return per_axis((value,) if isinstance(value, int) else value, rank)

    found = {"size": numbers(size), "stride": numbers(stride) or numbers(size), "padding": numbers(padding)}
    return found | {name: numbers(value) if name == "dilation" else value for name, value in more.items()}


def _batched(call: Call, x: Array) -> Array:
    """The images as a batch."""
    return x if x.rank == _rank(call) + 2 else build.expand_dims(x, 0)


@aten("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(
    call: Call,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> list[Array | None]:
    """The greatest element of every window, and its index in the image."""
    windows = _windows(call, kernel_size, stride, padding, dilation=dilation, ceil=ceil_mode)
    images = _batched(call, x)
    if 1 not in call.read:
        return [build.reshape(build.pool("max", images, **windows), call.shape), None]
    # Vectors of f32 and of i32 have the same number of lanes.
    numbers = build.iota((prod(images.shape[2:]),), "i32" if x.size <= MOST_I32 else "i64")
    places = build.broadcast_to(build.reshape(numbers, images.shape[2:]), images.shape)
    found = max_pool_with_places(images, places=places, **windows)
    return [build.reshape(each, call.shape) for each in found]


@aten("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(
    call: Call,
    gradient: Array,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    """The gradient of the greatest elements of windows."""
    windows = _windows(call, kernel_size, stride, padding, dilation=dilation)
    return tabled.max_pool_gradient(gradient, indices, x.shape[-_rank(call) :], **windows)


@aten("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    call: Call,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of every window, or its sum divided by a given number."""
    windows = _windows(call, kernel_size, stride, padding, ceil=ceil_mode, count_padding=count_include_pad)
    return build.reshape(build.avg_pool(_batched(call, x), divisor=divisor_override, **windows), call.shape)


@aten("avg_pool2d_backward.default", "avg_pool3d_backward.default")
def avg_pool_backward(
    call: Call,
    gradient: Array,
    x: Array,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The gradient of the mean of windows."""
    windows = _windows(call, kernel_size, stride, padding, count_padding=count_include_pad, divisor=divisor_override)
    return tabled.avg_pool_gradient(gradient, x.shape[-_rank(call) :], **windows)


@aten("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")
def adaptive_avg_pool(call: Call, x: Array, output_size: Sequence[int]) -> Array:
    """The means of the windows of an adaptive pool."""
    return tabled.adaptive_avg_pool(x, call.shape[-_rank(call) :])


@aten("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(call: Call, x: Array, output_size: Sequence[int]) -> list[Array | None]:
    """The greatest elements of the windows of an adaptive pool."""
    if 1 in call.read:
        call.refuse("the indices of the greatest elements are read")
    return [tabled.adaptive_pool("max", x, call.shape[-_rank(call) :]), None]


@aten("_adaptive_avg_pool2d_backward.default", "_adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(call: Call, gradient: Array, x: Array) -> Array:
    """The gradient of the means of the windows of an adaptive pool."""
    return tabled.adaptive_avg_pool_gradient(gradient, x.shape[-_rank(call) :])
