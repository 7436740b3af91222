"""Type guards for xDSL's generic attributes, whose parameters `isinstance` leaves unknown; operands."""

from __future__ import annotations

from typing import TypeGuard, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """The operands of an operation; xDSL's view of them is several times as slow."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


def is_memref(type: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether `type` is the type of an array."""
    return isinstance(type, MemRefType)


def is_integer_type(type: Attribute) -> TypeGuard[IntegerType]:
    """Whether `type` is an integer type, of any width."""
    return isinstance(type, IntegerType)


def is_table(entries: Attribute) -> TypeGuard[DenseArrayBase[IntegerType]]:
    """Whether `entries` are the entries of a table: an array of i64."""
    return isinstance(entries, DenseArrayBase) and cast("DenseArrayBase[IntegerType]", entries).elt_type == i64


def is_integer_constant(constant: Attribute) -> TypeGuard[IntegerAttr[IntegerType | IndexType]]:
    """Whether `constant` is a typed integer constant."""
    return isinstance(constant, IntegerAttr)


def is_float_constant(constant: Attribute) -> TypeGuard[FloatAttr[AnyFloat]]:
    """Whether `constant` is a typed floating-point constant."""
    return isinstance(constant, FloatAttr)
