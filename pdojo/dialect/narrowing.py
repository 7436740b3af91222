"""Type guards for xDSL's generic attributes, whose parameters `isinstance` leaves unknown; operands."""

from __future__ import annotations

from typing import Protocol, TypeGuard, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
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


class IndexRange(Protocol):
    """The range of an array of indices: its least index, a map to its greatest one, and what others mean."""

    data: tuple[IntegerAttr[IntegerType], AffineMapAttr, StringAttr]


def is_index_range(said: Attribute) -> TypeGuard[IndexRange]:
    """Whether `said` is the range of an array of indices."""
    if not isinstance(said, ArrayAttr):
        return False
    parts = cast("ArrayAttr[Attribute]", said).data
    kinds = IntegerAttr, AffineMapAttr, StringAttr
    return len(parts) == 3 and all(isinstance(part, kind) for part, kind in zip(parts, kinds, strict=True))


def is_integer_constant(constant: Attribute) -> TypeGuard[IntegerAttr[IntegerType | IndexType]]:
    """Whether `constant` is a typed integer constant."""
    return isinstance(constant, IntegerAttr)


def is_float_constant(constant: Attribute) -> TypeGuard[FloatAttr[AnyFloat]]:
    """Whether `constant` is a typed floating-point constant."""
    return isinstance(constant, FloatAttr)
