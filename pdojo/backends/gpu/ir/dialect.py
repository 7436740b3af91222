"""Parts of MLIR's gpu dialect that xDSL's lacks: shuffles, dynamic shared memory, memory spaces.

Names and generic syntax are MLIR's. Tools that read them register `GPU_COMPLETE`; stock `xdsl-opt` reads them with
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
    """The threads that share memory: all, the threads of a block, or none."""

    Global = auto()
    Workgroup = auto()
    Private = auto()


class ShuffleMode(StrEnum):
    """The rule by which a thread finds the thread whose value it receives."""

    Xor = auto()
    Down = auto()
    Up = auto()
    Idx = auto()


@irdl_attr_definition
class AddressSpaceAttr(EnumAttribute[AddressSpace]):
    """The memory space of a memref: `#gpu.address_space<workgroup>`."""

    name = "gpu.address_space"

    def print_parameter(self, printer: Printer) -> None:
        """Print the space in angle brackets, as MLIR does."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AddressSpace:
        """Parse the space in angle brackets."""
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
    """The value of another thread among the first `width` of a warp, all of which must run this operation."""

    name = "gpu.shuffle"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint | AnyFloatConstr)
    mode = prop_def(ShuffleModeAttr)
    value = operand_def(T)
    offset = operand_def(eq(i32))
    width = operand_def(eq(i32))
    result = result_def(T)
    valid = result_def(eq(i1))
    """Whether that thread exists."""

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue) -> None:
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(ShuffleMode.Xor)},
        )


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The dynamic shared memory of a block, whose size in bytes the launch sets."""

    name = "gpu.dynamic_shared_memory"
    result = result_def(MemRefType[IntegerType].constr(element_type=eq(i8), memory_space=eq(WORKGROUP)))
    traits = traits_def(NoMemoryEffect())

    def __init__(self) -> None:
        super().__init__(result_types=[MemRefType(i8, [DYNAMIC_INDEX], memory_space=WORKGROUP)])


_OPERATIONS = (ShuffleOp, DynamicSharedMemoryOp)
_ATTRIBUTES: tuple[type[Attribute], ...] = (AddressSpaceAttr, ShuffleModeAttr)


GPU_COMPLETE = Dialect("gpu", [*GPU.operations, *_OPERATIONS], [*GPU.attributes, *_ATTRIBUTES])
"""xDSL's dialect `gpu`, completed."""


def complete(ctx: Context) -> None:
    """Add the missing parts to the gpu dialect of a context."""
    known = {construct.name for construct in (*ctx.loaded_ops, *ctx.loaded_attrs)}
    for operation in _OPERATIONS:
        if operation.name not in known:
            ctx.load_op(operation)
    for attribute in _ATTRIBUTES:
        if attribute.name not in known:
            ctx.load_attr_or_type(attribute)
