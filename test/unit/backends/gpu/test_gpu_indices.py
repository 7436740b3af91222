"""Indices of device code that 32 bits do not hold: their text evaluated as in C, and kernels on arrays of gigabytes."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import pytest

from pdojo.backends.c.indices import MOST, index_text
from pdojo.backends.gpu.fibers import compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.notation import parse_notation


class BeyondError(Exception):
    """No integer of C holds a number."""


@dataclass(frozen=True)
class Number:
    """An integer of C. A result beyond 32 bits raises OverflowError, one beyond 64 bits BeyondError."""

    value: int
    wide: bool

    def __post_init__(self) -> None:
        bits = 63 if self.wide else 31
        if not -(1 << bits) <= self.value < 1 << bits:
            raise BeyondError if self.wide else OverflowError(self)

    def __add__(self, other: Number) -> Number:
        return Number(self.value + other.value, self.wide or other.wide)

    def __sub__(self, other: Number) -> Number:
        return Number(self.value - other.value, self.wide or other.wide)

    def __mul__(self, other: Number) -> Number:
        return Number(self.value * other.value, self.wide or other.wide)

    def __neg__(self) -> Number:
        return Number(-self.value, self.wide)

    def __truediv__(self, other: Number) -> Number:
        quotient = abs(self.value) // abs(other.value)
        return Number(-quotient if (self.value < 0) != (other.value < 0) else quotient, self.wide or other.wide)

    def __mod__(self, other: Number) -> Number:
        return self - (self / other) * other

    def __matmul__(self, other: Number) -> Number:
        """`int64_t @ number` is the cast: Python's operator binds as tightly as products, from the left."""
        return Number(other.value, wide=True)


def value_of(text: str, values: list[int], extents: list[int]) -> int:
    """The value of a text in C; variables of loops are wide if their extents are, literals if they have to be."""
    names = {f"i{d}": Number(v, extents[d] > MOST) for d, v in enumerate(values)}
    names |= {"int64_t": Number(0, wide=True)}
    words = text.replace("(int64_t)", "int64_t@")
    spelled = "".join(w if not w.isdigit() else f"literal({w})" for w in _words(words))
    return eval(spelled, {**names, "literal": literal}).value


def literal(value: int) -> Number:
    """A literal, which is wide if it has to be."""
    return Number(value, value > MOST)


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*|\d+|.", text)


def random_expression(rng: random.Random, extents: list[int], depth: int = 0) -> Expr:
    """A sum of variables, quotients and remainders whose dividends are not negative, as canonical forms have them."""
    total = const(rng.choice([0, 0, 1, 7, 5_000_000_000]))
    for _ in range(rng.randint(1, 4)):
        factor = rng.choice([1, 2, 3, 64, 1000, 65536, 3_000_000, 5_000_000_000])
        term = var(rng.randrange(len(extents)))
        if depth < 2 and rng.random() < 0.5:
            divisor = rng.choice([2, 3, 64, 1000, 7_000_000, 6_000_000_000])
            inner = random_expression(rng, extents, depth + 1)
            term = rng.choice([floordiv, modulo])(inner, divisor, extents)
        if depth == 0 and rng.random() < 0.3:
            factor = -factor
        total = total + term * factor
    return total


def test_the_text_of_an_index_has_its_value_and_overflows_nowhere() -> None:
    rng = random.Random(0)
    wide = plain = 0
    for _ in range(800):
        extents = [rng.choice([1, 2, 10, 256, 1000, 65536, 2_000_000, 3_000_000_000]) for _ in range(3)]
        expression = random_expression(rng, extents)
        text = index_text(expression, extents, "i{}".format)
        for values in ([0] * 3, [e - 1 for e in extents], [rng.randrange(e) for e in extents]):
            with suppress(BeyondError):
                assert value_of(text, values, extents) == expression.evaluate(values), text
                wide, plain = wide + ("int64_t" in text), plain + ("int64_t" not in text)
    assert min(wide, plain) > 200, "both kinds"


def test_an_index_that_fits_has_the_plain_text() -> None:
    extents = [32768, 65536]
    assert index_text(var(0) * 65536 + var(1), extents, "i{}".format) == "i0*65536+i1"
    assert index_text(var(0) * 65536 + var(1), [32769, 65536], "i{}".format) == "(int64_t)i0*65536+i1"


_RUN = """
import ctypes, mmap, sys
library = ctypes.CDLL(sys.argv[1])
size = {size}
memory = [mmap.mmap(-1, size) for _ in range(2)]
x, y = memory
for place in {places}:
    x[place] = 1 + place % 100
at = [ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(each))) for each in memory]
library.k(*at, None)
print([y[place] for place in {places}])
"""
FAR = """
kernel k(x) -> (y)
x i8 [3000000000] heap
y i8 [3000000000] heap

30:g 4:b where ({0}*100000000+{1}*33333333 < 2999999999) y[{0}*100000000+{1}*33333333] = x[{0}*100000000+{1}*33333333]
"""


@pytest.mark.usefixtures("fibers")
@pytest.mark.skipif(sys.maxsize < 1 << 40, reason="arrays of gigabytes need addresses of 64 bits")
def test_a_kernel_reaches_elements_beyond_32_bits() -> None:
    """Few pages of the arrays are touched: the rest is only addresses."""
    (kernel,) = parse_notation(FAR, "<test>")
    compiled = compile_fibers(device_text(kernel, spelling=FiberSpelling()).text, warp=32)
    places = [i * 100_000_000 + j * 33_333_333 for i in range(30) for j in range(4)]
    script = _RUN.format(size=3_000_000_000, places=places)
    done = subprocess.run(
        [sys.executable, "-c", script, str(compiled.library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wanted = [(1 + p % 100) if p < 2_999_999_999 else 0 for p in places]
    assert json.loads(done.stdout) == wanted
    assert len({p for p in places if p > MOST}) > 20
