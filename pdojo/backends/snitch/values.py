"""The values of statements: one register, or two for 64-bit integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.dialect.functions import is_float


@dataclass(frozen=True, slots=True)
class RegisterPair:
    """A 64-bit integer in two registers."""

    low: Register
    high: Register


Value: TypeAlias = Register | RegisterPair
"""A value: floats are in floating-point registers (bf16 as f32); integers are sign-extended, an i1 is 0 or 1."""


def registers_of(value: Value) -> tuple[Register, ...]:
    """The registers of a value."""
    return (value.low, value.high) if isinstance(value, RegisterPair) else (value,)


def fresh(dtype: str) -> Value:
    """New registers for a value of a type."""
    if dtype == "i64":
        return RegisterPair(Register("x"), Register("x"))
    return Register("f" if is_float(dtype) else "x")


def move(code: SnitchCode, source: Value, to: Value) -> None:
    """Copy a value."""
    for one, other in zip(registers_of(source), registers_of(to), strict=True):
        code.move(one, other)


def integer(code: SnitchCode, value: int, dtype: str) -> Value:
    """A constant of an integer type."""
    if dtype == "i64":
        return RegisterPair(code.li(value & 0xFFFFFFFF), code.li(value >> 32))
    if dtype == "i1":
        return code.li(value & 1)
    return code.li(value)


def sign_extended(code: SnitchCode, value: Register) -> RegisterPair:
    """Sign-extend a 32-bit integer to 64 bits."""
    return RegisterPair(value, ZERO if value is ZERO else code.x("srai", value, immediate=31))
