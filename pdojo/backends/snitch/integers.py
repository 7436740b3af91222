"""Functions of integers. Values narrower than 32 bits are sign-extended, i1 is 0 or 1, i64 takes two registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pdojo.backends.snitch import wide
from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.backends.snitch.values import RegisterPair, Value, fresh, move
from pdojo.dialect.functions import DTYPES
from pdojo.errors import LoweringError
from pdojo.math.functions import FUNCTIONS, Bit

_DIRECT = {"addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor"}
_EXTREMA = {"maxsi": ("sgt", 1), "minsi": ("slt", 1), "maxui": ("ugt", 1), "minui": ("ult", 1)}
_DIVISIONS = {"divsi": "div", "divui": "divu", "remsi": "rem", "remui": "remu"}
_SHIFTS = {"shli": "sll", "shrsi": "sra", "shrui": "srl"}
_BITS = {Bit.AND: "and", Bit.OR: "or", Bit.XOR: "xor"}


@dataclass(frozen=True)
class Integers:
    """Emits functions of integers."""

    code: SnitchCode

    def wrapped(self, value: Register, dtype: str) -> Register:
        """The low bits of a register as a value of a type with at most 32 bits."""
        if dtype == "i32":
            return value
        if dtype == "i1":
            return self.code.x("andi", value, immediate=1)
        unused = 32 - DTYPES[dtype].bitwidth
        return self.code.x("srai", self.code.x("slli", value, immediate=unused), immediate=unused)

    def unsigned(self, value: Register, dtype: str) -> Register:
        """A value of at most 32 bits, zero-extended."""
        if dtype in ("i32", "i1"):
            return value
        if dtype == "i8":
            return self.code.x("andi", value, immediate=0xFF)
        return self.code.x("srli", self.code.x("slli", value, immediate=16), immediate=16)

    def apply(self, function: str, operands: Sequence[Value], dtype: str) -> Value:
        """The value of a function."""
        name = function.partition(".")[2]
        if dtype == "i64":
            return self._wide(name, cast("list[RegisterPair]", list(operands)))
        registers = cast("list[Register]", list(operands))
        if dtype == "i1":
            return self._bit(FUNCTIONS[function].bit, registers)
        if name in _DIRECT:
            return self.wrapped(self.code.x(_DIRECT[name], *registers), dtype)
        if name in _EXTREMA:
            return self._extremum(name, registers[0], registers[1], dtype)
        if name in _DIVISIONS or name == "floordivsi":
            return self._division(name, registers[0], registers[1], dtype)
        if name in _SHIFTS:
            return self._shift(name, registers[0], registers[1], dtype)
        assert name == "absi", name
        sign = self.code.x("srai", registers[0], immediate=31)
        return self.wrapped(self.code.x("sub", self.code.x("xor", registers[0], sign), sign), dtype)

    def _bit(self, bit: Bit | None, operands: list[Register]) -> Register:
        if bit is Bit.FIRST:
            return operands[0]
        a, b = operands
        if bit is Bit.AND_NOT:
            return self.code.x("and", a, self.code.x("xori", b, immediate=1))
        assert bit is not None
        return self.code.x(_BITS[bit], a, b)

    def _extremum(self, name: str, a: Value, b: Value, dtype: str) -> Value:
        code, result, done = self.code, fresh(dtype), self.code.label("extremum")
        keeps = self.compare(_EXTREMA[name][0], a, b, dtype)
        move(code, a, result)
        code.emit("bne", (), (keeps, ZERO), done)
        move(code, b, result)
        code.emit("label", immediate=done)
        return result

    def _division(self, name: str, a: Register, b: Register, dtype: str) -> Register:
        """Integer division; by zero it gives 0, with the dividend as remainder, which is also RISC-V's."""
        code = self.code
        if name in ("divui", "remui"):
            a, b = self.unsigned(a, dtype), self.unsigned(b, dtype)
        if name in ("remsi", "remui"):
            return self.wrapped(code.x(_DIVISIONS[name], a, b), dtype)
        quotient = code.x(_DIVISIONS.get(name, "div"), a, b)
        if name == "floordivsi":
            remainder = code.x("rem", a, b)
            opposite = code.x("slt", code.x("xor", remainder, b), ZERO)
            inexact = code.x("sltu", ZERO, remainder)
            quotient = code.x("sub", quotient, code.x("and", opposite, inexact))
        # All ones unless the divisor is 0.
        mask = code.x("sub", ZERO, code.x("sltu", ZERO, b))
        return self.wrapped(code.x("and", quotient, mask), dtype)

    def _shift(self, name: str, a: Register, b: Register, dtype: str) -> Register:
        """A shift; an amount of the width or more shifts everything out."""
        code, width = self.code, DTYPES[dtype].bitwidth
        fits = code.x("sltiu", b, immediate=width)
        if name == "shrsi":
            # The greatest shift leaves only the sign, so larger amounts are replaced by it.
            mask = code.x("addi", fits, immediate=-1)
            amount = code.x("or", b, mask)
            return code.x("sra", a, code.x("andi", amount, immediate=31))
        shifted = code.x(_SHIFTS[name], self.unsigned(a, dtype) if name == "shrui" else a, b)
        return self.wrapped(code.x("and", shifted, code.x("sub", ZERO, fits)), dtype)

    # 64 bits

    def _wide(self, name: str, operands: list[RegisterPair]) -> Value:
        code = self.code
        match name:
            case "addi":
                return wide.add(code, *operands)
            case "subi":
                return wide.subtract(code, *operands)
            case "muli":
                return wide.multiply(code, *operands)
            case "andi" | "ori" | "xori":
                return wide.bitwise(code, _DIRECT[name], *operands)
            case "maxsi" | "minsi" | "maxui" | "minui":
                return self._extremum(name, operands[0], operands[1], "i64")
            case _:
                raise LoweringError(f"'arith.{name}' of i64 has no code for Snitch cores, which have 32 bits")

    # Comparisons

    def compare(self, predicate: str, a: Value, b: Value, dtype: str) -> Register:
        """1 if the relation holds, otherwise 0."""
        if predicate in ("sgt", "ugt"):
            return self.compare(f"{predicate[0]}lt", b, a, dtype)
        if predicate in ("sge", "uge", "sle", "ule", "ne"):
            opposite = {"ge": "lt", "le": "gt"}
            negated = "eq" if predicate == "ne" else predicate[0] + opposite[predicate[1:]]
            return self.code.x("xori", self.compare(negated, a, b, dtype), immediate=1)
        if isinstance(a, RegisterPair):
            assert isinstance(b, RegisterPair)
            return (
                wide.equal(self.code, a, b)
                if predicate == "eq"
                else wide.less(self.code, a, b, signed=predicate == "slt")
            )
        assert isinstance(b, Register)
        if predicate == "eq":
            return self.code.x("sltiu", self.code.x("xor", a, b), immediate=1)
        if dtype == "i1" and predicate == "slt":
            # As signed numbers, true is -1, less than false.
            a, b = b, a
        return self.code.x("sltu" if predicate == "ult" or dtype == "i1" else "slt", a, b)
