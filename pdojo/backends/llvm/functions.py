"""Functions of statements as LLVM operations, for scalars and for vectors of lanes alike.

Every operation rounds to its element type. f16 and bf16 are computed in f32 and rounded back, which is exact for
`+ - * / sqrt` because f32 has more than twice their precision; fused products use f64 for the same reason. Cases that
the dialect leaves undefined (division by zero, shifts beyond the width, conversions out of range) give the reference
interpreter's results, so that nothing traps, even in a masked lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import FunctionCode, function_op, suffix, value_type
from pdojo.backends.llvm.float_types import convert_float, fused_to_odd
from pdojo.backends.llvm.ops import (
    ExtractElementOp,
    FCmpOp,
    FPToSIOp,
    SelectOp,
    UIToFPOp,
    element_type,
    lanes,
    with_lanes,
)
from pdojo.backends.llvm.vectors import splat_constant
from pdojo.backends.llvm.x86 import masked_x86
from pdojo.dialect.functions import DTYPES, is_float
from pdojo.dialect.view.nest import Constant
from pdojo.math.functions import FUNCTIONS, FUSED

_DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi")
_SHIFTS = ("shli", "shrsi", "shrui")


def apply(
    code: FunctionCode, function: str, operands: Sequence[SSAValue], dtypes: Sequence[str], result: str
) -> SSAValue:
    """The value of `function` in the element type `result`; operands are all scalars or all vectors of one length."""
    name = function.partition(".")[2]
    if name in _CASTS:
        return _CASTS[name](code, operands[0], dtypes[0], result)
    if name == "select":
        return code.emit(SelectOp(operands[0], operands[1], operands[2]))
    if name.startswith("cmpi."):
        return code.compare(name[5:], operands[0], operands[1])
    if name.startswith("cmpf."):
        widened = [_widen(code, o, d) for o, d in zip(operands, dtypes, strict=True)]
        return code.emit(FCmpOp(name[5:], widened[0], widened[1]))
    if not is_float(result):
        return _integer(code, function, operands)
    if result not in ("f16", "bf16"):
        return _float(code, function, operands)
    if function not in FUSED:
        widened = [convert_float(code, o, result, "f32") for o in operands]
        return convert_float(code, _float(code, function, widened), "f32", result)
    widened = [convert_float(code, o, result, "f64") for o in operands]
    return convert_float(code, fused_to_odd(code, *_signed(code, function, widened)), "f32", result)


def fused(code: FunctionCode, x: SSAValue, y: SSAValue, z: SSAValue, dtype: str) -> SSAValue:
    """`x * y + z`, rounded once."""
    return apply(code, "math.fma", (x, y, z), (dtype,) * 3, dtype)


def _signed(code: FunctionCode, function: str, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """The operands of a fused function as those of `math.fma`."""
    return [code.emit(llvm.FNegOp(o)) if k == FUSED[function] else o for k, o in enumerate(operands)]


def from_integer(code: FunctionCode, value: SSAValue, dtype: str, *, signed: bool = True) -> SSAValue:
    """An integer as a float of `dtype`.

    The conversion to bf16 goes through f64, which holds every i32; to f16, through f32, which holds every integer that
    does not overflow f16.
    """
    between = {"bf16": "f64", "f16": "f32"}.get(dtype, dtype)
    operation = llvm.SIToFPOp if signed else UIToFPOp
    number = code.emit(operation(value, with_lanes(value_type(between), lanes(value))))
    return convert_float(code, number, between, dtype)


def _widen(code: FunctionCode, value: SSAValue, dtype: str) -> SSAValue:
    return convert_float(code, value, dtype, "f32") if dtype in ("f16", "bf16") else value


def _float(code: FunctionCode, function: str, operands: Sequence[SSAValue]) -> SSAValue:
    if function in _RANGES and (extremum := _extremum(code, function, operands)) is not None:
        return extremum
    if function in FUSED:
        return code.emit(function_op("llvm.fma", _signed(code, function, operands)))
    name = FUNCTIONS[function].llvm
    if name is not None:
        return code.emit(function_op(name, operands))
    from pdojo.backends.llvm.math import emit_math

    return emit_math(function, operands, code.builder(), code.features)


_RANGES = {"arith.maximumf": 5, "arith.minimumf": 4}
"""The immediates with which x86's `vrange` computes maximum and minimum, ordering zeros by sign."""


