"""Stores and loads of some lanes: all conversions, numbers of active lanes, directions and levels of instructions.

The arrays end, and begin, at pages without access, and the elements beside the written ones keep their values. On a
processor without a level's instructions, the stores are read from the assembly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from differential.compiled import kernel, random_values, same
from pdojo.backends.llvm.backend import LLVM
from pdojo.backends.llvm.executable import compile
from pdojo.backends.measure.guarded import SIDES, GuardedArray, GuardPlacement
from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.errors import LoweringError

TYPES = ("i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64")
LEVELS = ("x86-64-avx2", "x86-64-zen4", "x86-64-avx512", "x86-64-amx")
FORMS = ("2:u", "2")
"""Two vectors: unrolled here, or a loop that LLVM may unroll."""
VECTOR = 64
"""Bytes of the longest vector."""


def runs_here(target: Machine) -> bool:
    try:
        LLVM.check_runs_here(target)
    except LoweringError:
        return False
    return True


def lanes_of(source: str, result: str) -> int:
    """Lanes of a vector of the wider type."""
    return VECTOR // max(byte_width(source), byte_width(result))


def counts(lanes: int) -> list[int]:
    """Numbers of active lanes of the last vector."""
    return sorted({1, 2, 3, lanes // 2 + 1, lanes - 1})


def rows(lanes: int) -> list[tuple[int, int]]:
    """The number of active lanes and the direction of each row."""
    return list(product(counts(lanes), (1, -1)))


def text(source: str, result: str, form: str) -> str:
    """Rows that end, or begin, where the array's row does; the elements beside them are the caller's."""
    lanes = lanes_of(source, result)
    width = 2 * lanes
    nests: list[str] = []
    for row, (count, step) in enumerate(rows(lanes)):
        used = lanes + count
        place = f"{width - used}+{{0}}*{lanes}+{{1}}" if step > 0 else f"{used - 1}-{{0}}*{lanes}-{{1}}"
        value = f"x[{row},{place}]" if source == result else f"cast(x[{row},{place}])"
        nests.append(f"{form} {lanes}:v where ({{0}}*{lanes}+{{1}} < {used}) y[{row},{place}] = {value}")
    head = f"kernel k(x, y) -> (y)\nx {source} [{len(nests)}, {width}] heap\ny {result} [{len(nests)}, {width}] heap\n"
    return head + "\n" + "\n".join(nests) + "\n"


def results_of(source: str) -> Iterator[str]:
    """The types that a value is stored in; between f16 and bf16 there is no conversion."""
    return (result for result in TYPES if {source, result} != {"f16", "bf16"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", TYPES)
def test_values_and_memory_beside_them(source: str, level: str, form: str) -> None:
    target = machine(level)
    if not runs_here(target):
        pytest.skip(f"this processor lacks instructions of {level}")
    for number, result in enumerate(results_of(source)):
        program = kernel(text(source, result, form))
        executable = compile(program, target, threads=1, optimize="full")
        random = np.random.default_rng(number)
        x, y = (random_values(p.dtype, p.shape, random) for p in executable.parameters)
        wanted = interpret(program, {"x": x, "y": y})["y"]
        for side in SIDES:
            given, written = (
                GuardedArray(p.shape, INTERFACE[p.dtype], GuardPlacement(side, p.alignment))
                for p in executable.parameters
            )
            given.array[...], written.array[...] = x, y
            given.close_writing()
            executable(given.array, written.array)
            assert given.damage("x") is None
            assert written.damage("y") is None, (source, result, side)
            assert same(written.array, wanted, result), (source, result, side)


REGISTERS = {"xmm": 16, "ymm": 32, "zmm": 64}
NARROWED = {"qb": 8, "qw": 4, "qd": 2, "db": 4, "dw": 2, "wb": 2}
WIDTHS = {
    **{"movb": 1, "movw": 2, "movl": 4, "movq": 8, "vmovsh": 2, "vmovd": 4, "vmovq": 8, "vmovss": 4, "vextractps": 4},
    **dict.fromkeys(("vmovsd", "vmovlps", "vmovhps", "vmovlpd", "vmovhpd"), 8),
    **{"vpextrb": 1, "vpextrw": 2, "vpextrd": 4, "vpextrq": 8},
}
STORE = re.compile(r"(\w+)\t(.*), (-?\d*)\((%\w+)\)( \{%k\d\})?$")


def width_of(name: str, operands: str) -> int:
    """Bytes that an instruction of x86-64 stores, from its name and the operands before the address."""
    if name in WIDTHS:
        return WIDTHS[name]
    register = max(size for kind, size in REGISTERS.items() if kind in operands)
    if match := re.fullmatch(r"vpmovu?s?([qdw][bwd])", name):
        return register // NARROWED[match[1]]
    if name == "vcvtps2ph":
        return register // 2
    if match := re.fullmatch(r"vextract[fi](?:128|(32|64)x(\d))", name):
        return 16 if match[1] is None else int(match[1]) * int(match[2]) // 8
    assert re.fullmatch(r"vmov(nt|[ua])(ps|pd)|vmov(dq[ua]|ntdq)(8|16|32|64)?", name), name
    return register


def stored(assembly: str) -> list[range]:
    """The bytes that each store without a mask writes, relative to the second argument."""
    found: list[range] = []
    for line in assembly.splitlines():
        match = STORE.fullmatch(line.strip())
        if match is None or match[5] or match[4] == "%rsp" or match[1].startswith(("vmaskmov", "vpmaskmov")):
            continue
        assert match[4] == "%rsi", line
        start = int(match[3] or 0)
        found.append(range(start, start + width_of(match[1], match[2])))
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", TYPES)
def test_stores_read_from_the_assembly(source: str, level: str) -> None:
    """Stores without a mask lie in the elements that are written, and overlap nowhere."""
    for result in results_of(source):
        width, lanes = byte_width(result), lanes_of(source, result)
        program = kernel(text(source, result, "2:u"))
        written: set[int] = set()
        for row, (count, step) in enumerate(rows(lanes)):
            first = (2 * row + 1) * lanes - count if step > 0 else 2 * row * lanes
            written |= set(range(first * width, (first + lanes + count) * width))
        stores = stored(LLVM.listings["asm"](program, machine(level)))
        assert stores, (source, result)
        for each in stores:
            assert set(each) <= written, (source, result, each)
            written -= set(each)
