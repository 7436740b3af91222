"""What the gpu dialect of MLIR has and that of xDSL lacks: shuffles, shared memory that a launch gives, memory spaces.

Names and generic syntax are MLIR's. Tools that read them register `complete_gpu`; stock `xdsl-opt` reads them with
`--allow-unregistered-dialect`.
"""

from __future__ import annotations

from enum import auto
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloatConstr,
    IntegerType,
    MemRefType,
    SignlessIntegerConstraint,
    i1,
    i8,
    i32,
)
from xdsl.dialects.gpu import GPU
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.str_enum import StrEnum


class AddressSpace(StrEnum):
    """Who shares memory: everybody, the threads of a block, nobody."""

    Global = auto()
    Workgroup = auto()
    Private = auto()


class ShuffleMode(StrEnum):
    """How a thread computes the number of the one whose value it gets."""

    Xor = auto()
    Down = auto()
    Up = auto()
    Idx = auto()


@irdl_attr_definition
class AddressSpaceAttr(EnumAttribute[AddressSpace]):
    """The memory space of a memref: `#gpu.address_space<workgroup>`."""

    name = "gpu.address_space"

    def print_parameter(self, printer: Printer) -> None:
        """In angle brackets, as MLIR prints it."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AddressSpace:
        """In angle brackets."""
        with parser.in_angle_brackets():
            return parser.parse_str_enum(AddressSpace)


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """The mode of a shuffle: `#gpu<shuffle_mode xor>`."""

    name = "gpu.shuffle_mode"


WORKGROUP = AddressSpaceAttr(AddressSpace.Workgroup)
PRIVATE = AddressSpaceAttr(AddressSpace.Private)


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of another thread among the first `width` of a warp, all of which must run the operation."""

    name = "gpu.shuffle"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint | AnyFloatConstr)
    mode = prop_def(ShuffleModeAttr)
    value = operand_def(T)
    offset = operand_def(eq(i32))
    width = operand_def(eq(i32))
    result = result_def(T)
    valid = result_def(eq(i1))
    """Whether there is such a thread."""

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue) -> None:
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(ShuffleMode.Xor)},
        )


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The shared memory of a block whose size the launch says, in bytes."""

    name = "gpu.dynamic_shared_memory"
    result = result_def(MemRefType[IntegerType].constr(element_type=eq(i8), memory_space=eq(WORKGROUP)))
    traits = traits_def(NoMemoryEffect())

    def __init__(self) -> None:
        super().__init__(result_types=[MemRefType(i8, [DYNAMIC_INDEX], memory_space=WORKGROUP)])


_OPERATIONS = (ShuffleOp, DynamicSharedMemoryOp)
_ATTRIBUTES: tuple[type[Attribute], ...] = (AddressSpaceAttr, ShuffleModeAttr)


def complete_gpu() -> Dialect:
    """The dialect `gpu` of xDSL with what it lacks."""
    return Dialect("gpu", [*GPU.operations, *_OPERATIONS], [*GPU.attributes, *_ATTRIBUTES])


def complete(ctx: Context) -> None:
    """Make a context know what its gpu dialect lacks."""
    known = {construct.name for construct in (*ctx.loaded_ops, *ctx.loaded_attrs)}
    for operation in _OPERATIONS:
        if operation.name not in known:
            ctx.load_op(operation)
    for attribute in _ATTRIBUTES:
        if attribute.name not in known:
            ctx.load_attr_or_type(attribute)
