"""Functions of the bits of numbers: neighbours, mantissas and exponents, shifts by any count, powers of integers."""

from __future__ import annotations

from math import inf
from typing import Any

from pdojo.build.array import Array, broadcast_to, cast, constant, map
from pdojo.build.elementwise import bitcast, where
from pdojo.build.numbers import is_unsigned
from pdojo.errors import UsageError


def next_after(x: Array, y: Array) -> Array:
    """The next number of the element type (f32 or f64) from `x` towards `y`; shapes broadcast."""
    shape = map("+", x, y).shape
    if x.dtype not in ("f32", "f64"):
        raise UsageError(f"the next number is computed of f32 and f64, not of {x.dtype}")
    kind = f"i{x.dtype[1:]}"
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    # The bits of numbers of one sign are in the order of their size.
    step = where((y > x) == (x > 0), constant(1, kind, shape), -1)
    least = map("copysign", bitcast(constant(1, kind, shape), x.dtype), y)
    moved = where(x == 0, least, bitcast(bitcast(x, kind) + step, x.dtype))
    return where(x == y, y, where((x != x) | (y != y), x + y, moved))


def frexp(x: Array) -> tuple[Array, Array]:
    """Mantissas from 0.5 to 1 of f16, bf16 or f32, and the exponents of 2 (i32) with which they give the elements."""
    if x.dtype not in ("f16", "bf16", "f32"):
        raise UsageError(f"mantissas are computed of f16, bf16 and f32, not of {x.dtype}")
    # f64 has no subnormal numbers that are those of a smaller type.
    u = cast(cast(x, "f32"), "f64")
    bits = bitcast(u, "i64")
    exponent = ((bits >> 52) & 0x7FF) - 1022
    mantissa = bitcast((bits & ~(0x7FF << 52)) | (1022 << 52), "f64")
    is_plain = (u != 0) & (abs(u) < inf)
    return cast(cast(where(is_plain, mantissa, u), "f32"), x.dtype), cast(where(is_plain, exponent, 0), "i32")


def shift(sign: str, x: Any, count: Any) -> Array:
    """The shift `<<` or `>>` of an array or a number by another; by a negative or too large count, as by all bits."""
    dtype = (x if isinstance(x, Array) else count).dtype
    most, signs = int(dtype[1:]) - 1, sign == ">>" and not is_unsigned(dtype)
    if not isinstance(count, Array):
        if 0 <= count <= most:
            return map(sign, x, count)
        return map(sign, x, most) if signs else x * 0
    inside = (count >= 0) & (count <= most)
    found = map(sign, x, where(inside, count, most))
    return found if signs else where(inside, found, 0)


def integer_power(x: Array, exponent: Array) -> Array:
    """The power modulo 2^bits, by repeated squaring; negative exponents count as unsigned ones. Shapes broadcast."""
    bits = int(exponent.dtype[1:])
    rest = cast(exponent, f"u{bits}")
    result = constant(1, x.dtype, map("select", rest == 0, x, x).shape)
    for _ in range(bits):
        result = where((rest & 1) == 1, result * x, result)
        x, rest = x * x, rest >> 1
    return result
