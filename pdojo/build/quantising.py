"""Quantised integers: rounded quotients by a scale, plus a zero point, in the range of their type."""

from __future__ import annotations

from pdojo.build.array import Array, cast, map
from pdojo.build.elementwise import clip, maximum, minimum
from pdojo.build.reductions import max, min
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
