"""Typed values whose operators append operations of the llvm dialect, for writing the math functions.

Every operation rounds once by IEEE 754, without fast-math flags, in every lane alike, so a function gives the same bits
in scalar and vector code. Comparisons compare bit patterns: they are cheap for vectors, and total, because a NaN is a
large number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from pdojo.backends.llvm.ops import SelectOp, element_type, lanes, with_lanes
from pdojo.backends.llvm.x86 import Features, has_masked_x86, masked_x86


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format, and the integers of its width."""

    name: str
    real: Float32Type | Float64Type
    integer: IntegerType
    mantissa: int
    """Stored bits of the significand, without the hidden bit."""
    bias: int

    @property
    def width(self) -> int:
        """Bits of a number in the format."""
        return self.integer.bitwidth

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa

    @property
    def infinity(self) -> int:
        """The bits of +inf; without its sign, a NaN has greater bits."""
        return (2 * self.bias + 1) << self.mantissa

    @property
    def magnitude(self) -> int:
        """The mask of all bits but the sign."""
        return (1 << (self.width - 1)) - 1

    @property
    def rounder(self) -> float:
        """1.5 * 2**mantissa: adding it rounds a small number to an integer, in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    def bits_of(self, number: float) -> int:
        """The bits, as an integer, of a non-negative number."""
        return int.from_bytes(self.real.pack((number,)), "little")


F32 = Format("f32", Float32Type(), IntegerType(32), 23, 127)
F64 = Format("f64", Float64Type(), IntegerType(64), 52, 1023)
FORMATS: dict[Attribute, Format] = {f.real: f for f in (F32, F64)}
"""The formats for which the functions exist, by element type."""


class Code:
    """Appends operations to a builder; makes each constant once."""

    def __init__(self, builder: Builder, count: int | None, features: Features = frozenset()) -> None:
        """`count` is the number of lanes of every value, None for scalars; `features` are the processor's."""
        self._builder = builder
        self._count = count
        self._features = features
        self._constants: dict[tuple[Attribute, int | str], SSAValue] = {}

    def append(self, op: Operation) -> SSAValue:
        """Insert `op` and return its only result."""
        return self._builder.insert(op).results[0]

    def shaped(self, element: Attribute) -> Attribute:
        """The type of values with this element type: the type itself, or a vector of it."""
        return with_lanes(element, self._count)

    def intrinsic(self, name: str, operands: Sequence[SSAValue], suffix: str) -> SSAValue:
        """Call `llvm.<name>.<lane type>`; the result has the type of the operands."""
        mangled = f"llvm.{name}.{suffix}" if self._count is None else f"llvm.{name}.v{self._count}{suffix}"
        return self.append(llvm.CallIntrinsicOp(mangled, operands, [operands[0].type]))

    def has_masked_x86(self, name: str, fmt: Format) -> bool:
        """Whether the processor has the AVX-512 instruction `name` for vectors of this length."""
        return has_masked_x86(self._features, name, self._count, fmt.real)

    def masked_x86(
        self, name: str, operands: Sequence[SSAValue], fmt: Format, immediate: Sequence[int]
    ) -> SSAValue | None:
        """An unmasked AVX-512 instruction; None if the processor lacks it for vectors of this length."""
        return masked_x86(self.append, self._features, name, operands, immediate, fmt.real)

    def constant_real(self, fmt: Format, number: float) -> SSAValue:
        """`number`, rounded to the format, in every lane."""
        value = FloatAttr(number, fmt.real)
        # Keyed by text: 0.0 differs from -0.0, and NaN equals itself.
        key = (fmt.real, number.hex())
        if self._count is None:
            return self._constant(key, value)
        kind = VectorType(fmt.real, [self._count])
        return self._constant(key, DenseIntOrFPElementsAttr.from_list(kind, [value.value.data] * self._count))

    def constant_int(self, fmt: Format, number: int) -> SSAValue:
        """`number`, taken modulo 2**width, in every lane."""
        half = 1 << (fmt.width - 1)
        wrapped = (number + half) % (2 * half) - half
        key = (fmt.integer, wrapped)
        if self._count is None:
            return self._constant(key, IntegerAttr(wrapped, fmt.integer))
        kind = VectorType(fmt.integer, [self._count])
        return self._constant(key, DenseIntOrFPElementsAttr.from_list(kind, [wrapped] * self._count))

    def _constant(self, key: tuple[Attribute, int | str], value: Attribute) -> SSAValue:
        if key not in self._constants:
            self._constants[key] = self.append(llvm.ConstantOp(value, self.shaped(key[0])))
        return self._constants[key]


