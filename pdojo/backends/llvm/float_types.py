"""Conversions between floating-point types, each rounded once, to nearest even.

LLVM calls a missing library for some of them, and the instructions of some processors flush denormal bfloat16 numbers
to zero: integer operations make those conversions here. For the same reasons LLVM never sees a bfloat16 or an f16, only
the 16 bits. Processors that have instructions for f16 use them.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float16Type, Float32Type, IntegerType
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, value_type
from pdojo.backends.llvm.ops import FCmpOp, SelectOp, lanes, with_lanes
from pdojo.backends.llvm.vectors import splat_constant
from pdojo.dialect.functions import byte_width

_HALF = 0x7FFF
"""Half of the last place of a bfloat16, less one, in last places of an f32."""
_QUIET = 0x40
"""The bit that makes a bfloat16 with full exponent a quiet NaN."""
_F16_INSTRUCTIONS = frozenset(("f16c", "fp-armv8", "zfh", "zfhmin"))
"""Features with instructions that convert between f16 and f32."""


def convert_float(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
    """A float (or lanes of floats) of element type `source` as one of `target`."""
    if source == target:
        return value
    if source == "bf16":
        return convert_float(code, _from_bfloat(code, value), "f32", target)
    if source == "f16":
        return convert_float(code, _from_half(code, value), "f32", target)
    if byte_width(source) < byte_width(target):
        return code.emit(llvm.FPExtOp(value, with_lanes(value_type(target), lanes(value))))
    if source == "f64" and target in ("f16", "bf16"):
        # f32 has more than twice the precision of both, so rounding to odd first does not change the result.
        return convert_float(code, _round_to_odd(code, value), "f32", target)
    if target == "bf16":
        return _to_bfloat(code, value)
    if target == "f16":
        return _to_half(code, value)
    return code.emit(llvm.FPTruncOp(value, with_lanes(value_type(target), lanes(value))))


def _round_to_odd(code: FunctionCode, value: SSAValue) -> SSAValue:
    """An f64 as f32: itself if that is exact, else the neighbour with an odd significand."""
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    nearest = code.emit(llvm.FPTruncOp(value, with_lanes(Float32Type(), count)))
    back = code.emit(llvm.FPExtOp(nearest, value.type))
    inexact = code.emit(FCmpOp("one", back, value))
    magnitudes = [code.intrinsic("llvm.fabs", [v], value.type) for v in (back, value)]
    too_large = code.emit(FCmpOp("ogt", *magnitudes))
    bits = code.emit(llvm.BitcastOp(nearest, bits_type))
    truncated = code.emit(llvm.SubOp(bits, code.emit(llvm.ZExtOp(too_large, bits_type))))
    odd = code.emit(llvm.OrOp(truncated, code.emit(llvm.ZExtOp(inexact, bits_type))))
    return code.emit(llvm.BitcastOp(odd, nearest.type))


def _from_bfloat(code: FunctionCode, value: SSAValue) -> SSAValue:
    """The bits of a bfloat16 as f32: they become its upper half."""
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    wide = code.emit(llvm.ZExtOp(value, bits_type))
    shifted = code.emit(llvm.ShlOp(wide, splat_constant(code, 16, bits_type)))
    return code.emit(llvm.BitcastOp(shifted, with_lanes(Float32Type(), count)))


def _to_bfloat(code: FunctionCode, value: SSAValue) -> SSAValue:
    """An f32 as bits of a bfloat16: its upper half after adding half of the last place, less 1 if that is even."""
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    bits = code.emit(llvm.BitcastOp(value, bits_type))
    upper = code.emit(llvm.LShrOp(bits, splat_constant(code, 16, bits_type)))
    tie = code.emit(llvm.AndOp(upper, splat_constant(code, 1, bits_type)))
    half = code.emit(llvm.AddOp(tie, splat_constant(code, _HALF, bits_type)))
    rounded = code.emit(llvm.LShrOp(code.emit(llvm.AddOp(bits, half)), splat_constant(code, 16, bits_type)))
    nan = code.emit(llvm.OrOp(upper, splat_constant(code, _QUIET, bits_type)))
    chosen = code.emit(SelectOp(code.emit(FCmpOp("uno", value, value)), nan, rounded))
    return code.emit(llvm.TruncOp(chosen, with_lanes(IntegerType(16), count)))


def _converts_half(code: FunctionCode) -> bool:
    """Whether instructions of the processor convert f16; code for all processors leaves that to LLVM."""
    return not code.features or not code.features.isdisjoint(_F16_INSTRUCTIONS)


def _from_half(code: FunctionCode, value: SSAValue) -> SSAValue:
    """The bits of an f16 as f32."""
    count = lanes(value)
    bits_type, single = with_lanes(IntegerType(32), count), with_lanes(Float32Type(), count)
    if _converts_half(code):
        return code.emit(llvm.FPExtOp(code.emit(llvm.BitcastOp(value, with_lanes(Float16Type(), count))), single))

    def number(constant: int) -> SSAValue:
        return splat_constant(code, constant, bits_type)

    bits = code.emit(llvm.ZExtOp(value, bits_type))
    magnitude = code.emit(llvm.AndOp(bits, number(0x7FFF)))
    # Exponent and significand move into place, the exponent too small by 112; multiplying by 2**112 is exact, and
    # normalises denormal numbers.
    placed = code.emit(llvm.ShlOp(magnitude, number(13)))
    scale = code.emit(llvm.BitcastOp(number((127 + 112) << 23), single))
    scaled = code.emit(llvm.FMulOp(code.emit(llvm.BitcastOp(placed, single)), scale))
    special = code.emit(llvm.OrOp(placed, number(0xFF << 23)))
    finite = code.compare("ult", magnitude, number(0x7C00))
    unsigned = code.emit(SelectOp(finite, code.emit(llvm.BitcastOp(scaled, bits_type)), special))
    sign = code.emit(llvm.ShlOp(code.emit(llvm.SubOp(bits, magnitude)), number(16)))
    return code.emit(llvm.BitcastOp(code.emit(llvm.OrOp(unsigned, sign)), single))


def _to_half(code: FunctionCode, value: SSAValue) -> SSAValue:
    """An f32 as bits of an f16."""
    count = lanes(value)
    bits_type, narrow = with_lanes(IntegerType(32), count), with_lanes(IntegerType(16), count)
    if _converts_half(code):
        return code.emit(llvm.BitcastOp(code.emit(llvm.FPTruncOp(value, with_lanes(Float16Type(), count))), narrow))

    def number(constant: int) -> SSAValue:
        return splat_constant(code, constant, bits_type)

    bits = code.emit(llvm.BitcastOp(value, bits_type))
    magnitude = code.emit(llvm.AndOp(bits, number(0x7FFFFFFF)))
    # Normal results: half of the last place is added, less one if that is even; the exponent is too large by 112.
    tie = code.emit(llvm.AndOp(code.emit(llvm.LShrOp(magnitude, number(13))), number(1)))
    half = code.emit(llvm.AddOp(tie, number(0xFFF - (112 << 23))))
    normal = code.emit(llvm.LShrOp(code.emit(llvm.AddOp(magnitude, half)), number(13)))
    # Denormal results: the last place of 0.5 in f32 is 2**-24, the least f16.
    place = code.emit(llvm.BitcastOp(number(126 << 23), value.type))
    shifted = code.emit(llvm.FAddOp(code.emit(llvm.BitcastOp(magnitude, value.type)), place))
    denormal = code.emit(llvm.SubOp(code.emit(llvm.BitcastOp(shifted, bits_type)), number(126 << 23)))
    rounded = code.emit(SelectOp(code.compare("ult", magnitude, number(113 << 23)), denormal, normal))
    bounded = code.emit(SelectOp(code.compare("ult", magnitude, number(143 << 23)), rounded, number(0x7C00)))
    nan = code.emit(SelectOp(code.emit(FCmpOp("uno", value, value)), number(0x7E00), bounded))
    sign = code.emit(llvm.LShrOp(code.emit(llvm.SubOp(bits, magnitude)), number(16)))
    return code.emit(llvm.TruncOp(code.emit(llvm.OrOp(nan, sign)), narrow))
