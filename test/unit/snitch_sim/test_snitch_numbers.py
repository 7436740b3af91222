"""What instructions compute: bit-exact against fractions, NumPy and the definitions of RISC-V."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.simulator import Placement, simulate
from pdojo.snitch_sim.simulator.rounding import (
    bits,
    exact_fma,
    from_bits,
    fused,
    fused_odd,
    sum_odd,
    to_half,
    to_single,
)
from snitch_programs import BASE, run

FLOATS: dict[str, tuple[str, str]] = {"d": ("f8", "u8"), "s": ("f4", "u4"), "h": ("f2", "u2")}
LOAD = {"d": "fld", "s": "flw", "h": "flh"}
STORE = {"d": "fsd", "s": "fsw", "h": "fsh"}


def numbers(letter: str, count: int, seed: int) -> NDArray[Any]:
    """Ordinary numbers, random bits, and all special ones."""
    rng = np.random.default_rng(seed)
    dtype, word = FLOATS[letter]
    width = np.dtype(dtype).itemsize * 8
    values = rng.standard_normal(count).astype(dtype)
    values[::3] = rng.integers(0, 1 << width, len(values[::3]), dtype=word).view(dtype)
    specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        math.inf,
        -math.inf,
        math.nan,
        float(np.finfo(dtype).max),
        float(np.finfo(dtype).tiny),
    ]
    specials += [float(np.finfo(dtype).smallest_subnormal), 0.5, 1.5, 2.5, -0.5]
    values[1::3] = rng.choice(np.array(specials, dtype), len(values[1::3]))
    return values


def apply(text: str, letter: str, *operands: NDArray[Any], result: str | None = None) -> NDArray[Any]:
    """Run an instruction on arrays: operands in fa0, fa1, ..., the result in fa0 (or a7 for `result="u4"`)."""
    size = operands[0].dtype.itemsize
    placement = Placement()
    arrays = [placement.place(operand) for operand in operands]
    out = placement.output(operands[0].shape, result or operands[0].dtype)
    loads = "\n".join(f"{LOAD[letter]} fa{k}, 0(a{k})\naddi a{k}, a{k}, {size}" for k in range(len(operands)))
    store = "sw a7, 0(a5)\naddi a5, a5, 4" if result == "u4" else f"{STORE[letter]} fa0, 0(a5)\naddi a5, a5, {size}"
    if result is not None and result != "u4":
        to = next(k for k, v in FLOATS.items() if v[0] == result)
        store = f"{STORE[to]} fa0, 0(a5)\naddi a5, a5, {np.dtype(result).itemsize}"
    program = assemble(
        f"main:\nli t0, {operands[0].size}\n1:\n{loads}\n{text}\n{store}\naddi t0, t0, -1\nbnez t0, 1b\nret\n"
    )
    arguments = {**{f"a{k}": a.address for k, a in enumerate(arrays)}, "a5": out.address}
    simulate(program, arguments=arguments, memory=placement.memory)
    placement.check()
    return out.values.copy()


def same(ours: NDArray[Any], theirs: NDArray[Any]) -> None:
    """The same bits; NaN is the canonical one."""
    word = f"u{ours.dtype.itemsize}"
    nan = np.isnan(theirs)
    canonical = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}[ours.dtype.itemsize]
    np.testing.assert_array_equal(ours.view(word)[~nan], theirs.astype(ours.dtype).view(word)[~nan])
    assert (ours.view(word)[nan] == canonical).all()


@pytest.mark.parametrize("letter", FLOATS)
@pytest.mark.parametrize("name", ["fadd", "fsub", "fmul", "fdiv"])
def test_arithmetic(letter: str, name: str) -> None:
    a, b = numbers(letter, 300, 1), numbers(letter, 300, 2)
    function = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}[name]
    with np.errstate(all="ignore"):
        same(apply(f"{name}.{letter} fa0, fa0, fa1", letter, a, b), function(a, b))
        if name == "fdiv":
            same(apply(f"fsqrt.{letter} fa0, fa0", letter, a), np.sqrt(a))


@pytest.mark.parametrize("letter", FLOATS)
def test_minimum_and_maximum(letter: str) -> None:
    """The number where one operand is NaN; -0 below +0."""
    a, b = numbers(letter, 300, 3), numbers(letter, 300, 4)
    for name, choose in (("fmin", np.fmin), ("fmax", np.fmax)):
        with np.errstate(all="ignore"):
            expected = choose(a, b)
        zeros = (a == 0) & (b == 0)
        negative = (np.signbit(a) | np.signbit(b)) if name == "fmin" else (np.signbit(a) & np.signbit(b))
        expected[zeros] = np.where(negative[zeros], -0.0, 0.0)
        same(apply(f"{name}.{letter} fa0, fa0, fa1", letter, a, b), expected)


def round_fraction(value: Fraction, precision: int, lowest: int, highest: int) -> float:
    """A fraction rounded to nearest even, to `precision` bits, with exponents of the last bit from `lowest` on."""
    if value == 0:
        return 0.0
    exponent = max(lowest, value.numerator.bit_length() - value.denominator.bit_length() - precision + 1)
    while abs(value) >= Fraction(2) ** (exponent + precision):
        exponent += 1
    while exponent > lowest and abs(value) < Fraction(2) ** (exponent + precision - 1):
        exponent -= 1
    scaled = round(value / Fraction(2) ** exponent)
    if abs(scaled) * Fraction(2) ** exponent >= Fraction(2) ** highest:
        return math.inf if value > 0 else -math.inf
    return float(scaled * Fraction(2) ** exponent)


def test_fused_doubles() -> None:
    rng, fma = random.Random(5), fused()
    for _ in range(3000):
        a, b = rng.uniform(-2, 2), rng.uniform(-2, 2)
        c = rng.choice(
            [rng.uniform(-1, 1), -a * b, -a * b * (1 + 2**-52), rng.uniform(-1, 1) * 2.0 ** rng.randint(-120, 60)]
        )
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        expected = round_fraction(exact, 53, -1074, 1024)
        assert fma(a, b, c) == exact_fma(a, b, c) == expected
    assert bits(exact_fma(-0.0, 1.0, -0.0)) == bits(-0.0)
    assert bits(exact_fma(1.0, -1.0, 1.0)) == bits(0.0)


@pytest.mark.parametrize(("letter", "precision", "lowest", "highest"), [("s", 24, -149, 128), ("h", 11, -24, 16)])
def test_fused_singles_and_halves(letter: str, precision: int, lowest: int, highest: int) -> None:
    rng = random.Random(6)
    narrow = to_single if letter == "s" else to_half
    scale = 30 if letter == "s" else 5
    for _ in range(4000):
        a, b, c = (narrow(rng.uniform(-2, 2) * 2.0 ** rng.randint(-scale, scale)) for _ in range(3))
        c = rng.choice([c, -narrow(a * b), narrow(a * b * 2.0 ** -rng.randint(20, 40))])
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        assert narrow(fused_odd(a, b, c)) == round_fraction(exact, precision, lowest, highest)
        exact = Fraction(a) + Fraction(b) + Fraction(c)
        assert narrow(sum_odd(a, b, c)) == round_fraction(exact, precision, lowest, highest)
    assert math.isnan(fused_odd(math.inf, 0.0, 1.0))
    assert sum_odd(math.inf, 1.0, 1.0) == math.inf


@pytest.mark.parametrize("letter", FLOATS)
@pytest.mark.parametrize(
    ("name", "sign", "product"), [("fmadd", 1, 1), ("fmsub", -1, 1), ("fnmsub", 1, -1), ("fnmadd", -1, -1)]
)
def test_fused_instructions(letter: str, name: str, sign: int, product: int) -> None:
    a, b, c = (numbers(letter, 120, k) for k in (7, 8, 9))
    ours = apply(f"{name}.{letter} fa0, fa0, fa1, fa2", letter, a, b, c)
    narrow = {"d": float, "s": to_single, "h": to_half}[letter]
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), ours.tolist(), strict=True):
        if all(map(math.isfinite, (x, y, z))):
            exact = product * Fraction(x) * Fraction(y) + sign * Fraction(z)
            limits = {"d": (53, -1074, 1024), "s": (24, -149, 128), "h": (11, -24, 16)}[letter]
            assert r == round_fraction(exact, *limits)
        else:
            expected = product * x * y + sign * z if not (0 in (x, y) and math.inf in (abs(x), abs(y))) else math.nan
            assert bits(narrow(expected)) == bits(r) or (math.isnan(expected) and math.isnan(r))


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in FLOATS for b in FLOATS if a != b])
def test_conversions_between_formats(source: str, target: str) -> None:
    a = numbers(source, 300, 10)
    with np.errstate(all="ignore"):
        expected = a.astype(FLOATS[target][0])
    same(apply(f"fcvt.{target}.{source} fa0, fa0", source, a, result=FLOATS[target][0]), expected)


@pytest.mark.parametrize("letter", FLOATS)
def test_conversions_to_integers(letter: str) -> None:
    a = np.concatenate([numbers(letter, 200, 11), np.array([2.5, 3.5, -2.5, -1.1, 7.9], FLOATS[letter][0])])
    modes = {"rne": round, "rtz": math.trunc, "rdn": math.floor, "rup": math.ceil}
    for mode, function in modes.items():
        for name, low, high in (("w", -(1 << 31), (1 << 31) - 1), ("wu", 0, (1 << 32) - 1)):
            ours = apply(f"fcvt.{name}.{letter} a7, fa0, {mode}", letter, a, result="u4")
            for x, r in zip(a.tolist(), ours.tolist(), strict=True):
                outside = low if x == -math.inf else high
                expected = max(low, min(high, function(x))) if math.isfinite(x) else outside
                assert r == expected & 0xFFFFFFFF, (x, mode)


def test_conversions_from_integers() -> None:
    for value in (0, 1, -1, 1 << 31, (1 << 31) - 1, 0xFFFFFFFF, 16777217, -16777217):
        placement = Placement()
        out = placement.output((4,), "f8")
        text = "main: fcvt.d.w fa0, a1\nfcvt.d.wu fa1, a1\nfcvt.s.w fa2, a1\nfcvt.s.wu fa3, a1\n"
        text += (
            "fcvt.d.s fa2, fa2\nfcvt.d.s fa3, fa3\n"
            + "\n".join(f"fsd fa{k}, {8 * k}(a0)" for k in range(4))
            + "\nret\n"
        )
        simulate(assemble(text), arguments=[out.address, value], memory=placement.memory)
        signed = (value + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
        plain = value & 0xFFFFFFFF
        assert out.values.tolist() == [signed, plain, float(np.float32(signed)), float(np.float32(plain))]


@pytest.mark.parametrize("letter", FLOATS)
def test_comparisons_and_classes(letter: str) -> None:
    a, b = numbers(letter, 200, 12), numbers(letter, 200, 13)
    for name, function in (("feq", np.equal), ("flt", np.less), ("fle", np.less_equal)):
        np.testing.assert_array_equal(apply(f"{name}.{letter} a7, fa0, fa1", letter, a, b, result="u4"), function(a, b))
    classes = apply(f"fclass.{letter} a7, fa0", letter, a, result="u4")
    tiny = np.finfo(a.dtype).tiny
    for x, c in zip(a, classes.tolist(), strict=True):
        if np.isnan(x):
            assert c in (1 << 8, 1 << 9)
            continue
        kind = 0 if np.isinf(x) else 3 if x == 0 else 2 if abs(x) < tiny else 1
        assert c == 1 << (kind if np.signbit(x) else 7 - kind)


@pytest.mark.parametrize("letter", FLOATS)
def test_signs(letter: str) -> None:
    a, b = numbers(letter, 100, 14), numbers(letter, 100, 15)
    word = FLOATS[letter][1]
    x, y = a.view(word), b.view(word)
    sign = np.array(1 << a.dtype.itemsize * 8 - 1, word)
    for name, chosen in (("fsgnj", y), ("fsgnjn", ~y), ("fsgnjx", x ^ y)):
        ours = apply(f"{name}.{letter} fa0, fa0, fa1", letter, a, b)
        np.testing.assert_array_equal(ours.view(word), x & ~sign | chosen & sign)


def near(letter: str) -> list[float]:
    """Numbers of a type around integers, their halves, and the ends of what fits 32 bits; on both sides of each."""
    kind = np.dtype(FLOATS[letter][0]).type
    most = float(np.finfo(kind).max)
    places = [0, 0.5, 1, 1.5, 2, 2.5, 3.5, 100.5, 1023.5, 2048.5, 65503.5, 4194303.5, 8388607.5, 16777215, 2**30 + 0.5]
    places += [
        2**31 - 1.5,
        2**31 - 1,
        2**31 - 0.5,
        2**31,
        2**32 - 1.5,
        2**32 - 0.5,
        2**32,
        2**51 + 0.5,
        2**52,
        2**53,
        1e300,
    ]
    found: dict[float, None] = {}
    for place in places:
        if place <= most:
            number = kind(place)
            for each in (np.nextafter(number, kind(0)), number, np.nextafter(number, kind(most))):
                found |= {float(each): None, -float(each): None}
    return list(found)


MODES: dict[str, Callable[[Fraction], int]] = {
    "rne": round,
    "rtz": math.trunc,
    "rdn": math.floor,
    "rup": math.ceil,
    "rmm": lambda x: (1 if x > 0 else -1) * math.floor(abs(x) + Fraction(1, 2)),
}
"""Rounding modes, on fractions."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("letter", FLOATS)
@pytest.mark.parametrize("integer", ["w", "wu"])
def test_conversions_to_integers_round_once(integer: str, letter: str, mode: str) -> None:
    """Above all the number before a half, of which adding a half makes one."""
    values = near(letter)
    low, high = (-(1 << 31), (1 << 31) - 1) if integer == "w" else (0, (1 << 32) - 1)
    kind = np.dtype(FLOATS[letter][0]).type
    found = apply(f"fcvt.{integer}.{letter} a7, fa0, {mode}", letter, np.array(values, kind), result="u4")
    for value, word in zip(values, found.tolist(), strict=True):
        assert word == max(low, min(high, MODES[mode](Fraction(value)))) & 0xFFFFFFFF, value
    assert float(np.nextafter(kind(0.5), kind(0))) in values


