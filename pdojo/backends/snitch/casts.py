"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

from pdojo.backends.snitch.code import SP, ZERO, Register, SnitchCode
from pdojo.backends.snitch.integers import Integers
from pdojo.backends.snitch.numbers import SUFFIX, Numbers
from pdojo.backends.snitch.values import RegisterPair, Value, sign_extended
from pdojo.dialect.functions import DTYPES, is_float
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class Casts:
    """Emits conversions."""

    code: SnitchCode
    numbers: Numbers

    def has(self, name: str) -> bool:
        """Whether a function is a conversion."""
        return name in self._METHODS

    def apply(self, name: str, value: Value, source: str, target: str) -> Value:
        """A value of type `source` in the type `target`."""
        return self._METHODS[name](self, value, source, target)

    # Between floats

    def _float(self, value: Value, source: str, target: str) -> Register:
        register = cast(Register, value)
        if target == "bf16":
            if source == "f64":
                raise _missing("f64", "bf16")
            return self.round_to_bf16(self._float(register, source, "f32"))
        wanted, found = SUFFIX[target], SUFFIX[source]
        return register if wanted == found else self.code.f(f"fcvt.{wanted}.{found}", register)

    def round_to_bf16(self, value: Register) -> Register:
        """An f32 rounded to the nearest bf16, ties to even, still as f32; NaN stays NaN."""
        code = self.code
        bits = code.x("fmv.x.w", value)
        odd = code.x("andi", code.x("srli", bits, immediate=16), immediate=1)
        rounded = code.x("add", code.x("add", bits, odd), code.li(0x7FFF))
        cut = code.x("slli", code.x("srli", rounded, immediate=16), immediate=16)
        result, done = Register("x"), code.label("rounded")
        code.move(cut, result)
        ordered = code.x("feq.s", value, value)
        code.emit("bne", (), (ordered, ZERO), done)
        code.x("or", code.li(0x7FC00000), ZERO, to=result)
        code.emit("label", immediate=done)
        return code.f("fmv.w.x", result)

    def fused_to_odd(self, x: Register, y: Register, z: Register) -> Register:
        """`x * y + z` of f64 as f32, exact or with an odd significand; the product must be exact."""
        code, zero = self.code, self.numbers.real(0.0, "f64")
        product = code.f("fmul.d", x, y)
        total = code.f("fadd.d", product, z)
        part = code.f("fsub.d", total, product)
        lost = code.f("fsub.d", product, code.f("fsub.d", total, part))
        rest = code.f("fadd.d", lost, code.f("fsub.d", z, part))
        nearest = code.f("fcvt.s.d", total)
        back = code.f("fcvt.d.s", nearest)
        fits, negative = code.x("feq.d", back, total), code.x("flt.d", rest, zero)
        lacks = code.x("or", negative, code.x("flt.d", zero, rest))
        below = code.x("and", code.x("and", fits, lacks), code.x("xor", negative, code.x("flt.d", total, zero)))
        larger = code.x("flt.d", *(code.f("fsgnjx.d", v, v) for v in (total, back)))
        truncated = code.x("sub", code.x("fmv.x.w", nearest), code.x("or", below, larger))
        inexact = code.x("or", lacks, code.x("xori", fits, immediate=1))
        return code.f("fmv.w.x", code.x("or", truncated, inexact))

    # From and to integers

    def from_integer(self, value: Value, target: str, *, signed: bool) -> Register:
        """Convert an integer of 32 or 64 bits to a float."""
        code = self.code
        if isinstance(value, RegisterPair):
            if target != "f64":
                raise _missing("i64", target)
            # The high part times 2**32 is exact, and the sum is rounded once.
            high = code.f("fcvt.d.w" if signed else "fcvt.d.wu", value.high)
            low = code.f("fcvt.d.wu", value.low)
            return code.f("fmadd.d", high, self.numbers.real(2.0**32, "f64"), low)
        if target == "bf16":
            raise _missing("integers", "bf16")
        return code.f(f"fcvt.{SUFFIX[target]}.{'w' if signed else 'wu'}", value)

    def _from_signed(self, value: Value, source: str, target: str) -> Register:
        if source == "i1":
            value = self.code.x("sub", ZERO, cast(Register, value))
        return self.from_integer(value, target, signed=True)

    def _from_unsigned(self, value: Value, source: str, target: str) -> Register:
        if isinstance(value, Register):
            value = Integers(self.code).unsigned(value, source)
        return self.from_integer(value, target, signed=False)

    def _to_integer(self, value: Value, source: str, target: str, *, signed: bool) -> Register:
        """Convert a float to an integer towards zero; out of range gives the type's nearest value, NaN gives 0."""
        code, register, letter = self.code, cast(Register, value), SUFFIX[source]
        if target == "i64":
            raise _missing(source, "i64")
        if target == "i1":
            limit = self.numbers.real(-1.0 if signed else 1.0, "f32" if source == "bf16" else source)
            return code.x(f"fle.{letter}", *((register, limit) if signed else (limit, register)))
        number = code.x(f"fcvt.{'w' if signed else 'wu'}.{letter}.rtz", register)
        ordered = code.x(f"feq.{letter}", register, register)
        number = code.x("and", number, code.x("sub", ZERO, ordered))
        bits = DTYPES[target].bitwidth
        if bits == 32:
            return number
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        integers = Integers(code)
        if not signed:
            # As i32, numbers from 2**31 on are negative, so compare them as unsigned.
            number = cast(Register, integers.apply("arith.minui", (number, code.li(high)), "i32"))
            return integers.wrapped(number, target)
        number = cast(Register, integers.apply("arith.minsi", (number, code.li(high)), "i32"))
        return cast(Register, integers.apply("arith.maxsi", (number, code.li(low)), "i32"))

    def _to_signed(self, value: Value, source: str, target: str) -> Register:
        return self._to_integer(value, source, target, signed=True)

    def _to_unsigned(self, value: Value, source: str, target: str) -> Register:
        return self._to_integer(value, source, target, signed=False)

    # Between integers

    def _extend_signed(self, value: Value, source: str, target: str) -> Value:
        register = cast(Register, value)
        if source == "i1":
            register = self.code.x("sub", ZERO, register)
        return sign_extended(self.code, register) if target == "i64" else register

    def _extend_unsigned(self, value: Value, source: str, target: str) -> Value:
        register = Integers(self.code).unsigned(cast(Register, value), source)
        return RegisterPair(register, ZERO) if target == "i64" else register

    def _truncate(self, value: Value, source: str, target: str) -> Value:
        register = value.low if isinstance(value, RegisterPair) else value
        return Integers(self.code).wrapped(register, target)

    def bits(self, value: Value, source: str, target: str) -> Value:
        """The same bits as a value of type `target`."""
        code = self.code
        match source, target:
            case "f32", "i32":
                return code.x("fmv.x.w", cast(Register, value))
            case "i32", "f32":
                return code.f("fmv.w.x", cast(Register, value))
            case "f64", "i64":
                slot = code.scratch()
                code.emit("fsd", (), (SP, cast(Register, value)), slot)
                high = type(slot)(slot.area, slot.offset + 4)
                return RegisterPair(code.x("lw", SP, immediate=slot), code.x("lw", SP, immediate=high))
            case "i64", "f64":
                assert isinstance(value, RegisterPair)
                slot = code.scratch()
                code.emit("sw", (), (SP, value.low), slot)
                code.emit("sw", (), (SP, value.high), type(slot)(slot.area, slot.offset + 4))
                return code.f("fld", SP, immediate=slot)
            case "f16", "i16":
                return code.x("fmv.x.h", cast(Register, value))
            case "i16", "f16":
                return code.f("fmv.h.x", cast(Register, value))
            case "bf16", "i16":
                return code.x("srai", code.x("fmv.x.w", cast(Register, value)), immediate=16)
            case "i16", "bf16":
                return code.f("fmv.w.x", code.x("slli", cast(Register, value), immediate=16))
            case _ if not is_float(source) and not is_float(target):
                return value
            case _:
                return self.bits(self.bits(value, source, "i16"), "i16", target)

    _METHODS: ClassVar[dict[str, Callable[[Casts, Value, str, str], Value]]] = {
        "extf": _float,
        "truncf": _float,
        "sitofp": _from_signed,
        "uitofp": _from_unsigned,
        "fptosi": _to_signed,
        "fptoui": _to_unsigned,
        "extsi": _extend_signed,
        "extui": _extend_unsigned,
        "trunci": _truncate,
        "bitcast": bits,
    }


def _missing(source: str, target: str) -> LoweringError:
    return LoweringError(f"there is no conversion from {source} to {target} for Snitch cores; go through another type")
