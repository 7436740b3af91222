"""Conversions between floating-point types, each rounded once, to nearest even.

Some conversions use integer operations: LLVM would call a missing library for them, or the processor's instructions
would flush denormal bfloat16 numbers to zero. For the same reasons, LLVM sees a bfloat16 or f16 only as 16 bits.
Processors with f16 instructions use these.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float16Type, Float32Type, IntegerType
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, value_type
from pdojo.backends.llvm.ops import FCmpOp, SelectOp, lanes, with_lanes
from pdojo.backends.llvm.vectors import splat_constant
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Constant

_ZERO = Constant(0.0, "f64")
_HALF = 0x7FFF
"""The rounding offset from f32 to bfloat16: one less than half of the 2**16 f32 steps between bfloat16 numbers."""
_QUIET = 0x40
"""The bit that turns a bfloat16 with full exponent into a quiet NaN."""
_F16_INSTRUCTIONS = frozenset(("f16c", "fp-armv8", "zfh", "zfhmin"))
"""Features whose instructions convert between f16 and f32."""


def convert_float(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
    """Convert a float (or lanes of floats) from element type `source` to `target`."""
    if source == target:
        return value
    if source == "bf16":
        return convert_float(code, _from_bfloat(code, value), "f32", target)
    if source == "f16":
        return convert_float(code, _from_half(code, value), "f32", target)
    if byte_width(source) < byte_width(target):
        return code.emit(llvm.FPExtOp(value, with_lanes(value_type(target), lanes(value))))
    if source == "f64" and target in ("f16", "bf16"):
        # f32 has more than twice the precision of f16 and bf16, so rounding to odd first does not change the result.
        return convert_float(code, _round_to_odd(code, value), "f32", target)
    if target == "bf16":
        return _to_bfloat(code, value)
    if target == "f16":
        return _to_half(code, value)
    return code.emit(llvm.FPTruncOp(value, with_lanes(value_type(target), lanes(value))))


def fused_to_odd(code: FunctionCode, x: SSAValue, y: SSAValue, z: SSAValue) -> SSAValue:
    """`x * y + z` of f64 as f32, exact or with an odd significand; the product must be exact."""
    product = code.emit(llvm.FMulOp(x, y))
    total = code.emit(llvm.FAddOp(product, z))
    part = code.emit(llvm.FSubOp(total, product))
    lost = code.emit(llvm.FSubOp(product, code.emit(llvm.FSubOp(total, part))))
    return _round_to_odd(code, total, code.emit(llvm.FAddOp(lost, code.emit(llvm.FSubOp(z, part)))))


def _round_to_odd(code: FunctionCode, value: SSAValue, rest: SSAValue | None = None) -> SSAValue:
    """Convert f64 to f32: exact values stay, others become the neighbour with an odd significand.

    `rest` is what the value lacks, at most half of its last place; None if it lacks nothing.
    """
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    nearest = code.emit(llvm.FPTruncOp(value, with_lanes(Float32Type(), count)))
    back = code.emit(llvm.FPExtOp(nearest, value.type))
    inexact = code.emit(FCmpOp("one", back, value))
    magnitudes = [code.intrinsic("llvm.fabs", [v], value.type) for v in (back, value)]
    too_large = code.emit(FCmpOp("ogt", *magnitudes))
    if rest is not None:
        zero = code.constant(_ZERO) if count is None else code.splat_constant(_ZERO, count)
        fits = code.emit(FCmpOp("oeq", back, value))
        signs = [code.emit(FCmpOp("olt", v, zero)) for v in (rest, value)]
        lacks = code.emit(FCmpOp("one", rest, zero))
        opposite = code.emit(llvm.XOrOp(signs[0], signs[1]))
        inexact = code.emit(llvm.OrOp(inexact, lacks))
        below = code.emit(llvm.AndOp(code.emit(llvm.AndOp(fits, lacks)), opposite))
        too_large = code.emit(llvm.OrOp(too_large, below))
    bits = code.emit(llvm.BitcastOp(nearest, bits_type))
    truncated = code.emit(llvm.SubOp(bits, code.emit(llvm.ZExtOp(too_large, bits_type))))
    odd = code.emit(llvm.OrOp(truncated, code.emit(llvm.ZExtOp(inexact, bits_type))))
    return code.emit(llvm.BitcastOp(odd, nearest.type))


def _from_bfloat(code: FunctionCode, value: SSAValue) -> SSAValue:
    """Convert the bits of a bfloat16 to f32, whose upper half they are."""
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    wide = code.emit(llvm.ZExtOp(value, bits_type))
    shifted = code.emit(llvm.ShlOp(wide, splat_constant(code, 16, bits_type)))
    return code.emit(llvm.BitcastOp(shifted, with_lanes(Float32Type(), count)))


def _to_bfloat(code: FunctionCode, value: SSAValue) -> SSAValue:
    """Convert f32 to the bits of a bfloat16: the upper half of the sum with half of its last place, minus 1 if even."""
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
    """Whether the processor has instructions to convert f16; in code for all processors, LLVM converts."""
    return not code.features or not code.features.isdisjoint(_F16_INSTRUCTIONS)


def _from_half(code: FunctionCode, value: SSAValue) -> SSAValue:
    """Convert the bits of an f16 to f32."""
    count = lanes(value)
    bits_type, single = with_lanes(IntegerType(32), count), with_lanes(Float32Type(), count)
    if _converts_half(code):
        return code.emit(llvm.FPExtOp(code.emit(llvm.BitcastOp(value, with_lanes(Float16Type(), count))), single))

    def number(constant: int) -> SSAValue:
        return splat_constant(code, constant, bits_type)

    bits = code.emit(llvm.ZExtOp(value, bits_type))
    magnitude = code.emit(llvm.AndOp(bits, number(0x7FFF)))
    # Exponent and significand move into place; the exponent is then too small by 112. Multiplying by 2**112 is exact,
    # and normalises denormal numbers.
    placed = code.emit(llvm.ShlOp(magnitude, number(13)))
    scale = code.emit(llvm.BitcastOp(number((127 + 112) << 23), single))
    scaled = code.emit(llvm.FMulOp(code.emit(llvm.BitcastOp(placed, single)), scale))
    special = code.emit(llvm.OrOp(placed, number(0xFF << 23)))
    finite = code.compare("ult", magnitude, number(0x7C00))
    unsigned = code.emit(SelectOp(finite, code.emit(llvm.BitcastOp(scaled, bits_type)), special))
    sign = code.emit(llvm.ShlOp(code.emit(llvm.SubOp(bits, magnitude)), number(16)))
    return code.emit(llvm.BitcastOp(code.emit(llvm.OrOp(unsigned, sign)), single))


def _to_half(code: FunctionCode, value: SSAValue) -> SSAValue:
    """Convert f32 to the bits of an f16."""
    count = lanes(value)
    bits_type, narrow = with_lanes(IntegerType(32), count), with_lanes(IntegerType(16), count)
    if _converts_half(code):
        return code.emit(llvm.BitcastOp(code.emit(llvm.FPTruncOp(value, with_lanes(Float16Type(), count))), narrow))

    def number(constant: int) -> SSAValue:
        return splat_constant(code, constant, bits_type)

    bits = code.emit(llvm.BitcastOp(value, bits_type))
    magnitude = code.emit(llvm.AndOp(bits, number(0x7FFFFFFF)))
    # Normal results: add half of the last place, minus one if it is even; the exponent is too large by 112.
    tie = code.emit(llvm.AndOp(code.emit(llvm.LShrOp(magnitude, number(13))), number(1)))
    half = code.emit(llvm.AddOp(tie, number(0xFFF - (112 << 23))))
    normal = code.emit(llvm.LShrOp(code.emit(llvm.AddOp(magnitude, half)), number(13)))
    # Denormal results: in an f32 near 0.5, the last place is 2**-24, the least f16.
    place = code.emit(llvm.BitcastOp(number(126 << 23), value.type))
    shifted = code.emit(llvm.FAddOp(code.emit(llvm.BitcastOp(magnitude, value.type)), place))
    denormal = code.emit(llvm.SubOp(code.emit(llvm.BitcastOp(shifted, bits_type)), number(126 << 23)))
    rounded = code.emit(SelectOp(code.compare("ult", magnitude, number(113 << 23)), denormal, normal))
    bounded = code.emit(SelectOp(code.compare("ult", magnitude, number(143 << 23)), rounded, number(0x7C00)))
    nan = code.emit(SelectOp(code.emit(FCmpOp("uno", value, value)), number(0x7E00), bounded))
    sign = code.emit(llvm.LShrOp(code.emit(llvm.SubOp(bits, magnitude)), number(16)))
    return code.emit(llvm.TruncOp(code.emit(llvm.OrOp(nan, sign)), narrow))
