"""Types of the llvm dialect as llvmlite types, with bfloat16, which llvmlite lacks."""

from __future__ import annotations

import struct

from llvmlite import ir
from xdsl.backend.llvm.convert_type import convert_type as convert_known_type
from xdsl.dialects.builtin import BFloat16Type, VectorType
from xdsl.dialects.llvm import LLVMArrayType
from xdsl.ir import Attribute


class BFloatType(ir.Type):
    """LLVM's `bfloat`."""

    null = "0.0"
    intrinsic_name = "bf16"

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        return hash(BFloatType)

    def format_constant(self, value: float) -> str:
        """The bits of the nearest bfloat16; values of the dialect are representable, so nothing rounds here."""
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return f"0xR{bits >> 16:04X}"


BFLOAT = BFloatType()


def convert_type(kind: Attribute) -> ir.Type:
    """The llvmlite type of a type of the llvm dialect."""
    match kind:
        case BFloat16Type():
            return BFLOAT
        case VectorType():
            return ir.VectorType(convert_type(kind.element_type), kind.get_shape()[0])
        case LLVMArrayType():
            return ir.ArrayType(convert_type(kind.type), kind.size.data)
        case _:
            return convert_known_type(kind)
