"""RISC-V's scalar floating-point functions on register contents: canonical NaN, NaN-boxed f32 and f16.

A register is a Python float whose 64 bits are its contents; the instruction determines their meaning. Copying a float
copies all bits. Every function takes three operands, but may use fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from struct import Struct

from pdojo.snitch_sim.simulator.rounding import CANONICAL, NAN, bits, from_bits, fused, fused_odd

Function = Callable[[float, float, float], float]

_D = Struct("<d").pack
_UD = Struct("<d").unpack
_FI, _UFI = Struct("<fI").pack, Struct("<fI").unpack
_II, _UII = Struct("<II").pack, Struct("<II").unpack
_EHI, _UEHI = Struct("<eHI").pack, Struct("<eHI").unpack
_BOX = 0xFFFFFFFF
_NAN_SINGLE = _UD(_II(0x7FC00000, _BOX))[0]
_NAN_HALF = from_bits(0xFFFFFFFFFFFF7E00)


def unbox_single(register: float) -> float:
    """The f32 in a register; NaN if it is not boxed."""
    value, above = _UFI(_D(register))
    return value if above == _BOX else NAN


def box_single(value: float) -> float:
    """A register with the nearest f32 to a number."""
    if value != value:
        return _NAN_SINGLE
    try:
        return _UD(_FI(value, _BOX))[0]
    except OverflowError:
        return _UD(_FI(math.copysign(math.inf, value), _BOX))[0]


def unbox_half(register: float) -> float:
    """The f16 in a register; NaN if it is not boxed."""
    value, middle, above = _UEHI(_D(register))
    return value if above == _BOX and middle == 0xFFFF else NAN


def box_half(value: float) -> float:
    """A register with the nearest f16 to a number."""
    if value != value:
        return _NAN_HALF
    try:
        return _UD(_EHI(value, 0xFFFF, _BOX))[0]
    except OverflowError:
        return _UD(_EHI(math.copysign(math.inf, value), 0xFFFF, _BOX))[0]


def divide(a: float, b: float) -> float:
    """IEEE division."""
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return NAN
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def root(a: float) -> float:
    """IEEE square root."""
    return math.sqrt(a) if a >= 0 else (a if a == 0 else NAN)


def minimum(a: float, b: float) -> float:
    """RISC-V's fmin: if one operand is NaN, the result is the other; -0 is less than +0."""
    if a != a or b != b:
        return b if a != a else a
    if a == b:
        return a if math.copysign(1.0, a) < 0 else b
    return min(b, a)


def maximum(a: float, b: float) -> float:
    """RISC-V's fmax."""
    if a != a or b != b:
        return b if a != a else a
    if a == b:
        return b if math.copysign(1.0, a) < 0 else a
    return max(b, a)


def _canonical(value: float) -> float:
    return value if value == value else CANONICAL


def _fadd(a: float, b: float, _: float) -> float:
    r = a + b
    return r if r == r else CANONICAL


def _fsub(a: float, b: float, _: float) -> float:
    r = a - b
    return r if r == r else CANONICAL


def _fmul(a: float, b: float, _: float) -> float:
    r = a * b
    return r if r == r else CANONICAL


def _doubles() -> dict[str, Function]:
    fma = fused()

    def fmadd(a: float, b: float, c: float) -> float:
        r = fma(a, b, c)
        return r if r == r else CANONICAL

    return {
        "fadd.d": _fadd,
        "fsub.d": _fsub,
        "fmul.d": _fmul,
        "fmadd.d": fmadd,
        "fmsub.d": lambda a, b, c: fmadd(a, b, -c),
        "fnmsub.d": lambda a, b, c: fmadd(-a, b, c),
        "fnmadd.d": lambda a, b, c: fmadd(-a, b, -c),
        "fdiv.d": lambda a, b, _: _canonical(divide(a, b)),
        "fsqrt.d": lambda a, b, c: _canonical(root(a)),
        "fmin.d": lambda a, b, _: _canonical(minimum(a, b)),
        "fmax.d": lambda a, b, _: _canonical(maximum(a, b)),
    }


Unbox = Callable[[float], float]


def _narrow(letter: str, get: Unbox, put: Unbox) -> dict[str, Function]:
    return {
        f"fadd.{letter}": lambda a, b, _: put(get(a) + get(b)),
        f"fsub.{letter}": lambda a, b, _: put(get(a) - get(b)),
        f"fmul.{letter}": lambda a, b, _: put(get(a) * get(b)),
        f"fdiv.{letter}": lambda a, b, _: put(divide(get(a), get(b))),
        f"fsqrt.{letter}": lambda a, b, c: put(root(get(a))),
        f"fmadd.{letter}": lambda a, b, c: put(fused_odd(get(a), get(b), get(c))),
        f"fmsub.{letter}": lambda a, b, c: put(fused_odd(get(a), get(b), -get(c))),
        f"fnmsub.{letter}": lambda a, b, c: put(fused_odd(-get(a), get(b), get(c))),
        f"fnmadd.{letter}": lambda a, b, c: put(fused_odd(-get(a), get(b), -get(c))),
        f"fmin.{letter}": lambda a, b, _: put(minimum(get(a), get(b))),
        f"fmax.{letter}": lambda a, b, _: put(maximum(get(a), get(b))),
    }


WIDTH = {"d": 64, "s": 32, "h": 16}
_CANONICAL_BITS = {64: 0x7FF8 << 48, 32: 0x7FC00000, 16: 0x7E00}


def payload(register: float, width: int) -> int:
    """The bits of a number in a register; the canonical NaN's if it is not boxed."""
    word = bits(register)
    box = ~((1 << width) - 1) & (1 << 64) - 1
    return word & ~box if word & box == box else _CANONICAL_BITS[width]


def boxed(word: int, width: int) -> float:
    """A register with these bits, boxed."""
    return from_bits(word | (~((1 << width) - 1) & (1 << 64) - 1))


def sign_injected(a: int, b: int, sign: int, kind: str) -> int:
    """The bits of `a` with `b`'s sign, the opposite sign (`n`), or the product of both signs (`x`)."""
    chosen = {"": b, "n": ~b, "x": a ^ b}[kind] & sign
    return a & ~sign | chosen


def _signs(letter: str, kind: str) -> Function:
    width = WIDTH[letter]
    sign = 1 << width - 1
    if letter == "d" and kind == "":  # the usual case: fmv.d
        return lambda a, b, _: a if a is b else from_bits(sign_injected(bits(a), bits(b), sign, ""))
    return lambda a, b, _: boxed(sign_injected(payload(a, width), payload(b, width), sign, kind), width)


@cache
def float_functions() -> dict[str, Function]:
    """All scalar functions from floats to floats, keyed by mnemonic."""
    table = {**_doubles(), **_narrow("s", unbox_single, box_single), **_narrow("h", unbox_half, box_half)}
    for letter in WIDTH:
        for kind in ("", "n", "x"):
            table[f"fsgnj{kind}.{letter}"] = _signs(letter, kind)
        for other in WIDTH:
            if other != letter:
                table[f"fcvt.{letter}.{other}"] = _converted(getter(other), setter(letter))
    return table


def _converted(get: Unbox, put: Unbox) -> Function:
    return lambda a, b, c: put(get(a))


def getter(letter: str) -> Unbox:
    """The function that reads a format's numbers from registers."""
    getters: dict[str, Unbox] = {"d": lambda x: x, "s": unbox_single, "h": unbox_half}
    return getters[letter]


def setter(letter: str) -> Unbox:
    """The function that makes registers from numbers, which it rounds to the format."""
    return {"d": _canonical, "s": box_single, "h": box_half}[letter]
