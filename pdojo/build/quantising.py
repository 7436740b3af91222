"""Quantised integers: rounded quotients by a scale, plus a zero point, in the range of their type."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pdojo.build.array import Array, cast, map
from pdojo.build.array import constant as build_constant
from pdojo.build.channels_last import channels_last
from pdojo.build.contractions import conv, ends_of, matmul, with_bias
from pdojo.build.elementwise import bitcast, clip, maximum, minimum, where
from pdojo.build.extents import broadcast_shape, shown
from pdojo.build.pieces import pad
from pdojo.build.policy import of_one_type
from pdojo.build.reductions import max, min, sum
from pdojo.build.shapes import reshape
from pdojo.dialect.element_types import wide_type
from pdojo.dialect.view.nest import Constant
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


def quantize_product(x: Array, scale: Array, zero: Array | None, dtype: str, computed: str) -> Array:
    """`quantize` by a multiplication with the rounded reciprocal of the scale: for what was rounded before."""
    return saturated(cast(x, computed) * reciprocal(cast(scale, computed)), zero, dtype)


def reciprocal(x: Array) -> Array:
    """`1 / x`; a number if it is one."""
    if isinstance(x.operand, Constant) and x.dtype == "f32" and x.operand.value:
        return build_constant(float(np.float32(1) / np.float32(x.operand.value)), "f32", x.shape)
    return 1 / x


def dequantize(x: Array, scale: Array, zero: Array | None, computed: str) -> Array:
    """`(x - zero) * scale`, in the type `computed`."""
    whole = cast(x, "i32")
    if zero is not None:
        whole = whole - cast(zero, "i32")
    return cast(whole, computed) * cast(scale, computed)


def quantize_by_range(x: Array) -> tuple[Array, Array, Array]:
    """Elements quantised to u8 over their own range, extended to contain 0, with scale and zero point."""
    least, most = minimum(min(x), 0), maximum(max(x), 0)
    # ONNX's evaluator gives zeros this scale, ONNX Runtime the scale 1.
    scale = where(most == least, 1, most - least) / 255
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


GROUP = 4
"""Bytes that an instruction of the processors multiplies and adds up together."""
_SHIFT = {"u8": 128, "i8": -128}
"""The number to add to integers of the other type of 8 bits."""


def _bytes(x: Array, zero: Array | None, dtype: str) -> tuple[Array, Array | None]:
    """Integers of 8 bits as `dtype`, and their zero points in i32, both shifted if `x` has the other sign.

    None if all zero points are 0. Processors multiply unsigned bytes by signed ones.
    """
    whole = None if zero is None else cast(zero, "i32")
    if x.dtype == dtype:
        return x, whole
    shift = _SHIFT[dtype]
    moved = build_constant(shift, "i32") if whole is None else whole + shift
    return bitcast(map("^", bitcast(x, "i8"), -128), dtype), moved


def _are_bytes(*arrays: Array) -> bool:
    return all(each.dtype in _SHIFT for each in arrays)


def integer_matmul(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    """The product of integers minus their zero points, in i32; zero points may differ by row of `a`, column of `b`.

    Bytes are multiplied as they are: sum (a - p) (b - q) = sum a b - p sum b - q (sum a - K p), for K terms.
    """
    if not _are_bytes(a, b) or a.rank < 2 or b.rank < 2:
        return matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1))
    left, p = _bytes(a, a_zero, "u8")
    right, q = _bytes(b, b_zero, "i8")
    rows, columns = cast(left, "i32"), cast(right, "i32")
    found = matmul(rows, columns)
    p, q = (None if each is None else along(each, x, k) for each, x, k in ((p, a, -2), (q, b, -1)))
    if p is not None:
        found = found - p * sum(columns, -2, keepdims=True)
    if q is not None:
        terms = sum(rows, -1, keepdims=True)
        found = found - q * (terms if p is None else terms - p * a.shape[-1])
    return found


def integer_conv(
    x: Array,
    weights: Array,
    x_zero: Array | None = None,
    weights_zero: Array | None = None,
    bias: Array | None = None,
    **windows: Any,
) -> Array:
    """`build.conv` of integers minus their zero points, in i32; zero points of weights may differ by output.

    Bytes are multiplied as they are, as in `integer_matmul`, with channels last: instructions multiply several.
    """
    is_one = x_zero is None or x_zero.size == 1
    if not _are_bytes(x, weights) or not is_one or x.rank < 3:
        return conv(_centred(x, x_zero, 1), _centred(weights, weights_zero, 0), bias, **windows)
    left, p = _bytes(x, x_zero, "u8")
    right, q = _bytes(weights, weights_zero, "i8")
    rank = x.rank - 2
    border = build_constant(0, "u8") if p is None else cast(reshape(p, ()), "u8")
    is_grouped = windows.get("groups", 1) != 1
    extra = 0 if is_grouped else -x.shape[1] % GROUP
    more = [(0, 0), (0, extra), *[(0, 0)] * rank]
    images = channels_last(left, border, ends_of(windows.pop("padding", 0), rank), extra)
    factors = cast(images, "i32"), cast(pad(right, more), "i32")
    found = conv(*factors, **windows)
    spatial = range(1, x.rank)
    if p is not None:
        found = found - reshape(p, ()) * reshape(sum(factors[1], [*spatial]), (-1, *[1] * rank))
    if q is not None:
        ones = pad(build_constant(1, "i32", (weights.shape[0] if is_grouped else 1, *weights.shape[1:])), more)
        terms = conv(factors[0], ones, **windows)
        terms = terms if p is None else terms - reshape(p, ()) * prod(weights.shape[1:])
        found = found - along(q, found, 1) * terms
    return with_bias(found, bias)


@of_one_type
def quantised_matmul(
    a: Array,
    a_scale: Array,
    a_zero: Array | None,
    b: Array,
    b_scale: Array,
    b_zero: Array | None,
    scale: Array,
    zero: Array,
) -> Array:
    """The product of quantised matrices, with the scale and the zero point of the result, in the type of the latter.

    Scales and zero points may differ by row of `a` and by column of `b`.
    """
    sums = integer_matmul(a, b, a_zero, b_zero)
    factor = along(a_scale, sums, -2) * along(b_scale, sums, -1)
    return requantize(sums, factor, scale, zero, zero.dtype, wide_type(factor.dtype))


@of_one_type
def quantised_conv(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    weights: Array,
    weights_scale: Array,
    weights_zero: Array | None,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
    **windows: Any,
) -> Array:
    """`build.conv` of quantised arrays, as `quantised_matmul`; the bias (i32) is in the scale of the products."""
    sums = integer_conv(x, weights, x_zero, weights_zero, bias, **windows)
    factor = x_scale * along(weights_scale, sums, 1)
    return requantize(sums, factor, scale, zero, zero.dtype, wide_type(factor.dtype))
