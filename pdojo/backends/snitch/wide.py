"""Operations on 64-bit integers in two registers, for kernels and the mathematical functions."""

from __future__ import annotations

from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.backends.snitch.values import RegisterPair


def add(code: SnitchCode, a: RegisterPair, b: RegisterPair) -> RegisterPair:
    """a + b, modulo 2**64."""
    if ZERO in (a.low, b.low):
        return RegisterPair(b.low if a.low is ZERO else a.low, code.x("add", a.high, b.high))
    low = code.x("add", a.low, b.low)
    # Adding zero gives no carry; otherwise the sum is compared with one addend.
    carry = code.x("sltu", low, a.low)
    return RegisterPair(low, code.x("add", code.x("add", a.high, b.high), carry))


def subtract(code: SnitchCode, a: RegisterPair, b: RegisterPair) -> RegisterPair:
    """a - b, modulo 2**64."""
    borrow = code.x("sltu", a.low, b.low)
    low = code.x("sub", a.low, b.low)
    return RegisterPair(low, code.x("sub", code.x("sub", a.high, b.high), borrow))


def multiply(code: SnitchCode, a: RegisterPair, b: RegisterPair) -> RegisterPair:
    """a * b, modulo 2**64."""
    low = code.x("mul", a.low, b.low)
    crossed = code.x("add", code.x("mul", a.low, b.high), code.x("mul", a.high, b.low))
    return RegisterPair(low, code.x("add", code.x("mulhu", a.low, b.low), crossed))


def bitwise(code: SnitchCode, name: str, a: RegisterPair, b: RegisterPair) -> RegisterPair:
    """`and`, `or` or `xor` of all bits."""
    return RegisterPair(code.x(name, a.low, b.low), code.x(name, a.high, b.high))


def shift_left(code: SnitchCode, a: RegisterPair, count: int) -> RegisterPair:
    """a * 2**count for a constant count below 64."""
    if count == 0:
        return a
    if count >= 32:
        return RegisterPair(ZERO, code.x("slli", a.low, immediate=count - 32) if count > 32 else a.low)
    spilt = code.x("srli", a.low, immediate=32 - count)
    high = code.x("or", code.x("slli", a.high, immediate=count), spilt)
    return RegisterPair(code.x("slli", a.low, immediate=count), high)


def shift_right(code: SnitchCode, a: RegisterPair, count: int) -> RegisterPair:
    """a / 2**count rounded down, for a constant count below 64."""
    if count == 0:
        return a
    sign = code.x("srai", a.high, immediate=31)
    if count >= 32:
        return RegisterPair(code.x("srai", a.high, immediate=count - 32) if count > 32 else a.high, sign)
    spilt = code.x("slli", a.high, immediate=32 - count)
    low = code.x("or", code.x("srli", a.low, immediate=count), spilt)
    return RegisterPair(low, code.x("srai", a.high, immediate=count))


def equal(code: SnitchCode, a: RegisterPair, b: RegisterPair) -> Register:
    """1 if a = b, otherwise 0."""
    differences = code.x("or", code.x("xor", a.low, b.low), code.x("xor", a.high, b.high))
    return code.x("sltiu", differences, immediate=1)


def less(code: SnitchCode, a: RegisterPair, b: RegisterPair, *, signed: bool = True) -> Register:
    """1 if a < b, otherwise 0."""
    if b.low is ZERO:
        # The low part is unsigned, so it is never below 0.
        return code.x("slt" if signed else "sltu", a.high, b.high)
    result = Register("x")
    done = code.label("less")
    code.x("slt" if signed else "sltu", a.high, b.high, to=result)
    code.emit("bne", (), (a.high, b.high), done)
    code.x("sltu", a.low, b.low, to=result)
    code.emit("label", immediate=done)
    return result
