"""The meaning of every function and accumulation, on NumPy arrays in carriers (`pdojo.dialect.semantics.rounding`).

Operations are computed in the element type. Exact functions round once; others (`exp`, `erf`, ...) are computed
in float64 and rounded. Integers wrap around (two's complement); unsigned functions look at the same bits.
Undefined behaviour of the dialect gets a fixed result here, on which no program may rely: integer division by zero
gives 0 and leaves the dividend as the remainder, a shift by the width or more gives 0 (all signs for `shrsi`), a
conversion to integer out of range saturates and takes NaN to 0.
"""

from __future__ import annotations

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
from pdojo.math.functions import FUNCTIONS, FUSED, Function

Binary: TypeAlias = Callable[[Values, Values], Values]


def apply(function: str | None, operands: Sequence[Values], dtypes: Sequence[str], result: str) -> Values:
    """`function` of carried operands (broadcast against each other), carried as `result`; None is a copy."""
    if function is None:
        return operands[0]
    with np.errstate(all="ignore"):
        spec = FUNCTIONS[function]
        name = spec.mnemonic
        if name in _CASTS:
            return _CASTS[name](operands[0], dtypes[0], result)
        if name == "select":
            return np.where(operands[0], operands[1], operands[2])
        if name.startswith("cmp"):
            return _compare(name[:4], name[5:], operands, dtypes[0])
        if function in FUSED:
            x, y, z = (-o if k == FUSED[function] else o for k, o in enumerate(operands))
            return fma(x, y, z, result)
        return (_float_function if is_float(result) else _integer_function)(spec, operands, result)


def _float_function(spec: Function, operands: Sequence[Values], result: str) -> Values:
    """An exact function in the carrier, with one rounding; float16 goes through float32, whose additional rounding is
    innocuous. Other functions are computed in float64.
    """
    assert spec.numpy is not None
    if not spec.is_exact:
        return round_float64(np.asarray(spec.numpy()(*(np.asarray(o, np.float64) for o in operands))), result)
    value = np.asarray(spec.numpy()(*operands))
    assert value.dtype == CARRIERS[result], f"{spec.name} left its type"
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


def _integer_function(spec: Function, operands: Sequence[Values], result: str) -> Values:
    assert spec.numpy is not None
    if result == "i1" and spec.mnemonic in ("shli", "shrsi", "shrui"):
        # A shift of one bit: every count except 0 is the width or more.
        kept = operands[0] if spec.mnemonic == "shrsi" else operands[0] & ~operands[1]
        return np.asarray(kept | np.zeros_like(operands[1]))
    view = as_unsigned if spec.unsigned else _signed
    value = np.asarray(spec.numpy()(*(view(np.asarray(o)) for o in operands)))
    return _wrapped(value.view(f"i{value.dtype.itemsize}") if spec.unsigned and result != "i1" else value, result)


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