def test_boxes() -> None:
    """An f32 that is not boxed is NaN for scalar instructions; bits pass through loads, stores and moves unchanged."""
    placement = Placement()
    words = placement.place(np.array([0x3FF0000000000000, 0xFFFFFFFF3F800000, 0x7FF0000000000001], "u8"))
    out = placement.output((3,), "u8")
    text = """main:
 fld fa0, 0(a0)
 fld fa1, 8(a0)
 fld fa2, 16(a0)
 fadd.s fa0, fa0, fa1
 fmv.s fa1, fa1
 fmv.d fa2, fa2
 fsd fa0, 0(a1)
 fsd fa1, 8(a1)
 fsd fa2, 16(a1)
 ret"""
    simulate(assemble(text), arguments=[words.address, out.address], memory=placement.memory)
    assert [hex(w) for w in out.values.tolist()] == ["0xffffffff7fc00000", "0xffffffff3f800000", "0x7ff0000000000001"]


PACKED = {"s": 2, "h": 4}


@pytest.mark.parametrize("letter", PACKED)
@pytest.mark.parametrize("replicated", [False, True])
def test_packed_arithmetic(letter: str, replicated: bool) -> None:
    lanes = PACKED[letter]
    flat = [numbers(letter, 60 * lanes, k) for k in (16, 17)]
    words = [x.view("f8") for x in flat]
    second = np.repeat(flat[1].reshape(-1, lanes)[:, :1], lanes, 1).ravel() if replicated else flat[1]
    r = ".r" if replicated else ""
    with np.errstate(all="ignore"):
        for name, function in (("vfadd", np.add), ("vfsub", np.subtract), ("vfmul", np.multiply), ("vfdiv", np.divide)):
            ours = apply(f"{name}{r}.{letter} fa0, fa0, fa1", "d", *words)
            same(ours.view(flat[0].dtype), function(flat[0], second))
        if not replicated:
            same(apply(f"vfsqrt.{letter} fa0, fa0", "d", words[0]).view(flat[0].dtype), np.sqrt(flat[0]))
        for name, compare in (
            ("vfeq", np.equal),
            ("vflt", np.less),
            ("vfge", np.greater_equal),
            ("vfne", np.not_equal),
        ):
            ours = apply(f"{name}{r}.{letter} a7, fa0, fa1", "d", *words, result="u4")
            expected = compare(flat[0], second).reshape(-1, lanes) @ (1 << np.arange(lanes))
            np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("letter", PACKED)
