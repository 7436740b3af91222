"""Mathematical functions: the LLVM backend's code for scalars, translated operation by operation to instructions.

Therefore all backends give the same bits. An f64 moves to a pair of integer registers through a slot in the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from pdojo.backends.llvm.math import MATH_FUNCTIONS, emit_math
from pdojo.backends.llvm.ops import SelectOp
from pdojo.backends.snitch import wide
from pdojo.backends.snitch.casts import Casts
from pdojo.backends.snitch.code import ZERO, Register
from pdojo.backends.snitch.integers import Integers
from pdojo.backends.snitch.numbers import SUFFIX
from pdojo.backends.snitch.values import RegisterPair, Value, integer
from pdojo.dialect.functions import DTYPES, dtype_name
from pdojo.errors import LoweringError

if TYPE_CHECKING:
    from pdojo.backends.snitch.functions import Functions

ROUNDINGS = {"math.floor": "flt", "math.ceil": "fgt", "math.trunc": "", "math.roundeven": ""}
"""Roundings to integers."""


def emit_function(functions: Functions, function: str, operands: list[Register], dtype: str) -> Register:
    """A function of f32 or f64 that takes several instructions.

    Raises LoweringError for functions without such code.
    """
    if function in ROUNDINGS:
        return _rounded(functions, function, operands[0], dtype)
    if function not in MATH_FUNCTIONS:
        raise LoweringError(f"'{function}' has no code for Snitch cores")
    block = Block(arg_types=[DTYPES[dtype]] * len(operands))
    result = emit_math(function, block.args, Builder(InsertPoint.at_end(block)))
    translation = _Translation(functions, function)
    translation.values.update(zip(block.args, operands, strict=True))
    for op in block.ops:
        translation.values[op.results[0]] = translation.value(op)
    return cast(Register, translation.values[result])


def _rounded(functions: Functions, function: str, x: Register, dtype: str) -> Register:
    """The operand rounded to an integer; NaN, and numbers too large to have a fraction, are returned as they are."""
    code, numbers, letter = functions.code, functions.numbers, SUFFIX[dtype]
    limit = numbers.real(2.0**52 if dtype == "f64" else 2.0**23, dtype)
    result, done = Register("f"), code.label("whole")
    code.move(x, result)
    magnitude = code.f(f"fsgnjx.{letter}", x, x)
    small = code.x(f"flt.{letter}", magnitude, limit)
    near = code.f(f"fsub.{letter}", code.f(f"fadd.{letter}", magnitude, limit), limit)
    value = near if function == "math.trunc" else code.f(f"fsgnj.{letter}", near, x)
    if function != "math.roundeven":
        # The correction is 0 or 1; it is subtracted if rounding went up, or for ceil added if rounding went down.
        above = (magnitude, value) if function == "math.trunc" else (x, value)
        pair = (value, x) if function == "math.ceil" else above
        off = code.f(f"fcvt.{letter}.w", code.x(f"flt.{letter}", *pair))
        value = code.f(f"{'fadd' if function == 'math.ceil' else 'fsub'}.{letter}", value, off)
    value = code.f(f"fsgnj.{letter}", value, x)
    code.emit("beq", (), (small, ZERO), done)
    code.move(value, result)
    code.emit("label", immediate=done)
    return result


class _Translation:
    """Translates the operations of one function."""

    def __init__(self, functions: Functions, function: str) -> None:
        self.functions = functions
        self.function = function
        self.values: dict[SSAValue, Value] = {}

    def value(self, op: Operation) -> Value:
        """The value of an operation."""
        operands = [self.values[o] for o in op.operands]
        match op:
            case llvm.ConstantOp():
                return self._constant(op)
            case llvm.CallIntrinsicOp():
                name = "math.roundeven" if ".rint." in op.intrin.data else _INTRINSICS[op.intrin.data.split(".")[1]]
                return self._real(name, operands, op)
            case llvm.BitcastOp():
                source, target = _dtype(op.operands[0].type), _dtype(op.results[0].type)
                return self._casts.bits(operands[0], source, target)
            case llvm.ICmpOp():
                predicate = str(llvm.ICmpPredicateFlag.from_int(op.predicate.value.data))
                return Integers(self.functions.code).compare(predicate, operands[0], operands[1], _dtype(op.lhs.type))
            case SelectOp():
                condition = cast(Register, operands[0])
                return self.functions.choose(condition, operands[1], operands[2], _dtype(op.res.type))
            case llvm.SIToFPOp():
                return self._casts.from_integer(operands[0], _dtype(op.results[0].type), signed=True)
            case llvm.FPExtOp() | llvm.FPTruncOp():
                source, target = _dtype(op.operands[0].type), _dtype(op.results[0].type)
                return self.functions.apply("arith.extf", operands, (source,), target)
            case llvm.ShlOp() | llvm.AShrOp():
                return self._shift(op, operands[0])
            case _ if type(op) in _REALS:
                return self._real(_REALS[type(op)], operands, op)
            case _:
                return Integers(self.functions.code).apply(_INTEGERS[type(op)], operands, _dtype(op.results[0].type))

    @property
    def _casts(self) -> Casts:
        return Casts(self.functions.code, self.functions.numbers)

    def _constant(self, op: llvm.ConstantOp) -> Value:
        dtype = _dtype(op.result.type)
        if isinstance(op.value, FloatAttr):
            return self.functions.numbers.real(op.value.value.data, dtype)
        assert isinstance(op.value, IntegerAttr)
        return integer(self.functions.code, op.value.value.data, dtype)

    def _real(self, function: str, operands: list[Value], op: Operation) -> Value:
        dtype = _dtype(op.results[0].type)
        if function in ("arith.divf", "math.sqrt"):
            self.functions.need_divider(self.function)
        return self.functions.apply(function, operands, (dtype,) * len(operands), dtype)

    def _shift(self, op: Operation, value: Value) -> Value:
        amount = op.operands[1].owner
        assert isinstance(amount, llvm.ConstantOp)
        assert isinstance(amount.value, IntegerAttr)
        count, code = amount.value.value.data, self.functions.code
        left = isinstance(op, llvm.ShlOp)
        if isinstance(value, RegisterPair):
            return (wide.shift_left if left else wide.shift_right)(code, value, count)
        return code.x("slli" if left else "srai", value, immediate=count)


def _dtype(kind: Attribute) -> str:
    return dtype_name(kind)


_INTRINSICS = {
    "maximum": "arith.maximumf",
    "minimum": "arith.minimumf",
    "sqrt": "math.sqrt",
}
_REALS: dict[type[Operation], str] = {
    llvm.FAddOp: "arith.addf",
    llvm.FSubOp: "arith.subf",
    llvm.FMulOp: "arith.mulf",
    llvm.FDivOp: "arith.divf",
    llvm.FNegOp: "arith.negf",
    llvm.FMAOp: "math.fma",
}
_INTEGERS: dict[type[Operation], str] = {
    llvm.AddOp: "addi",
    llvm.SubOp: "subi",
    llvm.AndOp: "andi",
    llvm.OrOp: "ori",
    llvm.XOrOp: "xori",
}