@dataclass(frozen=True, slots=True)
class Real:
    """A floating-point value. The other operand of an operator may be a Python float, which is a constant."""

    code: Code
    format: Format
    value: SSAValue

    @staticmethod
    def of(value: SSAValue, builder: Builder, features: Features = frozenset()) -> Real:
        """Wrap an operand; raises KeyError if its element type has no `Format`."""
        return Real(Code(builder, lanes(value), features), FORMATS[element_type(value)], value)

    def beside(self, value: SSAValue) -> Real:
        """Wrap another operand of the same type and builder."""
        return Real(self.code, self.format, value)

    def like(self, number: Real | float) -> Real:
        """`number` as a value of this format."""
        return number if isinstance(number, Real) else self.beside(self.code.constant_real(self.format, number))

    def _binary(self, op: Callable[[SSAValue, SSAValue], Operation], left: Real | float, right: Real | float) -> Real:
        return self.beside(self.code.append(op(self.like(left).value, self.like(right).value)))

    def __add__(self, other: Real | float) -> Real:
        return self._binary(llvm.FAddOp, self, other)

    def __sub__(self, other: Real | float) -> Real:
        return self._binary(llvm.FSubOp, self, other)

    def __rsub__(self, other: float) -> Real:
        return self._binary(llvm.FSubOp, other, self)

    def __mul__(self, other: Real | float) -> Real:
        return self._binary(llvm.FMulOp, self, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._binary(llvm.FDivOp, self, other)

    def __rtruediv__(self, other: float) -> Real:
        return self._binary(llvm.FDivOp, other, self)

    def __neg__(self) -> Real:
        return self.beside(self.code.append(llvm.FNegOp(self.value)))

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """`self * factor + addend`, rounded once."""
        return self.beside(self.code.append(llvm.FMAOp(self.value, self.like(factor).value, self.like(addend).value)))

    def _intrinsic(self, name: str, *others: Real | float) -> Real:
        operands = [self.value, *(self.like(o).value for o in others)]
        return self.beside(self.code.intrinsic(name, operands, self.format.name))

    def sqrt(self) -> Real:
        """The square root, correctly rounded."""
        return self._intrinsic("sqrt")

    @property
    def scales(self) -> bool:
        """Whether the processor has the instruction for `scaled`."""
        return self.code.has_masked_x86("scalef", self.format)

    def scaled(self, exponent: Real) -> Real:
        """`self * 2**exponent`, rounded once, by one instruction; requires `scales`."""
        value = self.code.masked_x86("scalef", (self.value, exponent.value), self.format, ())
        assert value is not None
        return self.beside(value)

    def rint(self) -> Real:
        """The nearest integer, ties to even."""
        return self._intrinsic("rint")

    def clamp(self, low: float = -inf, high: float = inf) -> Real:
        """The nearest number in `low..high`; a NaN stays NaN."""
        raised = self if low == -inf else self._intrinsic("maximum", low)
        return raised if high == inf else raised._intrinsic("minimum", high)

    def bits(self) -> Int:
        """The bit pattern."""
        return Int(
            self.code, self.format, self.code.append(llvm.BitcastOp(self.value, self.code.shaped(self.format.integer)))
        )

    def abs(self) -> Real:
        """The value without its sign."""
        return (self.bits() & self.format.magnitude).real()

    def with_sign_of(self, other: Real) -> Real:
        """This value, which must not be negative, with `other`'s sign."""
        return (self.bits() | (other.bits() & ~self.format.magnitude)).real()

    def widen(self) -> Real:
        """The same number in f64."""
        return Real(self.code, F64, self.code.append(llvm.FPExtOp(self.value, self.code.shaped(F64.real))))

    def narrow(self) -> Real:
        """The nearest number in f32."""
        return Real(self.code, F32, self.code.append(llvm.FPTruncOp(self.value, self.code.shaped(F32.real))))


@dataclass(frozen=True, slots=True)
class Int:
    """A signed integer with the width of `format`; arithmetic wraps around."""

    code: Code
    format: Format
    value: SSAValue

    def like(self, number: Int | int) -> Int:
        """`number` as a value of this width."""
        if isinstance(number, Int):
            return number
        return Int(self.code, self.format, self.code.constant_int(self.format, number))

    def _binary(self, op: Callable[[SSAValue, SSAValue], Operation], left: Int | int, right: Int | int) -> Int:
        return Int(self.code, self.format, self.code.append(op(self.like(left).value, self.like(right).value)))

    def __add__(self, other: Int | int) -> Int:
        return self._binary(llvm.AddOp, self, other)

    def __sub__(self, other: Int | int) -> Int:
        return self._binary(llvm.SubOp, self, other)

    def __rsub__(self, other: int) -> Int:
        return self._binary(llvm.SubOp, other, self)

    def __and__(self, other: Int | int) -> Int:
        return self._binary(llvm.AndOp, self, other)

    def __or__(self, other: Int | int) -> Int:
        return self._binary(llvm.OrOp, self, other)

    def __xor__(self, other: Int | int) -> Int:
        return self._binary(llvm.XOrOp, self, other)

    def __lshift__(self, count: int) -> Int:
        return self._binary(llvm.ShlOp, self, count)

    def __rshift__(self, count: int) -> Int:
        """Arithmetic shift, which rounds towards minus infinity."""
        return self._binary(llvm.AShrOp, self, count)

    def _compare(self, predicate: str, other: Int | int) -> Mask:
        flag = IntegerAttr(llvm.ICmpPredicateFlag(predicate).to_int(), 64)
        return Mask(self.code, self.code.append(llvm.ICmpOp(self.value, self.like(other).value, flag)))

    def __lt__(self, other: Int | int) -> Mask:
        return self._compare("slt", other)

    def __gt__(self, other: Int | int) -> Mask:
        return self._compare("sgt", other)

    def equals(self, other: Int | int) -> Mask:
        """A mask of the lanes with equal values."""
        return self._compare("eq", other)

    def differs(self, other: Int | int) -> Mask:
        """A mask of the lanes with different values."""
        return self._compare("ne", other)

    def real(self) -> Real:
        """The number with these bits."""
        return Real(
            self.code, self.format, self.code.append(llvm.BitcastOp(self.value, self.code.shaped(self.format.real)))
        )

    def to_real(self) -> Real:
        """The nearest floating-point number to the integer."""
        return Real(
            self.code, self.format, self.code.append(llvm.SIToFPOp(self.value, self.code.shaped(self.format.real)))
        )


@dataclass(frozen=True, slots=True)
class Mask:
    """A truth value per lane."""

    code: Code
    value: SSAValue

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.code, self.code.append(llvm.AndOp(self.value, other.value)))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.code, self.code.append(llvm.OrOp(self.value, other.value)))

    def choose(self, then: Real, otherwise: Real | float) -> Real:
        """`then` in lanes where this mask is true, else `otherwise`."""
        return then.beside(self._select(then.value, then.like(otherwise).value))

    def choose_int(self, then: Int, otherwise: Int | int) -> Int:
        """`then` in lanes where this mask is true, else `otherwise`."""
        return Int(then.code, then.format, self._select(then.value, then.like(otherwise).value))

    def _select(self, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        return self.code.append(SelectOp(self.value, then, otherwise))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """`sum(c * x**k)` by Horner's rule, each step rounded once; the first coefficient is the constant term."""
    total = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.times_plus(x, coefficient)
    return total