def _extremum(code: FunctionCode, function: str, operands: Sequence[SSAValue]) -> SSAValue | None:
    """A maximum or minimum in three instructions if the processor has `vrange`, else None. `vrange` ignores a NaN
    operand; in that case the operands' sum, a NaN, replaces the result.
    """
    number = masked_x86(code.emit, code.features, "range", operands, (_RANGES[function],), element_type(operands[0]))
    if number is None:
        return None
    unordered = code.emit(FCmpOp("uno", operands[0], operands[1]))
    return code.emit(SelectOp(unordered, code.emit(llvm.FAddOp(operands[0], operands[1])), number))


def _integer(code: FunctionCode, function: str, operands: Sequence[SSAValue]) -> SSAValue:
    spec = FUNCTIONS[function]
    if spec.llvm is not None:
        return code.emit(function_op(spec.llvm, operands))
    name = spec.mnemonic
    if name in _DIVISIONS:
        return _division(code, name, operands[0], operands[1])
    if name in _SHIFTS:
        return _shift(code, name, operands[0], operands[1])
    assert name == "absi", name
    wraps = code.integer(0, 1)
    return code.emit(
        llvm.CallIntrinsicOp(f"llvm.abs.{suffix(operands[0].type)}", [operands[0], wraps], [operands[0].type])
    )


def _division(code: FunctionCode, name: str, dividend: SSAValue, divisor: SSAValue) -> SSAValue:
    """Integer division without traps: by 0 it gives 0 with the dividend as remainder; the least number by -1 wraps."""
    kind = dividend.type
    zero, one = splat_constant(code, 0, kind), splat_constant(code, 1, kind)
    by_zero = code.compare("eq", divisor, zero)
    signed = name in ("divsi", "remsi", "floordivsi")
    unsafe = by_zero
    negates = by_zero
    if signed:
        negates = code.compare("eq", divisor, splat_constant(code, -1, kind))
        unsafe = code.emit(llvm.OrOp(by_zero, negates))
    safe = code.emit(SelectOp(unsafe, one, divisor))
    if name in ("remsi", "remui"):
        remainder = code.emit((llvm.SRemOp if signed else llvm.URemOp)(dividend, safe))
        # The remainder by 1 is 0, like the remainder by -1.
        return code.emit(SelectOp(by_zero, dividend, remainder))
    quotient = code.emit((llvm.SDivOp if signed else llvm.UDivOp)(dividend, safe))
    if name == "floordivsi":
        quotient = _floor(code, quotient, dividend, safe)
    if signed:
        quotient = code.emit(SelectOp(negates, code.emit(llvm.SubOp(zero, dividend)), quotient))
    return code.emit(SelectOp(by_zero, zero, quotient))


def _floor(code: FunctionCode, quotient: SSAValue, dividend: SSAValue, divisor: SSAValue) -> SSAValue:
    """The quotient rounded down, from one rounded to zero: minus 1 if remainder and divisor differ in sign."""
    zero = splat_constant(code, 0, dividend.type)
    remainder = code.emit(llvm.SubOp(dividend, code.emit(llvm.MulOp(quotient, divisor))))
    inexact = code.compare("ne", remainder, zero)
    opposite = code.compare("slt", code.emit(llvm.XOrOp(remainder, divisor)), zero)
    lower = code.emit(llvm.AndOp(inexact, opposite))
    less = code.emit(llvm.SubOp(quotient, splat_constant(code, 1, dividend.type)))
    return code.emit(SelectOp(lower, less, quotient))


def _shift(code: FunctionCode, name: str, value: SSAValue, amount: SSAValue) -> SSAValue:
    """A shift; an amount of the width or more shifts everything out."""
    kind = value.type
    element = element_type(value)
    assert isinstance(element, IntegerType)
    width = element.width.data
    if width == 1:
        return _shift_bit(code, name, value, amount)
    fits = code.compare("ult", amount, splat_constant(code, width, kind))
    if name == "shrsi":
        return code.emit(llvm.AShrOp(value, code.emit(SelectOp(fits, amount, splat_constant(code, width - 1, kind)))))
    zero = splat_constant(code, 0, kind)
    bounded = code.emit(SelectOp(fits, amount, zero))
    shifted = code.emit((llvm.ShlOp if name == "shli" else llvm.LShrOp)(value, bounded))
    return code.emit(SelectOp(fits, shifted, zero))


def _shift_bit(code: FunctionCode, name: str, value: SSAValue, amount: SSAValue) -> SSAValue:
    """A shift of one bit, by 0 or by at least 1."""
    if name == "shrsi":
        return value
    return code.emit(SelectOp(amount, splat_constant(code, 0, value.type), value))


# Casts


Cast: TypeAlias = Callable[[FunctionCode, SSAValue, str, str], SSAValue]
"""A function that converts a value between two element types: the names of source and target are arguments."""


