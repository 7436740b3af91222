"""Quantised integers: rounded quotients by a scale, plus a zero point, in the range of their type."""

from __future__ import annotations

from typing import Any

from pdojo.build.array import Array, cast, map
from pdojo.build.contractions import conv, matmul
from pdojo.build.elementwise import clip, maximum, minimum
from pdojo.build.extents import broadcast_shape, shown
from pdojo.build.reductions import max, min
from pdojo.build.shapes import reshape
from pdojo.dialect.element_types import wide_type
from pdojo.errors import UsageError

_RANGES = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767)}


def saturated(x: Array, zero: Array | None, dtype: str) -> Array:
    """Rounded numbers plus a zero point, in the range of an integer type."""
    if dtype not in _RANGES:
        raise UsageError(f"integers of type {dtype} are not quantised")
    least, most = _RANGES[dtype]
    whole = map("roundeven", x)
    shifted = whole if zero is None else whole + cast(zero, x.dtype)
    return cast(clip(shifted, least, most), dtype)


def quantize(x: Array, scale: Array, zero: Array | None, dtype: str, computed: str) -> Array:
    """`x / scale`, rounded, plus the zero point, saturated to `dtype`; the quotient is of type `computed`."""
    return saturated(cast(x, computed) / cast(scale, computed), zero, dtype)


def dequantize(x: Array, scale: Array, zero: Array | None, computed: str) -> Array:
    """`(x - zero) * scale`, in the type `computed`."""
    whole = cast(x, "i32")
    if zero is not None:
        whole = whole - cast(zero, "i32")
    return cast(whole, computed) * cast(scale, computed)


def quantize_by_range(x: Array) -> tuple[Array, Array, Array]:
    """Elements quantised to u8 over their own range, extended to contain 0, with scale and zero point."""
    least, most = minimum(min(x), 0), maximum(max(x), 0)
    scale = (most - least) / 255
    zero = cast(map("roundeven", clip(-least / scale, 0, 255)), "u8")
    return saturated(x / scale, zero, "u8"), scale, zero


def requantize(sums: Array, factor: Array, scale: Array, zero: Array, dtype: str, computed: str) -> Array:
    """Sums of products, times the `factor` of their scales, quantised by the scale of the result."""
    numbers = cast(sums, computed) * (cast(factor, computed) / cast(scale, computed))
    return saturated(numbers, zero, dtype)


def along(values: Array, x: Array, axis: int) -> Array:
    """One number, or a vector of numbers for the places of an axis of `x`, as an array that broadcasts to it."""
    if values.size == 1:
        return reshape(values, ())
    found = reshape(values, [-1 if d == axis % x.rank else 1 for d in range(x.rank)]) if values.rank == 1 else values
    if broadcast_shape(x.shape, found.shape) != x.shape:
        raise UsageError(f"scales or zero points {shown(values.shape)} do not fit axis {axis} of {shown(x.shape)}")
    return found


def _centred(x: Array, zero: Array | None, axis: int) -> Array:
    """Integers minus their zero point, or one for each place of an axis, in i32."""
    whole = cast(x, "i32")
    return whole if zero is None else whole - cast(along(zero, x, axis), "i32")


def integer_matmul(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    """The product of integers minus their zero points, in i32; zero points may differ by row of `a`, column of `b`."""
    return matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1))


def integer_conv(
    x: Array,
    weights: Array,
    x_zero: Array | None = None,
    weights_zero: Array | None = None,
    bias: Array | None = None,
    **windows: Any,
) -> Array:
    """`build.conv` of integers minus their zero points, in i32; zero points of weights may differ by output."""
    return conv(_centred(x, x_zero, 1), _centred(weights, weights_zero, 0), bias, **windows)


def quantised_matmul(
    a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, scale: Array, zero: Array
) -> Array:
    """The product of quantised matrices, with the scale and the zero point of the result, in the type of the latter.

    Scales and zero points may differ by row of `a` and by column of `b`.
    """
    sums = integer_matmul(a, b, a_zero, b_zero)
    factor = along(a_scale, sums, -2) * along(b_scale, sums, -1)
    return requantize(sums, factor, scale, zero, zero.dtype, wide_type(factor.dtype))


def quantised_conv(
    x: Array,
    x_scale: Array,
    x_zero: Array,
    weights: Array,
    weights_scale: Array,
    weights_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
    **windows: Any,
) -> Array:
    """`build.conv` of quantised arrays, as `quantised_matmul`; the bias (i32) is in the scale of the products."""
    sums = integer_conv(x, weights, x_zero, weights_zero, bias, **windows)
    factor = x_scale * along(weights_scale, sums, 1)
    return requantize(sums, factor, scale, zero, zero.dtype, wide_type(factor.dtype))
