"""Refusals: the operation of a function that no kernel can express, and the reason."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    NoneAttr,
    ShapedType,
    TensorType,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from pdojo.dialect.functions import DTYPES, dtype_name, is_element_type
from pdojo.dialect.narrowing import is_memref
from pdojo.errors import ConversionError

INDEX = "i64"
"""The element type in which values of type `index` are computed."""


def name_of(op: Operation) -> str:
    """The operation's name, also if its dialect does not know it."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def refused(op: Operation, reason: str) -> ConversionError:
    """The error for an operation of a function; it names the function, and the location if the operation has one."""
    around: Operation | None = op
    while around is not None and not isinstance(around, FuncOp):
        around = around.parent_op()
    where = "" if around is None else f"function '{around.sym_name.data}': "
    what = "" if around is op else f"'{name_of(op)}' "
    place = "" if isinstance(op.location, UnknownLoc) else f" ({op.location})"
    return ConversionError(f"{where}{what}{reason}{place}", op)


def dtype_of(op: Operation, type: Attribute) -> str:
    """The element type of a tensor, memref or scalar. Raises ConversionError if arrays have no such elements."""
    if isinstance(type, IndexType):
        return INDEX
    element = type.element_type if isa(type, TensorType[Attribute]) or is_memref(type) else type
    if not is_element_type(element):
        raise refused(op, f"has elements of type {element}; kernels have {', '.join(DTYPES)}")
    return dtype_name(element)


def shape_of(op: Operation, type: Attribute) -> tuple[int, ...]:
    """The extents of a tensor or memref, () for a scalar. Raises ConversionError for sizes that kernels lack."""
    if not isinstance(type, ShapedType):
        return ()
    shape = type.get_shape()
    if DYNAMIC_INDEX in shape:
        raise refused(op, f"has the type {type}, whose sizes are not all known; kernels have static sizes")
    if 0 in shape:
        raise refused(op, f"has the type {type} without elements; arrays of kernels have at least one")
    return shape


def check_memory(op: Operation, type: Attribute) -> None:
    """Raise ConversionError for memory of a caller that is not row-major, or in a memory space."""
    if isinstance(type, MemRefType) and not (
        isinstance(type.layout, NoneAttr) and isinstance(type.memory_space, NoneAttr)
    ):
        raise refused(op, f"has the type {type}; arguments of kernels are row-major, in the default memory space")
