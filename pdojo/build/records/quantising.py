"""Quantised integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import quantising
from pdojo.build.operator import array, call, operator
from pdojo.build.records.convolutions import conv

Values = NDArray[Any]
_TYPES = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}


def _saturated(x: Values, zero: Values | None, dtype: str) -> Values:
    kind = _TYPES[dtype]
    shifted = np.rint(x) + (0 if zero is None else zero.astype(np.float64))
    return np.clip(shifted, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


# Quotients by powers of 2 are exact, so that ties are the same in every element type.
_TIES = array("3 4", given=[0.25, 0.75, -0.25, 1.25, -0.75, 200, -200, 63.75, 64, -64.25, 0, 1e4])
_HALF = array("", given=[0.5])


@operator(
    quantising.quantize,
    call(_TIES, _HALF, None, "u8", "f32"),
    call(_TIES, _HALF, array("", "u8", given=[128]), "u8", "f32"),
    call(_TIES, _HALF, array("", "i8", given=[-3]), "i8", "f32"),
    call(_TIES, array("4", given=[0.5, 0.25, 2, 4]), array("4", "i8", given=[0, 1, -1, 5]), "i8", "f32"),
    call(_TIES, _HALF, array("", "u16", given=[30000]), "u16", "f32"),
    call(_TIES, _HALF, array("", "i16", given=[-30000]), "i16", "f32"),
    types=("f32", "f16"),
)
def quantize(x: Values, scale: Values, zero: Values | None, dtype: str, computed: str) -> Values:
    """The rounded quotient plus the zero point, saturated."""
    return _saturated(x / scale, zero, dtype)


@operator(
    quantising.dequantize,
    call(array("3 4", "u8"), array("", low=0.1), array("", "u8", given=[128]), "f32"),
    call(array("3 4", "i8"), array("", low=0.1), None, "f32"),
    call(array("3 4", "i8"), array("4", low=0.1), array("4", "i8"), "f32"),
    call(array("3 4", "u16", given=[0, 65535, 1, 2] * 3), array("", low=0.1), array("", "u16", given=[65535]), "f32"),
    call(array("2 2", "i32"), array("", low=0.1), None, "f32"),
    types=("f32",),
)
def dequantize(x: Values, scale: Values, zero: Values | None, computed: str) -> Values:
    """The difference from the zero point, scaled."""
    return (x.astype(np.float64) - (0 if zero is None else zero.astype(np.float64))) * scale


@operator(
    quantising.quantize_by_range,
    call(array("2 6", given=[0, 2, -3, -2.5, 1.34, 0.5, 1, 1, -1, -0.1, 0.2, 0.3])),
    call(array("4", given=[-1.0, -2.1, -1.3, -2.5])),
    call(array("3 2", given=[1, 2.1, 1.3, 2.5, 3.34, 4])),
    results=("result", "scale", "zero"),
    types=("f32",),
)
def quantize_by_range(x: Values) -> list[Values]:
    """Elements quantised over their own range, with scale and zero point."""
    least, most = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32(most - least or 1) / np.float32(255)
    zero: Values = np.clip(np.rint(-np.float32(least) / scale), 0, 255).astype(np.uint8)
    return [_saturated(x.astype(np.float32) / scale, zero, "u8"), np.array(scale, np.float64), zero]


@operator(
    quantising.requantize,
    call(array("3 4", "i32", low=-1000, high=1000), array("", given=[0.25]), array("", given=[2]),
         array("", "u8", given=[100]), "u8", "f32"),
    call(array("2 3", "i32", low=-1000, high=1000), array("3", given=[0.25, 0.5, 1]), array("", given=[4]),
         array("", "i8", given=[-7]), "i8", "f32"),
    types=("f32",),
)  # fmt: skip
def requantize(sums: Values, factor: Values, scale: Values, zero: Values, dtype: str, computed: str) -> Values:
    """Sums of products in the scale and type of the result."""
    return _saturated(sums * (factor / scale), zero, dtype)


_MATRICES = array("3 4", "u8"), array("4 2", "i8")
_POINTS = array("", "u8", given=[100]), array("", "i8", given=[-3])
_WINDOWS: dict[str, Any] = {"stride": (2, 1), "padding": [(1, 0), (0, 2)], "dilation": (1, 2), "groups": 2}


def _along(values: Values | None, rank: int, axis: int) -> Values:
    """A zero point, or a vector of them along an axis."""
    whole = np.zeros(1, np.int64) if values is None else values.astype(np.int64 if values.dtype.kind in "iu" else float)
    return whole.reshape([-1 if d == axis % rank else 1 for d in range(rank)]) if whole.ndim < 2 else whole


@operator(
    quantising.integer_matmul,
    call(*_MATRICES),
    call(*_MATRICES, *_POINTS),
    call(*_MATRICES, _POINTS[0], array("2", "i8")),
    call(*_MATRICES, array("3", "u8"), array("2", "i8")),
    call(array("2 3 4", "i8"), array("4 2", "u8"), array("2 3 1", "i8"), array("1 2", "u8")),
    call(array("1 1", "u8"), array("1 1", "u8"), None, array("1", "u8")),
    types=("i32",),
)
def integer_matmul(a: Values, b: Values, a_zero: Values | None = None, b_zero: Values | None = None) -> Values:
    """The product of integers minus their zero points."""
    left, right = a - _along(a_zero, a.ndim, -2), b - _along(b_zero, b.ndim, -1)
    return np.matmul(left, right).astype(np.int32)


_IMAGES = array("2 4 5 6", "u8"), array("6 2 2 3", "i8")


@operator(
    quantising.integer_conv,
    call(*_IMAGES, groups=2),
    call(*_IMAGES, *_POINTS, **_WINDOWS),
    call(*_IMAGES, _POINTS[0], array("6", "i8"), array("6", "i32"), **_WINDOWS),
    call(array("1 1 4", "i8"), array("1 1 1", "u8"), array("", "i8"), stride=3),
    types=("i32",),
)
def integer_conv(
    x: Values, weights: Values, x_zero: Values | None = None, weights_zero: Values | None = None,
    bias: Values | None = None, **windows: Any,
) -> Values:  # fmt: skip
    """The convolution of integers minus their zero points."""
    left, right = x - _along(x_zero, x.ndim, 1), weights - _along(weights_zero, weights.ndim, 0)
    return conv(left.astype(float), right.astype(float), bias, **windows).astype(np.int32)


def _scaled(values: Sequence[float]) -> Any:
    return array(str(len(values)) if len(values) > 1 else "", given=values)


# Powers of 2 are exact, so that ties are the same in every element type.
_RESULT = _scaled([64]), array("", "u8", given=[90])


@operator(
    quantising.quantised_matmul,
    call(_MATRICES[0], _scaled([0.5]), _POINTS[0], _MATRICES[1], _scaled([0.25]), _POINTS[1], *_RESULT),
    call(array("2 4", "i8"), _scaled([0.5]), array("", "i8", given=[9]), _MATRICES[1], _scaled([0.25, 2]),
         array("2", "i8"), _scaled([256]), array("", "i8", given=[-5])),
    call(_MATRICES[0], _scaled([0.5, 1, 0.25]), array("3", "u8"), _MATRICES[1], _scaled([0.25, 2]), array("2", "i8"),
         *_RESULT),
    types=("f32",),
)  # fmt: skip
def quantised_matmul(
    a: Values, a_scale: Values, a_zero: Values, b: Values, b_scale: Values, b_zero: Values, scale: Values, zero: Values
) -> Values:
    """The product of quantised matrices."""
    sums = integer_matmul(a, b, a_zero, b_zero)
    factor = _along(a_scale, sums.ndim, -2) * _along(b_scale, sums.ndim, -1)
    return requantize(sums, factor, scale, zero, _name(zero), "f32")


@operator(
    quantising.quantised_conv,
    call(_IMAGES[0], _scaled([0.5]), _POINTS[0], _IMAGES[1], _scaled([0.25]), _POINTS[1], *_RESULT, **_WINDOWS),
    call(_IMAGES[0], _scaled([0.5]), _POINTS[0], _IMAGES[1], _scaled([1, 2, 0.5, 1, 0.25, 4]), array("6", "i8"),
         _scaled([256]), array("", "u8", given=[7]), array("6", "i32"), **_WINDOWS),
    types=("f32",),
)  # fmt: skip
def quantised_conv(
    x: Values, x_scale: Values, x_zero: Values, weights: Values, weights_scale: Values, weights_zero: Values,
    scale: Values, zero: Values, bias: Values | None = None, **windows: Any,
) -> Values:  # fmt: skip
    """The convolution of quantised arrays."""
    sums = integer_conv(x, weights, x_zero, weights_zero, bias, **windows)
    return requantize(sums, x_scale * _along(weights_scale, sums.ndim, 1), scale, zero, _name(zero), "f32")


def _name(zero: Values) -> str:
    return next(name for name, kind in _TYPES.items() if zero.dtype == kind)