def test_packed_fused_and_sums(letter: str) -> None:
    lanes = PACKED[letter]
    rng = np.random.default_rng(18)
    a, b, c = (rng.standard_normal(80 * lanes).astype(FLOATS[letter][0]) for _ in range(3))
    limits = {"s": (24, -149, 128), "h": (11, -24, 16)}[letter]
    words = [x.view("f8") for x in (c, a, b)]
    for name, sign in (("vfmac", 1), ("vfmre", -1)):
        ours = apply(f"{name}.{letter} fa0, fa1, fa2", "d", *words).view(a.dtype)
        for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), ours.tolist(), strict=True):
            assert r == round_fraction(sign * Fraction(x) * Fraction(y) + Fraction(z), *limits)
    sums = apply(f"vfsum.{letter} fa0, fa1", "d", *words[:2]).view(a.dtype).reshape(-1, lanes)
    for row, old, r in zip(a.reshape(-1, lanes).tolist(), c.reshape(-1, lanes).tolist(), sums.tolist(), strict=True):
        for k in range(lanes // 2):
            exact = Fraction(row[2 * k]) + Fraction(row[2 * k + 1]) + Fraction(old[k])
            assert r[k] == round_fraction(exact, *limits)


def test_packing_and_expanding_products() -> None:
    rng = np.random.default_rng(19)
    a, b = (rng.standard_normal(64).astype("f4") for _ in range(2))
    ours = apply("vfcpka.s.s fa0, fa0, fa1", "s", a, b)  # stores the lower lane
    np.testing.assert_array_equal(ours, a)
    x, y = (rng.standard_normal(64).astype("f2") for _ in range(2))
    old = rng.standard_normal(32).astype("f4")
    dots = apply("vfdotpex.s.h fa0, fa1, fa2", "d", old.view("f8"), x.view("f8"), y.view("f8")).view("f4")
    for k, r in enumerate(dots.tolist()):
        pairs = zip(x[2 * k : 2 * k + 2].tolist(), y[2 * k : 2 * k + 2].tolist(), strict=True)
        exact = sum((Fraction(p) * Fraction(q) for p, q in pairs), Fraction(float(old[k])))
        assert r == round_fraction(exact, 24, -149, 128)


def test_copies_keep_all_bits() -> None:
    """A register is a Python float that stands for 64 bits, signalling NaN among them."""
    rng = random.Random(20)
    for _ in range(1000):
        word = rng.getrandbits(64) | rng.choice([0, 0x7FF << 52])
        assert bits(from_bits(word)) == word
    memory = memoryview(bytearray(struct.pack("<Q", 0x7FF0000000000001))).cast("d")
    assert bits(memory[0]) == 0x7FF0000000000001


INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "xor": lambda a, b: a ^ b,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "sll": lambda a, b: a << (b & 31),
    "srl": lambda a, b: (a & 0xFFFFFFFF) >> (b & 31),
    "sra": lambda a, b: a >> (b & 31),
    "slt": lambda a, b: int(a < b),
    "sltu": lambda a, b: int(a & 0xFFFFFFFF < b & 0xFFFFFFFF),
    "mul": lambda a, b: a * b,
    "mulh": lambda a, b: a * b >> 32,
    "mulhu": lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF) >> 32,
    "mulhsu": lambda a, b: a * (b & 0xFFFFFFFF) >> 32,
    "div": lambda a, b: -1 if b == 0 else int(Fraction(a, b)),
    "rem": lambda a, b: a if b == 0 else a - b * int(Fraction(a, b)),
    "divu": lambda a, b: -1 if b == 0 else (a & 0xFFFFFFFF) // (b & 0xFFFFFFFF),
    "remu": lambda a, b: a if b == 0 else (a & 0xFFFFFFFF) % (b & 0xFFFFFFFF),
}


