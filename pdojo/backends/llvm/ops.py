"""The dialect `llvmx`: operations of LLVM that xDSL's llvm dialect lacks or restricts to scalars."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    I64,
    AnyFloatConstr,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoMemoryEffect, Pure

_INTEGERS = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_FLOATS = AnyFloatConstr | VectorType.constr(AnyFloatConstr)


class _Cast(IRDLOperation):
    """A conversion between numbers, lane by lane."""

    assembly_format = "$arg attr-dict `:` type($arg) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[arg], result_types=[result_type])


@irdl_op_definition
class FPToSIOp(_Cast):
    """`fptosi`: truncation to a signed integer."""

    name = "llvmx.fptosi"
    arg = operand_def(_FLOATS)
    result = result_def(_INTEGERS)


@irdl_op_definition
class FPToUIOp(_Cast):
    """`fptoui`: truncation to an unsigned integer."""

    name = "llvmx.fptoui"
    arg = operand_def(_FLOATS)
    result = result_def(_INTEGERS)


@irdl_op_definition
class UIToFPOp(_Cast):
    """`uitofp`: an unsigned integer as a float."""

    name = "llvmx.uitofp"
    arg = operand_def(_INTEGERS)
    result = result_def(_FLOATS)


@irdl_op_definition
class FCmpOp(IRDLOperation):
    """`fcmp` with one result per lane; the predicate has LLVM's name (`olt`, `uno`, ...)."""

    name = "llvmx.fcmp"

    T: ClassVar = VarConstraint("T", _FLOATS)

    lhs = operand_def(T)
    rhs = operand_def(T)
    predicate = prop_def(StringAttr)
    res = result_def(base(IntegerType) | VectorType.constr(I1))

    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($res)"
    traits = traits_def(Pure())

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[with_lanes(i1, lanes(lhs))],
        )


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`select` with one condition per lane."""

    name = "llvmx.select"

    T: ClassVar = VarConstraint("T", AnyAttr())

    cond = operand_def(base(IntegerType) | VectorType.constr(I1))
    lhs = operand_def(T)
    """The value of lanes whose condition holds."""
    rhs = operand_def(T)
    res = result_def(T)

    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($res)"
    traits = traits_def(Pure())

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
    """`extractelement`: one lane of a vector."""

    name = "llvmx.extractelement"

    vector = operand_def(VectorType)
    index = operand_def(SignlessIntegerConstraint)
    res = result_def(AnyAttr())

    assembly_format = "$vector `[` $index `:` type($index) `]` attr-dict `:` type($vector) `to` type($res)"
    traits = traits_def(NoMemoryEffect())

    def __init__(self, vector: SSAValue, index: SSAValue) -> None:
        assert isinstance(vector.type, VectorType)
        super().__init__(operands=[vector, index], result_types=[vector.type.element_type])


@irdl_op_definition
class AddressesOp(IRDLOperation):
    """`getelementptr` of a scalar pointer and one index per lane: a vector of pointers."""

    name = "llvmx.addresses"

    pointer = operand_def(eq(LLVMPointerType()))
    offsets = operand_def(VectorType.constr(I64))
    """Distance of each lane from `pointer`, in elements."""
    element = prop_def()
    """Type of the elements."""
    res = result_def(VectorType.constr(base(LLVMPointerType)))

    assembly_format = "$pointer `[` $offsets `]` `:` type($offsets) `,` $element attr-dict `->` type($res)"
    traits = traits_def(NoMemoryEffect())

    def __init__(self, pointer: SSAValue, offsets: SSAValue, element: Attribute) -> None:
        assert isinstance(offsets.type, VectorType)
        result = VectorType(LLVMPointerType(), offsets.type.get_shape())
        super().__init__(operands=[pointer, offsets], properties={"element": element}, result_types=[result])


@irdl_op_definition
class StoreFenceOp(IRDLOperation):
    """`fence seq_cst`: other threads see earlier stores, even non-temporal ones, before any later access."""

    name = "llvmx.fence"

    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


LLVMX = Dialect(
    "llvmx",
    [FCmpOp, FPToSIOp, FPToUIOp, UIToFPOp, SelectOp, ExtractElementOp, AddressesOp, StoreFenceOp],
    [],
)
"""The dialect, as registered with xDSL."""


def lanes(value: SSAValue | Attribute) -> int | None:
    """Number of lanes of a value or type if it is a vector; None for a scalar."""
    kind = value.type if isinstance(value, SSAValue) else value
    return kind.get_shape()[0] if isinstance(kind, VectorType) else None


@lru_cache(maxsize=256)
def with_lanes(element: Attribute, count: int | None) -> Attribute:
    """The vector type of `count` elements; the element type itself if `count` is None."""
    return element if count is None else VectorType(element, [count])


def element_type(value: SSAValue) -> Attribute:
    """The type of a scalar, or of the lanes of a vector."""
    return value.type.element_type if isinstance(value.type, VectorType) else value.type


__all__ = [
    "LLVMX",
    "AddressesOp",
    "ExtractElementOp",
    "FCmpOp",
    "FPToSIOp",
    "FPToUIOp",
    "SelectOp",
    "StoreFenceOp",
    "UIToFPOp",
    "element_type",
    "lanes",
    "with_lanes",
]
