"""Calls of ATen for operators of images: pools and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qa.operators.peers import AbsentError, Call, Operand, peer
from qa.operators.torch_calls import CALLS

Ends = Any
"""A number, or a number or a pair for each axis."""


def _same(padding: Ends, rank: int) -> list[int]:
    """The padding of both ends of each axis."""
    rows = [padding] * rank if isinstance(padding, int) else padding
    pairs = [(row, row) if isinstance(row, int) else row for row in rows]
    if any(before != after for before, after in pairs):
        raise AbsentError("padding is equal at both ends")
    return [before for before, _ in pairs]


def _each(value: int | Sequence[int], rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _windows(size: Sequence[int], stride: Any, padding: Ends) -> list[Any]:
    rank = len(size)
    if rank not in (2, 3):
        raise AbsentError("images have two or three dimensions")
    return [list(size), _each(size if stride is None else stride, rank), _same(padding, rank)]


@peer(CALLS, "pool")
def _pool(
    accumulation: str, x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Call:  # fmt: skip
    if accumulation != "max":
        raise AbsentError("it has no such pool")
    found = _max_pool(x, size, None, stride=stride, padding=padding, dilation=dilation, ceil=ceil)
    return Call(found.operator, found.arguments, read=(0,))


@peer(CALLS, "max_pool_with_places")
def _max_pool(
    x: Operand, size: Sequence[int], places: Operand | None, *, stride: Any = None, padding: Ends = 0,
    dilation: Any = 1, ceil: bool = False,
) -> Call:  # fmt: skip
    windows = _windows(size, stride, padding)
    return Call(f"max_pool{len(size)}d_with_indices.default", [x, *windows, _each(dilation, len(size)), ceil])


@peer(CALLS, "avg_pool")
def _avg_pool(
    x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, ceil: bool = False,
    count_padding: bool = True, divisor: int | None = None,
) -> Call:  # fmt: skip
    return Call(f"avg_pool{len(size)}d.default", [x, *_windows(size, stride, padding), ceil, count_padding, divisor])


@peer(CALLS, "adaptive_avg_pool")
def _adaptive_avg_pool(x: Operand, places: Sequence[int]) -> Call:
    return Call(f"_adaptive_avg_pool{len(places)}d.default", [x, list(places)])


@peer(CALLS, "adaptive_pool")
def _adaptive_pool(accumulation: str, x: Operand, places: Sequence[int]) -> Call:
    if accumulation != "max":
        raise AbsentError("it has no such pool")
    return Call(f"adaptive_max_pool{len(places)}d.default", [x, list(places)], read=(0,))


def images(gradient: Operand, extents: Sequence[int]) -> Operand:
    """Images with extents, of whose elements the gradient does not depend."""
    shape = (*gradient.shape[: -len(extents)], *extents)
    return Operand(np.zeros(shape), gradient.dtype)


@peer(CALLS, "adaptive_avg_pool_gradient")
def _adaptive_avg_pool_gradient(gradient: Operand, extents: Sequence[int]) -> Call:
    return Call(f"_adaptive_avg_pool{len(extents)}d_backward.default", [gradient, images(gradient, extents)])


def _check_ceil(
    gradient: Operand, extents: Sequence[int], size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> bool:  # fmt: skip
    """Whether there are as many windows as in ceil mode."""
    rows = zip(gradient.shape[-len(extents) :], extents, size, stride, padding, dilation, strict=True)
    return any((n - 1) * s + (k - 1) * d + 1 > extent + 2 * p for n, extent, k, s, p, d in rows)


@peer(CALLS, "avg_pool_gradient")
def _avg_pool_gradient(
    gradient: Operand, extents: Sequence[int], size: Sequence[int], *, stride: Sequence[int], padding: Sequence[int],
    count_padding: bool = True, divisor: int | None = None,
) -> Call:  # fmt: skip
    ceil = _check_ceil(gradient, extents, size, stride, padding, [1] * len(size))
    windows = _windows(size, stride, padding)
    return Call(
        f"avg_pool{len(size)}d_backward.default",
        [gradient, images(gradient, extents), *windows, ceil, count_padding, divisor],
    )


@peer(CALLS, "max_pool_gradient")
def _max_pool_gradient(
    gradient: Operand, indices: Operand, extents: Sequence[int], size: Sequence[int], *, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int],
) -> Call:  # fmt: skip
    ceil = _check_ceil(gradient, extents, size, stride, padding, dilation)
    windows = [*_windows(size, stride, padding), list(dilation), ceil]
    return Call(
        f"max_pool{len(size)}d_with_indices_backward.default", [gradient, images(gradient, extents), *windows, indices]
    )


def _convolution(
    x: Operand, weights: Operand, bias: Operand | None, stride: Any, padding: Ends, dilation: Any, groups: int,
    behind: Any = 0, *, transposed: bool = False,
) -> list[Any]:  # fmt: skip
    rank = x.rank - 2
    windows = [_each(stride, rank), _same(padding, rank), _each(dilation, rank)]
    return [x, weights, bias, *windows, transposed, _each(behind, rank), groups]


@peer(CALLS, "conv")
def _conv(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    dilation: Any = 1, groups: int = 1,
) -> Call:  # fmt: skip
    return Call("convolution.default", _convolution(x, weights, bias, stride, padding, dilation, groups))


@peer(CALLS, "conv_transpose")
def _conv_transpose(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Call:  # fmt: skip
    last = (stride, padding, dilation, groups, output_padding)
    return Call("convolution.default", _convolution(x, weights, bias, *last, transposed=True))


def _backward(
    gradient: Operand, x: Operand, weights: Operand, last: Sequence[Any], *, transposed: bool, number: int
) -> Call:  # fmt: skip
    rank, (stride, padding, dilation, groups) = x.rank - 2, last
    behind = [0] * rank
    if transposed:
        rows = zip(gradient.shape[2:], x.shape[2:], weights.shape[2:], stride, padding, dilation, strict=True)
        behind = [extent - ((n - 1) * s - 2 * p + (k - 1) * d + 1) for extent, n, k, s, p, d in rows]
    arguments = [gradient, x, weights, None, *map(list, (stride, padding, dilation)), transposed, behind, groups]
    return Call("convolution_backward.default", [*arguments, [number == 0, number == 1, False]], read=(number,))


@peer(CALLS, "of_images")
def _of_images(
    gradient: Operand, weights: Operand, extents: Sequence[int], *, stride: Any, padding: Any, dilation: Any,
    groups: int = 1, transposed: bool = False,
) -> Call:  # fmt: skip
    channels = weights.shape[0] if transposed else weights.shape[1] * groups
    x = Operand(np.zeros((gradient.shape[0], channels, *extents)), gradient.dtype)
    return _backward(gradient, x, weights, (stride, padding, dilation, groups), transposed=transposed, number=0)


@peer(CALLS, "of_weights")
def _of_weights(
    few: Operand, many: Operand, window: Sequence[int], *, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> Call:  # fmt: skip
    weights = Operand(np.zeros((few.shape[1], many.shape[1] // groups, *window)), few.dtype)
    return _backward(few, many, weights, (stride, padding, dilation, groups), transposed=False, number=1)


@peer(CALLS, "grid_sample")
def _grid_sample(
    x: Operand, grid: Operand, mode: str = "linear", padding: str = "zeros", *, corners: bool = False
) -> Call:
    modes, paddings = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    last = [modes.index(mode), paddings.index(padding), corners]
    return Call(f"grid_sampler_{x.rank - 2}d.default", [x, grid, *last])


@peer(CALLS, "affine_grid")
def _affine_grid(theta: Operand, size: Sequence[int], *, corners: bool = False) -> Call:
    if corners and 1 in size:
        raise AbsentError("the only element of an axis is at 0")
    return Call("affine_grid_generator.default", [theta, [theta.shape[0], 1, *size], corners])
