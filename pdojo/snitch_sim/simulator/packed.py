"""Packed functions on two f32 or four f16 in a register; lane 0 is in the lowest bits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct

from pdojo.snitch_sim.simulator.rounding import bits, from_bits, fused_odd, sum_odd, to_half, to_single
from pdojo.snitch_sim.simulator.scalar import (
    Function,
    box_half,
    box_single,
    divide,
    maximum,
    minimum,
    root,
    sign_injected,
)

_D, _UD = Struct("<d").pack, Struct("<d").unpack
_FORMAT = {"s": Struct("<2f"), "h": Struct("<4e")}
_NAN = {"s": Struct("<f").unpack(b"\0\0\xc0\x7f")[0], "h": Struct("<e").unpack(b"\0\x7e")[0]}
_ROUND = {"s": to_single, "h": to_half}

Elementwise = Callable[[float, float, float], float]

_FUNCTIONS: dict[str, Elementwise] = {
    "vfadd": lambda a, b, _: a + b,
    "vfsub": lambda a, b, _: a - b,
    "vfmul": lambda a, b, _: a * b,
    "vfdiv": lambda a, b, _: divide(a, b),
    "vfsqrt": lambda a, b, c: root(a),
    "vfmin": lambda a, b, _: minimum(a, b),
    "vfmax": lambda a, b, _: maximum(a, b),
    "vfmac": fused_odd,
    "vfmre": lambda a, b, c: fused_odd(-a, b, c),
}
_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "vfeq": operator.eq,
    "vfne": operator.ne,
    "vflt": operator.lt,
    "vfge": operator.ge,
    "vfle": operator.le,
    "vfgt": operator.gt,
}


def lanes_of(register: float, letter: str) -> tuple[float, ...]:
    """The numbers in a register."""
    return _FORMAT[letter].unpack(_D(register))


def packed_of(values: Sequence[float], letter: str) -> float:
    """A register with these numbers, each rounded; NaN becomes the canonical NaN."""
    nan = _NAN[letter]
    values = [v if v == v else nan for v in values]
    try:
        return _UD(_FORMAT[letter].pack(*values))[0]
    except OverflowError:
        return _UD(_FORMAT[letter].pack(*map(_ROUND[letter], values)))[0]


def _elementwise(name: str, letter: str, *, replicated: bool) -> Function:
    function = _FUNCTIONS[name]
    layout, pack, unpack = _FORMAT[letter], _D, _FORMAT[letter].unpack
    if letter == "s" and not replicated:

        def pairs(a: float, b: float, c: float) -> float:
            (a0, a1), (b0, b1), (c0, c1) = unpack(pack(a)), unpack(pack(b)), unpack(pack(c))
            return packed_of((function(a0, b0, c0), function(a1, b1, c1)), "s")

        return pairs

    def all_lanes(a: float, b: float, c: float) -> float:
        second = unpack(pack(b))
        if replicated:
            second = second[:1] * (layout.size // (4 if letter == "s" else 2))
        return packed_of([function(*x) for x in zip(unpack(pack(a)), second, unpack(pack(c)), strict=True)], letter)

    return all_lanes


def _signs(kind: str, letter: str, *, replicated: bool) -> Function:
    width = 32 if letter == "s" else 16
    mask = sum(1 << i + width - 1 for i in range(0, 64, width))
    ones = sum(1 << i for i in range(0, 64, width))

    def inject(a: float, b: float, _: float) -> float:
        second = bits(b)
        if replicated:
            second = (second & (1 << width) - 1) * ones
        return from_bits(sign_injected(bits(a), second, mask, kind))

    return inject


def _sum(letter: str) -> Function:
    """rd[k] += rs1[2k] + rs1[2k+1], rounded once; the bits above the sums are ones."""
    if letter == "s":

        def single(a: float, _: float, c: float) -> float:
            low, high = lanes_of(a, "s")
            return box_single(sum_odd(low, high, lanes_of(c, "s")[0]))

        return single

    def half(a: float, _: float, c: float) -> float:
        x, old = lanes_of(a, "h"), lanes_of(c, "h")
        sums = [bits(box_half(sum_odd(x[2 * k], x[2 * k + 1], old[k]))) & 0xFFFF for k in (0, 1)]
        return from_bits(0xFFFFFFFF << 32 | sums[1] << 16 | sums[0])

    return half


def _dot(a: float, b: float, c: float) -> float:
    """rd[k] += rs1[2k] * rs2[2k] + rs1[2k+1] * rs2[2k+1] in f32, rounded once."""
    x, y, old = lanes_of(a, "h"), lanes_of(b, "h"), lanes_of(c, "s")
    return packed_of([sum_odd(x[2 * k] * y[2 * k], x[2 * k + 1] * y[2 * k + 1], old[k]) for k in (0, 1)], "s")


def _dot_replicated(a: float, b: float, c: float) -> float:
    return _dot(a, packed_of(lanes_of(b, "h")[:1] * 4, "h"), c)


def _packs(first: int) -> Function:
    """A function that puts two f32 into the halves `first` and `first + 1`; other halves are kept."""

    def pack(a: float, b: float, c: float) -> float:
        values = list(lanes_of(c, "h"))
        values[first : first + 2] = [to_half(lanes_of(a, "s")[0]), to_half(lanes_of(b, "s")[0])]
        return packed_of(values, "h")

    return pack


def _pair(a: float, b: float, _: float) -> float:
    return from_bits(bits(b) << 32 & 0xFFFFFFFF00000000 | bits(a) & 0xFFFFFFFF)


@cache
def packed_functions() -> dict[str, Function]:
    """All packed functions from floats to floats, keyed by mnemonic."""
    table: dict[str, Function] = {
        "vfcpka.s.s": _pair,
        "vfcpka.h.s": _packs(0),
        "vfcpkb.h.s": _packs(2),
        "vfsum.s": _sum("s"),
        "vfsum.h": _sum("h"),
        "vfdotpex.s.h": _dot,
        "vfdotpex.s.r.h": _dot_replicated,
    }
    for letter in _FORMAT:
        for name in _FUNCTIONS:
            table[f"{name}.{letter}"] = _elementwise(name, letter, replicated=False)
            table[f"{name}.r.{letter}"] = _elementwise(name, letter, replicated=True)
        for kind in ("", "n", "x"):
            table[f"vfsgnj{kind}.{letter}"] = _signs(kind, letter, replicated=False)
            table[f"vfsgnj{kind}.r.{letter}"] = _signs(kind, letter, replicated=True)
    return table


def packed_compare(name: str) -> Callable[[float, float, float], int] | None:
    """A packed comparison, whose result has one bit per lane."""
    parts = name.split(".")
    if parts[0] not in _COMPARES or parts[-1] not in _FORMAT:
        return None
    compare, letter, replicated = _COMPARES[parts[0]], parts[-1], parts[1] == "r"

    def mask(a: float, b: float, _: float) -> int:
        second = lanes_of(b, letter)
        second = second[:1] * len(second) if replicated else second
        return sum(int(compare(x, y)) << i for i, (x, y) in enumerate(zip(lanes_of(a, letter), second, strict=True)))

    return mask
