"""Functions between floating-point and integer registers: comparisons, conversions, moves, classes."""

from __future__ import annotations

import math
from collections.abc import Callable

from pdojo.snitch_sim.assembler.registers import ROUNDING
from pdojo.snitch_sim.simulator.rounding import bits
from pdojo.snitch_sim.simulator.scalar import WIDTH, Function, boxed, getter, payload, setter

ToInteger = Callable[[float, float, float], int]
FromInteger = Callable[[int], float]

_NAMES = {value: name for name, value in ROUNDING.items()}


def rounded(value: float, mode: int) -> float:
    """A number rounded to an integer."""
    match _NAMES.get(mode, ""):
        case "rtz":
            return float(math.trunc(value))
        case "rdn":
            return float(math.floor(value))
        case "rup":
            return float(math.ceil(value))
        case "rmm":
            size = abs(value)
            whole = math.floor(size)
            # Adding 0.5 would be inexact: 0.49999999999999994 + 0.5 rounds to 1.
            return math.copysign(whole + (size - whole >= 0.5), value)
        case _:  # rne, and dyn, as the control register is never changed
            return float(round(value))


def _to_integer(value: float, mode: int, *, signed: bool) -> int:
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    if value != value:
        return high & 0xFFFFFFFF
    if math.isinf(value):
        return (high if value > 0 else low) & 0xFFFFFFFF
    return max(low, min(high, int(rounded(value, mode)))) & 0xFFFFFFFF


def classified(word: int, width: int) -> int:
    """RISC-V's fclass: a mask with one of ten bits."""
    fraction_bits = {64: 52, 32: 23, 16: 10}[width]
    sign, magnitude = word >> width - 1, word & (1 << width - 1) - 1
    exponent, fraction = magnitude >> fraction_bits, magnitude & (1 << fraction_bits) - 1
    if exponent == (1 << width - 1 - fraction_bits) - 1:
        if fraction:
            return 1 << (9 if fraction >> fraction_bits - 1 else 8)
        return 1 << (0 if sign else 7)
    if exponent == 0:
        kind = 3 if fraction == 0 else 2
        return 1 << (kind if sign else 7 - kind)
    return 1 << (1 if sign else 6)


def to_integer(name: str, mode: int) -> ToInteger | None:
    """The function of an instruction from floats to an integer register."""
    parts = name.split(".")
    letter = parts[-1]
    if parts[0] in ("feq", "flt", "fle") and letter in WIDTH:
        get = getter(letter)
        if parts[0] == "feq":
            return lambda a, b, _: int(get(a) == get(b))
        return (lambda a, b, _: int(get(a) < get(b))) if parts[0] == "flt" else (lambda a, b, _: int(get(a) <= get(b)))
    if parts[0] == "fclass":
        return lambda a, b, c: classified(payload(a, WIDTH[letter]), WIDTH[letter])
    if parts[0] == "fcvt" and parts[1] in ("w", "wu"):
        get, signed = getter(letter), parts[1] == "w"
        return lambda a, b, c: _to_integer(get(a), mode, signed=signed)
    if name == "fmv.x.w":
        return lambda a, b, c: bits(a) & 0xFFFFFFFF
    if name == "fmv.x.h":
        return lambda a, b, c: ((bits(a) & 0xFFFF) + 0x8000 & 0xFFFF) - 0x8000 & 0xFFFFFFFF
    return None


def from_integer(name: str) -> FromInteger | None:
    """The function of an instruction from an integer register to a float."""
    if name == "fmv.w.x":
        return lambda x: boxed(x, 32)
    if name == "fmv.h.x":
        return lambda x: boxed(x & 0xFFFF, 16)
    parts = name.split(".")
    if parts[0] == "fcvt" and len(parts) == 3 and parts[2] in ("w", "wu"):
        put = setter(parts[1])
        if parts[2] == "wu":
            return lambda x: put(float(x))
        return lambda x: put(float((x + (1 << 31) & 0xFFFFFFFF) - (1 << 31)))
    return None


__all__ = ["FromInteger", "Function", "ToInteger", "classified", "from_integer", "rounded", "to_integer"]
