"""Typed values whose operators append operations to code under construction, for writing recipes.

A recipe is a function of `Real` values. The operations have the names of functions of statements (`arith.addf`) and
round once by IEEE 754, in every lane alike, so a recipe gives the same bits in all backends, as scalar and as vector
code. Comparisons compare bit patterns: they are cheap for vectors, and total, because a NaN is a large number.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, TypeVar

Handle = TypeVar("Handle")


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format, and the integers of its width."""

    name: str
    integer: str
    mantissa: int
    """Stored bits of the significand, without the hidden bit."""
    bias: int
    packing: str
    """The format in the language of `struct`."""

    @property
    def width(self) -> int:
        """Bits of a number in the format."""
        return int(self.name[1:])

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

    def rounded(self, number: float) -> float:
        """The nearest number of the format."""
        return float(struct.unpack(self.packing, struct.pack(self.packing, number))[0])

    def bits_of(self, number: float) -> int:
        """The bits, as an integer, of a non-negative number."""
        return int.from_bytes(struct.pack(f"<{self.packing}", number), "little")


F32 = Format("f32", "i32", 23, 127, "f")
F64 = Format("f64", "i64", 52, 1023, "d")
FORMATS: dict[str, Format] = {f.name: f for f in (F32, F64)}
"""The formats that recipes compute in, keyed by dtype."""


class Values(ABC, Generic[Handle]):
    """Code under construction, in which a backend represents each value by a handle."""

    def __init__(self) -> None:
        self._constants: dict[tuple[str, str], Handle] = {}

    def constant(self, number: float, dtype: str) -> Handle:
        """A number of the format or an integer within the signed range of `dtype`; each constant is made once."""
        # Keyed by text: 0.0 differs from -0.0, and NaN equals itself.
        key = dtype, number.hex() if isinstance(number, float) else str(number)
        if key not in self._constants:
            self._constants[key] = self.new_constant(number, dtype)
        return self._constants[key]

    @abstractmethod
    def new_constant(self, number: float, dtype: str) -> Handle:
        """Append a constant."""

    @abstractmethod
    def apply(self, function: str, operands: Sequence[Handle], dtypes: Sequence[str], result: str) -> Handle:
        """Append a function of statements that is one operation. The second operand of an extremum is a number."""

    @abstractmethod
    def shift(self, function: str, value: Handle, count: int, dtype: str) -> Handle:
        """Append a shift (`arith.shli` or `arith.shrsi`) by a number of bits less than the width."""

    def scales(self, dtype: str) -> bool:
        """Whether there is an instruction for `scaled`."""
        return False

    def scaled(self, value: Handle, exponent: Handle, dtype: str) -> Handle:
        """Append `value * 2**exponent`, rounded once, for an integral exponent; requires `scales`."""
        raise NotImplementedError

    def has_signs(self, dtype: str) -> bool:
        """Whether `math.absf` and `math.copysign` are cheaper than operations on bits."""
        return False

    def places_exponents(self, dtype: str) -> bool:
        """Whether `with_exponent` needs no integers."""
        return False

    def with_exponent(self, value: Handle, offset: float, dtype: str) -> Handle:
        """Append the power of two with the biased exponent `value + offset`; requires `places_exponents`.

        The exponent is an integer, and the numbers `value` and `offset` are such that the format has their sum.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Real:
    """A floating-point value. The other operand of an operator may be a Python float, which is a constant."""

    code: Values[Any]
    format: Format
    value: Any

    def beside(self, value: Any) -> Real:
        """Wrap another value of the same format."""
        return Real(self.code, self.format, value)

    def like(self, number: Real | float) -> Real:
        """`number` as a value of this format."""
        if isinstance(number, Real):
            return number
        return self.beside(self.code.constant(self.format.rounded(number), self.format.name))

    def _apply(self, function: str, *operands: Real | float) -> Real:
        handles = [self.like(o).value for o in operands]
        name = self.format.name
        return self.beside(self.code.apply(function, handles, (name,) * len(handles), name))

    def __add__(self, other: Real | float) -> Real:
        return self._apply("arith.addf", self, other)

    def __sub__(self, other: Real | float) -> Real:
        return self._apply("arith.subf", self, other)

    def __rsub__(self, other: float) -> Real:
        return self._apply("arith.subf", other, self)

    def __mul__(self, other: Real | float) -> Real:
        return self._apply("arith.mulf", self, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._apply("arith.divf", self, other)

    def __rtruediv__(self, other: float) -> Real:
        return self._apply("arith.divf", other, self)

    def __neg__(self) -> Real:
        return self._apply("arith.negf", self)

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """`self * factor + addend`, rounded once."""
        return self._apply("math.fma", self, factor, addend)

    def sqrt(self) -> Real:
        """The square root, correctly rounded."""
        return self._apply("math.sqrt", self)

    @property
    def scales(self) -> bool:
        """Whether there is an instruction for `scaled`."""
        return self.code.scales(self.format.name)

    def scaled(self, exponent: Real) -> Real:
        """`self * 2**exponent`, rounded once, by one instruction; requires `scales`."""
        return self.beside(self.code.scaled(self.value, exponent.value, self.format.name))

    @property
    def places_exponents(self) -> bool:
        """Whether `with_exponent` needs no integers."""
        return self.code.places_exponents(self.format.name)

    def with_exponent(self, offset: float) -> Real:
        """The power of two with the biased exponent `self + offset`, without integers; requires `places_exponents`."""
        return self.beside(self.code.with_exponent(self.value, offset, self.format.name))

    def rint(self) -> Real:
        """The nearest integer, ties to even."""
        return self._apply("math.roundeven", self)

    def clamp(self, low: float = -inf, high: float = inf) -> Real:
        """The nearest number in `low..high`; a NaN stays NaN."""
        raised = self if low == -inf else self._apply("arith.maximumf", self, low)
        return raised if high == inf else raised._apply("arith.minimumf", raised, high)

    def _cast(self, function: str, result: str) -> Any:
        return self.code.apply(function, [self.value], [self.format.name], result)

    def bits(self) -> Int:
        """The bit pattern."""
        return Int(self.code, self.format, self._cast("arith.bitcast", self.format.integer))

    def abs(self) -> Real:
        """The value without its sign."""
        if self.code.has_signs(self.format.name):
            return self._apply("math.absf", self)
        return (self.bits() & self.format.magnitude).real()

    def with_sign_of(self, other: Real) -> Real:
        """This value, which must not be negative, with `other`'s sign."""
        if self.code.has_signs(self.format.name):
            return self._apply("math.copysign", self, other)
        return (self.bits() | (other.bits() & ~self.format.magnitude)).real()

    def widen(self) -> Real:
        """The same number in f64."""
        return Real(self.code, F64, self._cast("arith.extf", "f64"))

    def narrow(self) -> Real:
        """The nearest number in f32."""
        return Real(self.code, F32, self._cast("arith.truncf", "f32"))


