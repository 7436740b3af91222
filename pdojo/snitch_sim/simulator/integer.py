"""Integer instructions as functions of two 32-bit operands."""

from __future__ import annotations

import operator
from collections.abc import Callable

MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_WIDTH = 32

Binary = Callable[[int, int], int]


def signed(x: int) -> int:
    """A 32-bit word as a signed number."""
    return (x ^ _SIGN) - _SIGN


def _divide(a: int, b: int) -> int:
    """Signed quotient; RISC-V: all ones for division by zero."""
    if b == 0:
        return MASK
    x, y = signed(a), signed(b)
    quotient = abs(x) // abs(y)
    return (quotient if (x < 0) == (y < 0) else -quotient) & MASK


def _remainder(a: int, b: int) -> int:
    """Signed remainder with the sign of the dividend."""
    if b == 0:
        return a
    x, y = signed(a), signed(b)
    rest = abs(x) % abs(y)
    return (-rest if x < 0 else rest) & MASK


def quotient_bits(a: int, b: int, *, is_signed: bool) -> int:
    """Number of steps of the serial divider (snitch_shared_muldiv.sv): bits(a) - bits(b) + 1, at least 0.

    It aligns the operands by their leading bits that equal the sign: a negative divisor counts the bits of its
    complement, a negative dividend one more. A divisor without bits (0; -1 if signed) is shifted by all 32 bits, which
    takes a step more than a quotient has bits (m).
    """
    if is_signed:
        a, b = (a ^ MASK) << 1 & MASK if a & _SIGN else a, b ^ MASK if b & _SIGN else b
    return max(0, a.bit_length() - b.bit_length() + 1) if b else _WIDTH + 1


ALU: dict[str, Binary] = {
    "add": lambda a, b: a + b & MASK,
    "sub": lambda a, b: a - b & MASK,
    "sll": lambda a, b: a << (b & 31) & MASK,
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: signed(a) >> (b & 31) & MASK,
    "slt": lambda a, b: int(a ^ _SIGN < b ^ _SIGN),
    "sltu": lambda a, b: int(a < b),
    "xor": lambda a, b: a ^ b,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
}
MULTIPLY: dict[str, Binary] = {
    "mul": lambda a, b: a * b & MASK,
    "mulh": lambda a, b: signed(a) * signed(b) >> 32 & MASK,
    "mulhsu": lambda a, b: signed(a) * b >> 32 & MASK,
    "mulhu": lambda a, b: a * b >> 32,
}
DIVIDE: dict[str, Binary] = {
    "div": _divide,
    "divu": lambda a, b: a // b if b else MASK,
    "rem": _remainder,
    "remu": lambda a, b: a % b if b else a,
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "beq": operator.eq,
    "bne": operator.ne,
    "blt": lambda a, b: a ^ _SIGN < b ^ _SIGN,
    "bge": lambda a, b: a ^ _SIGN >= b ^ _SIGN,
    "bltu": operator.lt,
    "bgeu": operator.ge,
}
IMMEDIATES = {f"{name}i": name for name in ("add", "slt", "xor", "or", "and", "sll", "srl", "sra")} | {"sltiu": "sltu"}
LOADS = {"lb": (0, True), "lh": (1, True), "lw": (2, False), "lbu": (0, False), "lhu": (1, False)}
STORES = {"sb": 0, "sh": 1, "sw": 2}
