"""The meaning of every function and accumulation, on NumPy arrays in carriers (`pdojo.dialect.semantics.rounding`).

Operations are computed in the element type. `+ - * / sqrt` and `fma` round once; the other `math` functions are
computed in float64 and rounded. Integers wrap around (two's complement); unsigned functions look at the same bits.
Undefined behaviour of the dialect gets a fixed result here, on which no program may rely: integer division by zero
gives 0 and leaves the dividend as the remainder, a shift by the width or more gives 0 (all signs for `shrsi`), a
conversion to integer out of range saturates and takes NaN to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pdojo.dialect.functions import DTYPES, is_float
from pdojo.dialect.semantics.rounding import (
    CARRIERS,
    Values,
    fma,
    from_interface,
    round_float32_to_bf16,
    round_float64,
    to_interface,
)

Binary: TypeAlias = Callable[[Values, Values], Values]


def apply(function: str | None, operands: Sequence[Values], dtypes: Sequence[str], result: str) -> Values:
    """`function` of carried operands (broadcast against each other), carried as `result`; None is a copy."""
    if function is None:
        return operands[0]
    with np.errstate(all="ignore"):
        dialect, _, name = function.partition(".")
        if name in _CASTS:
            return _CASTS[name](operands[0], dtypes[0], result)
        if name == "select":
            return np.where(operands[0], operands[1], operands[2])
        if name.startswith("cmp"):
            return _compare(name[:4], name[5:], operands, dtypes[0])
        if name == "fma":
            return fma(operands[0], operands[1], operands[2], result)
        if is_float(result):
            return _float_function(dialect, name, operands, result)
        return _integer_function(name, operands, result)


# Floating point


def _maximum(a: Values, b: Values) -> Values:
    """NaN wins; -0 is less than +0."""
    result = np.maximum(a, b)
    zero = result == 0
    if not np.any(zero):
        return result
    # A maximum of zero is +0 if one operand is.
    positive = ((a == 0) & ~np.signbit(a)) | ((b == 0) & ~np.signbit(b))
    return np.where(zero, np.copysign(np.abs(result), np.where(positive, 1, -1).astype(result.dtype)), result)


def _minimum(a: Values, b: Values) -> Values:
    return -_maximum(-a, -b)


def _maxnum(a: Values, b: Values) -> Values:
    """NaN loses; -0 is less than +0, although the dialect permits either result."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, _maximum(a, b)))


def _minnum(a: Values, b: Values) -> Values:
    return -_maxnum(-a, -b)


def _erf(x: Values) -> Values:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _rsqrt(x: Values) -> Values:
    return 1.0 / np.sqrt(x)


_FLOAT_NATIVE: dict[str, Callable[..., Values]] = {
    "negf": np.negative,
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": _maximum,
    "minimumf": _minimum,
    "maxnumf": _maxnum,
    "minnumf": _minnum,
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "roundeven": np.rint,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "remf": np.fmod,
}
"""Computed in the carrier with one rounding; float16 goes through float32, whose additional rounding is innocuous."""

_FLOAT_WIDE: dict[str, Callable[..., Values]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "powf": np.power,
    "erf": _erf,
    "rsqrt": _rsqrt,
}
"""Computed in float64, then rounded."""


def _float_function(dialect: str, name: str, operands: Sequence[Values], result: str) -> Values:
    if name in _FLOAT_WIDE:
        wide = [np.asarray(o, np.float64) for o in operands]
        return round_float64(np.asarray(_FLOAT_WIDE[name](*wide)), result)
    value = np.asarray(_FLOAT_NATIVE[name](*operands))
    assert value.dtype == CARRIERS[result], f"{dialect}.{name} left its type"
    return round_float32_to_bf16(value) if result == "bf16" else value


# Integers. `i1` is computed as the signed integers 0 and -1.


def _signed(values: Values) -> Values:
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def as_unsigned(values: Values) -> Values:
    """The bits of integers, as unsigned integers; `i1` as 0 and 1."""
    if values.dtype == np.bool_:
        return values.astype(np.uint8)
    return np.asarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))


def _wrapped(values: Values, dtype: str) -> Values:
    """The low bits of integers, as carried values of `dtype`."""
    if dtype == "i1":
        return (values & 1).astype(np.bool_)
    return values.astype(CARRIERS[dtype], copy=False)


def _divide(a: Values, b: Values) -> Values:
    """The quotient rounded towards zero; 0 for division by zero; the least integer divided by -1 wraps around."""
    if a.dtype.kind == "u":
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)
    floor = _floor_divide(a, b)
    inexact = (floor * b != a) & (b != 0)
    return (floor + (inexact & (floor < 0))).astype(a.dtype)


