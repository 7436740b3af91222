"""Conversions between floating-point types, each rounded once, to nearest even.

LLVM has no code of its own for some of them and would call a library that is not there, and the instructions of some
processors take denormal bfloat16 numbers to zero: those conversions are made of integer operations here. For the same
reasons LLVM never sees a bfloat16, only its 16 bits.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, value_type
from pdojo.backends.llvm.ops import FCmpOp, SelectOp, lanes, with_lanes
from pdojo.backends.llvm.vectors import splat_constant
from pdojo.dialect.functions import byte_width

_HALF = 0x7FFF
"""One less than half of the last place of a bfloat16, in the last places of an f32."""
_QUIET = 0x40
"""The bit that makes a bfloat16 with full exponent a quiet NaN."""


def convert_float(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
    """A float (or lanes of floats) of element type `source` as one of `target`."""
    if source == target:
        return value
    if source == "bf16":
        return convert_float(code, _from_bfloat(code, value), "f32", target)
    if byte_width(source) < byte_width(target):
        return code.emit(llvm.FPExtOp(value, with_lanes(value_type(target), lanes(value))))
    if source == "f64" and target in ("f16", "bf16"):
        # f32 has more than twice the precision of both, so that a first rounding to odd does not show.
        return convert_float(code, _round_to_odd(code, value), "f32", target)
    if target == "bf16":
        return _to_bfloat(code, value)
    return code.emit(llvm.FPTruncOp(value, with_lanes(value_type(target), lanes(value))))


def _round_to_odd(code: FunctionCode, value: SSAValue) -> SSAValue:
    """An f64 as f32: itself where that is exact, else the neighbour with an odd significand."""
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
    """The bits of a bfloat16 as f32, whose upper half they are."""
    count = lanes(value)
    bits_type = with_lanes(IntegerType(32), count)
    wide = code.emit(llvm.ZExtOp(value, bits_type))
    shifted = code.emit(llvm.ShlOp(wide, splat_constant(code, 16, bits_type)))
    return code.emit(llvm.BitcastOp(shifted, with_lanes(Float32Type(), count)))


def _to_bfloat(code: FunctionCode, value: SSAValue) -> SSAValue:
    """An f32 as bits of a bfloat16: its upper half, after adding half of the last place, less one if that is even."""
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