def test_integers() -> None:
    rng = random.Random(21)
    edges = [0, 1, -1, 2, 31, 32, -(1 << 31), (1 << 31) - 1]
    for name, function in INTEGER.items():
        for _ in range(30):
            a, b = (rng.choice([*edges, rng.randint(-(1 << 31), (1 << 31) - 1)]) for _ in range(2))
            memory = bytearray(128 << 10)
            run(f"{name} a0, a1, a2\nsw a0, 0(a3)", arguments=[0, a, b, BASE], memory=memory)
            assert struct.unpack_from("<I", memory)[0] == function(a, b) & 0xFFFFFFFF, (name, a, b)


def test_loads_and_stores_of_all_sizes() -> None:
    memory = bytearray(128 << 10)
    text = """
 li t0, 0x8091a2b3
 sw t0, 64(a0)
 lb t1, 64(a0)
 lbu t2, 65(a0)
 lh t3, 66(a0)
 lhu t4, 66(a0)
 sw t1, 0(a0)
 sw t2, 4(a0)
 sw t3, 8(a0)
 sw t4, 12(a0)
 sb t0, 16(a0)
 sh t0, 20(a0)
"""
    run(text, arguments=[BASE], memory=memory)
    assert struct.unpack_from("<4I2I", memory) == (0xFFFFFFB3, 0xA2, 0xFFFF8091, 0x8091, 0xB3, 0xA2B3)