@dataclass(frozen=True, slots=True)
class Int:
    """A signed integer with the width of `format`; arithmetic wraps around."""

    code: Values[Any]
    format: Format
    value: Any

    def like(self, number: Int | int) -> Int:
        """`number`, taken modulo 2**width, as a value of this width."""
        if isinstance(number, Int):
            return number
        half = 1 << (self.format.width - 1)
        wrapped = (number + half) % (2 * half) - half
        return Int(self.code, self.format, self.code.constant(wrapped, self.format.integer))

    def _apply(self, function: str, left: Int | int, right: Int | int, result: str = "") -> Any:
        dtype = self.format.integer
        handles = [self.like(left).value, self.like(right).value]
        return self.code.apply(function, handles, (dtype, dtype), result or dtype)

    def _binary(self, function: str, left: Int | int, right: Int | int) -> Int:
        return Int(self.code, self.format, self._apply(function, left, right))

    def __add__(self, other: Int | int) -> Int:
        return self._binary("arith.addi", self, other)

    def __sub__(self, other: Int | int) -> Int:
        return self._binary("arith.subi", self, other)

    def __rsub__(self, other: int) -> Int:
        return self._binary("arith.subi", other, self)

    def __and__(self, other: Int | int) -> Int:
        return self._binary("arith.andi", self, other)

    def __or__(self, other: Int | int) -> Int:
        return self._binary("arith.ori", self, other)

    def __xor__(self, other: Int | int) -> Int:
        return self._binary("arith.xori", self, other)

    def __lshift__(self, count: int) -> Int:
        return self._shift("arith.shli", count)

    def __rshift__(self, count: int) -> Int:
        """Arithmetic shift, which rounds towards minus infinity."""
        return self._shift("arith.shrsi", count)

    def _shift(self, function: str, count: int) -> Int:
        return Int(self.code, self.format, self.code.shift(function, self.value, count, self.format.integer))

    def _compare(self, predicate: str, other: Int | int) -> Mask:
        return Mask(self.code, self._apply(f"arith.cmpi.{predicate}", self, other, "i1"))

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

    def _cast(self, function: str) -> Real:
        dtype = self.format.name
        return Real(self.code, self.format, self.code.apply(function, [self.value], [self.format.integer], dtype))

    def real(self) -> Real:
        """The number with these bits."""
        return self._cast("arith.bitcast")

    def to_real(self) -> Real:
        """The nearest floating-point number to the integer."""
        return self._cast("arith.sitofp")


@dataclass(frozen=True, slots=True)
class Mask:
    """A truth value per lane."""

    code: Values[Any]
    value: Any

    def __and__(self, other: Mask) -> Mask:
        return self._binary("arith.andi", other)

    def __or__(self, other: Mask) -> Mask:
        return self._binary("arith.ori", other)

    def _binary(self, function: str, other: Mask) -> Mask:
        return Mask(self.code, self.code.apply(function, [self.value, other.value], ["i1", "i1"], "i1"))

    def choose(self, then: Real, otherwise: Real | float) -> Real:
        """`then` in lanes where this mask is true, else `otherwise`."""
        return then.beside(self._select(then.value, then.like(otherwise).value, then.format.name))

    def choose_int(self, then: Int, otherwise: Int | int) -> Int:
        """`then` in lanes where this mask is true, else `otherwise`."""
        handle = self._select(then.value, then.like(otherwise).value, then.format.integer)
        return Int(then.code, then.format, handle)

    def _select(self, then: Any, otherwise: Any, dtype: str) -> Any:
        return self.code.apply("arith.select", [self.value, then, otherwise], ["i1", dtype, dtype], dtype)


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """`sum(c * x**k)` by Horner's rule, each step rounded once; the first coefficient is the constant term."""
    total = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.times_plus(x, coefficient)
    return total