def _float_from(*, signed: bool) -> Cast:
    return lambda code, value, _, target: from_integer(code, value, target, signed=signed)


def _float_to(*, signed: bool) -> Cast:
    def cast(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
        value, wide = _widen(code, value, source), "f32" if source in ("f16", "bf16") else source
        if target == "i1":
            return _to_bit(code, value, wide, signed=signed)
        kind = with_lanes(value_type(target), lanes(value))
        if lanes(value) is not None and DTYPES[target].bitwidth <= (32 if signed else 16):
            return _vector_to_integers(code, value, wide, target, signed=signed)
        name = f"llvm.fpto{'si' if signed else 'ui'}.sat.{suffix(kind)}.{suffix(value.type)}"
        return code.emit(llvm.CallIntrinsicOp(name, [value], [kind]))

    return cast


def _vector_to_integers(code: FunctionCode, value: SSAValue, source: str, target: str, *, signed: bool) -> SSAValue:
    """Convert floats of type `source` to the nearest integers towards zero that `target` has; 0 for NaN.

    LLVM's own saturating conversion of a vector goes lane by lane.
    """
    width, count = DTYPES[target].bitwidth, lanes(value)
    assert count is not None
    least, greatest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    # The largest float that is not beyond the integers.
    last = greatest if source == "f64" or width < 32 else greatest + 1 - (1 << 7)
    found = value
    for comparison, bound in (("ogt", least), ("olt", last)):
        limit = code.splat_constant(Constant(float(bound), source), count)
        found = code.emit(SelectOp(code.emit(FCmpOp(comparison, found, limit)), found, limit))
    wide = with_lanes(IntegerType(32), count)
    numbers = code.emit(FPToSIOp(found, wide))
    if last != greatest:
        limit = code.splat_constant(Constant(float(last), source), count)
        beyond = code.emit(FCmpOp("ogt", value, limit))
        numbers = code.emit(SelectOp(beyond, splat_constant(code, greatest, wide), numbers))
    is_number = code.emit(FCmpOp("ord", value, value))
    numbers = code.emit(SelectOp(is_number, numbers, splat_constant(code, 0, wide)))
    return numbers if width == 32 else code.emit(llvm.TruncOp(numbers, with_lanes(IntegerType(width), count)))


def _to_bit(code: FunctionCode, value: SSAValue, dtype: str, *, signed: bool) -> SSAValue:
    """Convert a float of `dtype` to one saturated bit (signed: -1 or 0). LLVM's own conversion is avoided: LLVM 22
    fails on such vectors for RISC-V.
    """
    limit = Constant(-1.0 if signed else 1.0, dtype)
    count = lanes(value)
    splat = code.constant(limit) if count is None else code.splat_constant(limit, count)
    return code.emit(FCmpOp("ole" if signed else "oge", value, splat))


def _resize(*, signed: bool) -> Cast:
    extension = llvm.SExtOp if signed else llvm.ZExtOp

    def cast(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
        kind = with_lanes(value_type(target), lanes(value))
        narrows = DTYPES[source].bitwidth > DTYPES[target].bitwidth
        return code.emit((llvm.TruncOp if narrows else extension)(value, kind))

    return cast


def _bitcast(code: FunctionCode, value: SSAValue, source: str, target: str) -> SSAValue:
    if value_type(source) == value_type(target):
        return value
    return code.emit(llvm.BitcastOp(value, with_lanes(value_type(target), lanes(value))))


_CASTS: dict[str, Cast] = {
    "extf": convert_float,
    "truncf": convert_float,
    "sitofp": _float_from(signed=True),
    "uitofp": _float_from(signed=False),
    "fptosi": _float_to(signed=True),
    "fptoui": _float_to(signed=False),
    "extsi": _resize(signed=True),
    "extui": _resize(signed=False),
    "trunci": _resize(signed=False),
    "bitcast": _bitcast,
}


def fused_chain(
    code: FunctionCode, x: SSAValue, y: SSAValue, z: SSAValue, mask: SSAValue | None, dtype: str
) -> SSAValue:
    """`z` plus the products of all unmasked lanes, added one by one, each step rounded once."""
    count = lanes(x)
    assert count is not None
    for lane in range(count):
        place = code.integer(lane, 32)
        step = fused(code, code.emit(ExtractElementOp(x, place)), code.emit(ExtractElementOp(y, place)), z, dtype)
        if mask is not None:
            step = code.emit(SelectOp(code.emit(ExtractElementOp(mask, place)), step, z))
        z = step
    return z
