"""Quantised integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.build import quantising
from pdojo.build.operator import array, call, operator

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
    scale = np.float32(most - least) / np.float32(255)
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
