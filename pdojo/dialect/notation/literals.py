"""Constants of the notation: text to typed attribute and back."""

from __future__ import annotations

import math
from functools import lru_cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)

from pdojo.dialect.functions import DTYPES


def constant_attr(value: float, dtype: str) -> FloatAttr | IntegerAttr:
    """The constant `value` of type `dtype`; integers may be written signed or unsigned.

    Raises ValueError with the reason if there is no such constant.
    """
    element = DTYPES[dtype]
    if isinstance(element, IntegerType):
        bits = element.width.data
        if isinstance(value, float):
            raise ValueError(  # noqa: TRY004  # the value is wrong for this element type, not the argument's type
                f"{format_float(value, 'f64')} is no constant of type {dtype}"
            )
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise ValueError(f"{value} does not fit {dtype}")
        return IntegerAttr(value, element, truncate_bits=True)
    try:
        attribute = FloatAttr(float(value), element)
    except OverflowError:
        raise ValueError(f"{value} does not fit {dtype}") from None
    if math.isinf(attribute.value.data) and not math.isinf(value):
        raise ValueError(f"{value} does not fit {dtype}")
    return attribute


def format_constant(value: float, dtype: str) -> str:
    """The shortest text that reads back as the constant."""
    element = DTYPES[dtype]
    if not isinstance(element, IntegerType):
        return format_float(float(value), dtype)
    if dtype == "i1":
        return "true" if value else "false"
    return str(value)


def format_float(value: float, dtype: str) -> str:
    """The shortest decimal that rounds to `value` in `dtype`: `0`, `-inf`, `1e-05`, `0.1`."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0"
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return _shortest(value, dtype)


@lru_cache(maxsize=4096)
def _shortest(value: float, dtype: str) -> str:
    element = DTYPES[dtype]
    assert isinstance(element, Float64Type | Float32Type | Float16Type | BFloat16Type)
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        try:
            (rounded,) = element.unpack(element.pack((float(text),)), 1)
        except OverflowError:
            continue
        if rounded == value:
            return text
    return repr(value)
