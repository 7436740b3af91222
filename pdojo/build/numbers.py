"""Element types of handles, and numbers of them.

Unsigned integers are signless in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from pdojo.build.plain import number_of
from pdojo.dialect.element_types import ELEMENT_TYPES, is_float
from pdojo.dialect.notation.literals import constant_attr
from pdojo.dialect.semantics.rounding import round_float64
from pdojo.dialect.view.nest import Constant
from pdojo.errors import UsageError, did_you_mean

Scalar: TypeAlias = float
"""A number of Python or NumPy; it takes the element type of the array that it is combined with."""
UNSIGNED = {"u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64"}
"""Element types of handles that the dialect lacks, and their types in memory."""


def check_dtype(dtype: str) -> str:
    """The name of an element type; `bool` is `i1`. Raises UsageError for an unknown one."""
    if dtype == "bool":
        return "i1"
    if dtype not in (*ELEMENT_TYPES, *UNSIGNED):
        known = ("bool", *ELEMENT_TYPES, *UNSIGNED)
        raise UsageError(f"'{dtype}' is no element type; {did_you_mean(str(dtype), known)}")
    return dtype


def storage_of(dtype: str) -> str:
    """The element type in memory of handles of type `dtype`."""
    return UNSIGNED.get(dtype, dtype)


def is_unsigned(dtype: str) -> bool:
    """Whether integers of this type of handles are never negative; true for `i1`."""
    return dtype in UNSIGNED or dtype == "i1"


def common_type(function: str, dtypes: Iterable[str]) -> str:
    """The element type of arrays together: that of the array API standard, in which `i1` is 0 and 1 of another type.

    f16 and bf16 together make f32, as in PyTorch. Raises UsageError, which cites `function`, for integers beside
    floating-point numbers and signed integers beside u64.

    Source: array API standard 2024.12, "Type Promotion Rules".
    """
    kinds = [kind for kind in dict.fromkeys(dtypes) if kind != "i1"]
    floats = [kind for kind in kinds if is_float(kind)]
    whole = [kind for kind in kinds if not is_float(kind)]
    if floats:
        widest = max(map(_bits, floats))
        found = floats[0] if len(floats) == 1 else f"f{max(widest, 32)}"
        if whole:
            raise UsageError(f"{function} takes no {whole[0]} beside {floats[0]}; use x.astype('{found}')")
        return found
    signed = [kind for kind in whole if not is_unsigned(kind)]
    unsigned = [kind for kind in whole if is_unsigned(kind)]
    if not signed or not unsigned:
        return max(whole, key=_bits, default="i1")
    bits = max(*map(_bits, signed), *(2 * _bits(kind) for kind in unsigned))
    if bits > 64:
        raise UsageError(f"{function} takes no {signed[0]} beside u64; use x.astype('i64')")
    return f"i{bits}"


def is_within(dtype: str, kind: str) -> bool:
    """Whether a wider integer type has all numbers of an integer type."""
    if is_float(dtype) or is_float(kind) or "i1" in (dtype, kind):
        return False
    return _bits(dtype) < _bits(kind) and (is_unsigned(dtype) or not is_unsigned(kind))


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("biuf"))


def number(value: Scalar, dtype: str) -> Constant:
    """A number of an element type of handles. Raises UsageError if there is none."""
    plain = number_of(value)
    if isinstance(plain, float) and plain.is_integer() and not is_float(dtype):
        plain = int(plain)
    if not is_float(dtype) and isinstance(plain, int):
        bits = int(dtype[1:])
        least, most = (0, 1 << bits) if is_unsigned(dtype) else (-1 << bits - 1, 1 << bits - 1)
        if not least <= plain < most:
            raise UsageError(f"{plain} does not fit {dtype}")
    try:
        constant_attr(plain, storage_of(dtype))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Constant(float(plain) if is_float(dtype) else int(plain), storage_of(dtype))


def cast_number(value: float, dtype: str, kind: str) -> Constant | None:
    """A constant of another type; None for floating-point numbers as integers, and for integers that do not fit."""
    if is_float(dtype):
        # It is rounded to its type first.
        return number(float(round_float64(np.array(float(value)), dtype)), kind) if is_float(kind) else None
    whole = int(value) % (1 << int(dtype[1:])) if is_unsigned(dtype) else int(value)
    if is_float(kind):
        return number(float(whole), kind) if float(whole) == whole else None
    bits = int(kind[1:])
    fits = 0 <= whole < 1 << bits if is_unsigned(kind) else -1 << bits - 1 <= whole < 1 << bits - 1
    return number(whole, kind) if fits and bits > 1 else None