def _floor_divide(a: Values, b: Values) -> Values:
    safe = np.where((b == 0) | (b == -1), 1, b)
    return np.where(b == 0, 0, np.where(b == -1, -a, a // safe)).astype(a.dtype)


def _remainder(a: Values, b: Values) -> Values:
    return a - _divide(a, b) * b


def _shift_left(a: Values, b: Values) -> Values:
    return np.where(_in_width(a, b), a << np.where(_in_width(a, b), b, 0), 0).astype(a.dtype)


def _shift_right(a: Values, b: Values) -> Values:
    """Fills with the sign for signed operands."""
    last = a.dtype.itemsize * 8 - 1
    filled = a >> np.where(_in_width(a, b), b, last).astype(a.dtype)
    return np.where(_in_width(a, b) | (a.dtype.kind == "i"), filled, 0).astype(a.dtype)


def _in_width(a: Values, b: Values) -> Values:
    return np.asarray((b >= 0) & (b < a.dtype.itemsize * 8))


_SIGNED: dict[str, Callable[..., Values]] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": _divide,
    "floordivsi": _floor_divide,
    "remsi": _remainder,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": _shift_left,
    "shrsi": _shift_right,
    "absi": np.abs,
}

_UNSIGNED: dict[str, Callable[..., Values]] = {
    "divui": _divide,
    "remui": _remainder,
    "maxui": np.maximum,
    "minui": np.minimum,
    "shrui": _shift_right,
}


def _integer_function(name: str, operands: Sequence[Values], result: str) -> Values:
    if result == "i1" and name in ("shli", "shrsi", "shrui"):
        # Any shift but by 0 is by the width or more.
        kept = operands[0] if name == "shrsi" else operands[0] & ~operands[1]
        return np.asarray(kept | np.zeros_like(operands[1]))
    if name in _SIGNED:
        value = np.asarray(_SIGNED[name](*(_signed(np.asarray(o)) for o in operands)))
        return _wrapped(value, result)
    value = np.asarray(_UNSIGNED[name](*(as_unsigned(np.asarray(o)) for o in operands)))
    return _wrapped(value if result == "i1" else value.view(f"i{value.dtype.itemsize}"), result)


# Comparisons

_RELATIONS: dict[str, Binary] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def _compare(kind: str, predicate: str, operands: Sequence[Values], dtype: str) -> Values:
    a, b = (np.asarray(o) for o in operands)
    if kind == "cmpi":
        if predicate in ("eq", "ne"):
            return _RELATIONS[predicate](a, b)
        view = _signed if predicate[0] == "s" else as_unsigned
        return _RELATIONS[predicate[1:]](view(a), view(b))
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    holds = _RELATIONS[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "u" else holds & ~unordered


# Casts


def _float_to_float(values: Values, source: str, target: str) -> Values:
    if source == "f64":
        return round_float64(values, target)
    return round_float32_to_bf16(values) if target == "bf16" else values.astype(CARRIERS[target])


def _integer_to_float(values: Values, target: str) -> Values:
    if target in ("f64", "f32"):
        return values.astype(CARRIERS[target])
    # Beyond 53 bits, the low bits become one sticky bit: exact in float64, and on the same side of every tie.
    wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    large = np.abs(values.astype(np.float64)) >= 2.0**53
    low = np.asarray(0x7FF, wide.dtype)
    sticky = (wide & ~low) | ((wide & low != 0).astype(wide.dtype) << 11)
    return round_float64(np.where(large, sticky, wide).astype(np.float64), target)


def _float_to_integer(values: Values, target: str, *, signed: bool) -> Values:
    bits = DTYPES[target].bitwidth
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    whole = np.trunc(np.where(np.isnan(values), 0, values).astype(np.float64))
    carrier = np.dtype(np.int64 if signed else np.uint64)
    inside = np.where((whole > low) & (whole < high), whole, 0).astype(carrier)
    result = np.where(whole <= low, carrier.type(low), np.where(whole >= high, carrier.type(high), inside))
    return _wrapped(result, target)


def _bitcast(values: Values, source: str, target: str) -> Values:
    bits = np.asarray(to_interface(values, source))
    width = bits.dtype.itemsize
    if target == "bf16":
        return from_interface(bits.view(np.uint16), "bf16")
    return bits.view(CARRIERS[target]) if width == CARRIERS[target].itemsize else bits.astype(CARRIERS[target])


_CASTS: dict[str, Callable[[Values, str, str], Values]] = {
    "extf": _float_to_float,
    "truncf": _float_to_float,
    "sitofp": lambda v, _, target: _integer_to_float(_signed(v), target),
    "uitofp": lambda v, _, target: _integer_to_float(as_unsigned(v), target),
    "fptosi": lambda v, _, target: _float_to_integer(v, target, signed=True),
    "fptoui": lambda v, _, target: _float_to_integer(v, target, signed=False),
    "extsi": lambda v, _, target: _wrapped(_signed(v), target),
    "extui": lambda v, _, target: _wrapped(as_unsigned(v), target),
    "trunci": lambda v, _, target: _wrapped(v, target),
    "bitcast": _bitcast,
}


# Constants


def constant(value: float, dtype: str) -> Values:
    """A typed constant, carried, of shape (); integers are taken modulo the width, any non-zero i1 is true."""
    if is_float(dtype):
        return np.asarray(round_float64(np.asarray(value, np.float64), dtype)).reshape(())
    if dtype == "i1":
        return np.asarray(bool(value))
    bits = DTYPES[dtype].bitwidth
    wrapped = (int(value) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return np.asarray(wrapped, CARRIERS[dtype])


def index_values(values: Values, dtype: str) -> Values:
    """Values of an index expression (int64), converted to the element type."""
    if dtype == "i1":
        return (values & 1).astype(np.bool_)
    return round_float64(values.astype(np.float64), dtype) if is_float(dtype) else values.astype(CARRIERS[dtype])


def poison(shape: tuple[int, ...], dtype: str) -> Values:
    """The content of unwritten memory: NaN, or an integer pattern that no program computes by chance."""
    if is_float(dtype):
        return np.full(shape, np.nan, CARRIERS[dtype])
    pattern = constant(0x5AA5_C33C_A55A_3CC3, dtype)
    return np.full(shape, pattern, CARRIERS[dtype])
