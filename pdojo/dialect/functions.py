"""Element types, the types of functions of statements, and accumulations; no function (`None`) is a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    FixedBitwidthType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
)
from xdsl.ir import Attribute

from pdojo.dialect.element_types import is_float
from pdojo.math.functions import FUNCTIONS, Signature

ElementType: TypeAlias = Float64Type | Float32Type | Float16Type | BFloat16Type | IntegerType

DTYPES: dict[str, ElementType] = {
    "f64": Float64Type(),
    "f32": Float32Type(),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "i64": IntegerType(64),
    "i32": IntegerType(32),
    "i16": IntegerType(16),
    "i8": IntegerType(8),
    "i1": IntegerType(1),
}
"""Element types by name."""

_NAMES: dict[Attribute, str] = {t: n for n, t in DTYPES.items()}


def dtype_name(element: Attribute) -> str:
    """`f32` for the xDSL type `f32`; raises KeyError for types that are not element types of pdojo."""
    return _NAMES[element]


def is_element_type(element: Attribute) -> bool:
    """Whether arrays can have this element type."""
    return element in _NAMES


@cache
def byte_width(dtype: str) -> int:
    """Bytes that one element takes in memory; i1 takes one."""
    element = DTYPES[dtype]
    assert isinstance(element, FixedBitwidthType)
    return max(1, element.bitwidth // 8)


def cast_between(function: str, source: str, target: str) -> bool:
    """Whether the cast `function` goes from dtype `source` to dtype `target`."""
    match function, is_float(source), is_float(target):
        case "arith.extf", True, True:
            return byte_width(source) < byte_width(target)
        case "arith.truncf", True, True:
            return byte_width(source) > byte_width(target)
        case "arith.sitofp" | "arith.uitofp", False, True:
            return True
        case "arith.fptosi" | "arith.fptoui", True, False:
            return True
        case "arith.extsi" | "arith.extui", False, False:
            return _bits(source) < _bits(target)
        case "arith.trunci", False, False:
            return _bits(source) > _bits(target)
        case "arith.bitcast", _, _:
            return _bits(source) == _bits(target) and source != target
        case _:
            return False


def _bits(dtype: str) -> int:
    return DTYPES[dtype].bitwidth


def check_types(function: str | None, operands: Sequence[str], result: str) -> str | None:
    """The mistake, in one phrase, if `function` does not take dtypes `operands` to `result`; None if it does."""
    if function is None:
        if len(operands) != 1:
            return f"a copy takes one operand, not {len(operands)}"
        return None if operands[0] == result else f"a copy cannot turn {operands[0]} into {result}; use a cast"
    spec = FUNCTIONS.get(function)
    if spec is None:
        return f"unknown function '{function}'"
    if len(operands) != spec.arity:
        return f"'{function}' takes {spec.arity} operand{'s' * (spec.arity != 1)}, not {len(operands)}"
    listed = ", ".join(operands)
    if spec.signature is Signature.CAST:
        fits = cast_between(function, operands[0], result)
    elif spec.signature is Signature.SELECT:
        fits = operands[0] == "i1" and operands[1] == operands[2] == result
    elif len(set(operands)) != 1:
        fits = False
    else:
        wants_float = spec.signature in (Signature.FLOAT, Signature.COMPARE_FLOAT)
        compares = spec.signature in (Signature.COMPARE_FLOAT, Signature.COMPARE_INTEGER)
        fits = is_float(operands[0]) is wants_float and result == ("i1" if compares else operands[0])
    return None if fits else f"'{function}' cannot take ({listed}) to {result}"


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A commutative, associative operation that a statement may accumulate with."""

    function: str
    spelling: str
    exact: bool
    """Whether reordering keeps every bit (all but floating-point sums and products)."""
    identity: float | int | str
    """Neutral element: a number, or `lowest` / `highest` / `ones` of the integer type."""


ACCUMULATIONS: dict[str, Accumulation] = {
    a.function: a
    for a in (
        Accumulation("arith.addf", "+", exact=False, identity=0.0),
        Accumulation("arith.mulf", "*", exact=False, identity=1.0),
        Accumulation("arith.maximumf", "max", exact=True, identity=float("-inf")),
        Accumulation("arith.minimumf", "min", exact=True, identity=float("inf")),
        Accumulation("arith.addi", "+", exact=True, identity=0),
        Accumulation("arith.muli", "*", exact=True, identity=1),
        Accumulation("arith.maxsi", "max", exact=True, identity="lowest"),
        Accumulation("arith.minsi", "min", exact=True, identity="highest"),
        Accumulation("arith.maxui", "umax", exact=True, identity=0),
        Accumulation("arith.minui", "umin", exact=True, identity="ones"),
        Accumulation("arith.andi", "and", exact=True, identity="ones"),
        Accumulation("arith.ori", "or", exact=True, identity=0),
    )
}
"""Accumulations, keyed by the name of their function."""


def identity_value(accumulation: str, dtype: str) -> float | int:
    """The neutral element of an accumulation for a dtype; integers as signed values."""
    identity = ACCUMULATIONS[accumulation].identity
    bits = _bits(dtype)
    match identity:
        case "lowest":
            return -(1 << (bits - 1)) if bits > 1 else -1
        case "highest":
            return (1 << (bits - 1)) - 1
        case "ones":
            return -1
        case str():
            raise AssertionError(identity)
        case _:
            # The number 1 of a single bit is all ones: -1.
            return -identity if dtype == "i1" else identity


def accumulation_function(spelling: str, dtype: str) -> str | None:
    """The function of `spelling=` (`+ * max min umax umin and or`) for a dtype; None if there is none."""
    wants_float = is_float(dtype)
    for function, accumulation in ACCUMULATIONS.items():
        if accumulation.spelling == spelling and function.endswith("f") is wants_float:
            return function
    return None


def accumulates(function: str, dtype: str) -> bool:
    """Whether `function` accumulates into arrays of `dtype`."""
    known = ACCUMULATIONS.get(function)
    return known is not None and accumulation_function(known.spelling, dtype) == function


def has_atomic(operation: str) -> bool:
    """Whether device code has an atomic operation for the accumulation `operation`, such as `add.f32`."""
    name, dtype = operation.split(".")
    return dtype in ("f32", "f64", "i32", "i64") and name != "mul" and (name == "add" or not is_float(dtype))
