"""Constant expressions of the assembler: values, and the same as GNU as."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from pdojo.snitch_sim.assembler import assemble, rewrite
from pdojo.snitch_sim.assembler.expression import number
from toolchain import tool_fault

ASSEMBLERS = ("riscv64-unknown-elf-as", "riscv64-linux-gnu-as")

EXPRESSIONS = {
    "1 | 2": 3,
    "1 << 5": 32,
    "0xff & 0x3c": 0x3C,
    "6 * 7": 42,
    "256 >> 4": 16,
    "5 ^ 3": 6,
    "~5 & 0xff": 0xFA,
    "-(3 + 4)": -7,
    "-3 * -2": 6,
    "--3": 3,
    "17 / 5": 3,
    "-17 / 5": -3,
    "-17 % 5": -2,
    "(1 + 2) * 4": 12,
    "2 + 3 * 4": 14,
    "8 - 3 - 2": 3,
    "1 + 2 | 4": 7,
    "1 << 2 + 1": 5,
    "6 | 1 << 3": 14,
    "0 | 1 << 5": 32,
    "LANE | BOUND << 5": 2 | 7 << 5,
    "0b101 + 0x10": 21,
}
"""Expressions and their values. The last operators to be applied are + and -, as in GNU as."""


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_constant_expressions(text: str) -> None:
    """Wherever a number may stand."""
    value = EXPRESSIONS[text]
    head = ".equ LANE, 1 + 1\n.set BOUND, LANE + 5\n"
    body = f"li a0, {text}\naddi a0, a0, {text}\nlw a0, {text}(a0)\nscfgwi a1, ({text}) & 0xfff\n"
    program = assemble(f"{head}main:\n{body}.data\n.word {text}\n.zero ({text}) & 7\n.equ N, {text}\n.word N\n")
    assert [i.imm for i in program.instructions] == [value, value, value, value & 0xFFF]
    size = -(-(value & 7) // 4) * 4
    assert program.data == struct.pack("<i", value) + bytes(size) + struct.pack("<i", value)
    foreign = value & 0xFFF
    assert f".insn i 0x2b, 2, x0, x11, {(foreign + 2048) % 4096 - 2048} #" in rewrite(f"{head}{body}")


def test_expressions_of_labels() -> None:
    program = assemble("main: nop\nend: li a0, 3\n.data\nx: .word (end - main) * 2 | 1, %lo(x + 4) << 1\n")
    assert program.data == struct.pack("<2i", 9, 8)


def test_expressions_are_those_of_gnu_as(tmp_path: Path) -> None:
    """Two hundred at random: the same values, or refused here (shifts and divisions that make no sense)."""
    faults = {name: tool_fault(name, "/dev/null", "-o", "/dev/null") for name in ASSEMBLERS}
    assembler = next((name for name, fault in faults.items() if fault is None), None)
    if assembler is None:
        pytest.skip("; ".join(map(str, faults.values())))
    rng = random.Random(0)

    def term(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            return rng.choice([str(rng.randint(0, 40)), hex(rng.randint(0, 255))])
        if kind < 0.45:
            return f"{rng.choice('-~')}{term(depth - 1)}"
        if kind < 0.6:
            return f"({term(depth - 1)})"
        operator = rng.choice(["+", "-", "*", "/", "%", "<<", ">>", "|", "&", "^"])
        return f"{term(depth - 1)} {operator} {term(depth - 1)}"

    known: dict[str, int] = {}
    while len(known) < 200:
        text = term(4)
        value = number(text)
        if value is not None and -(1 << 63) <= value < 1 << 63:
            known[text] = value
    source, output = tmp_path / "x.s", tmp_path / "x.o"
    source.write_text(".data\n" + "".join(f".quad {text}\n" for text in known))
    subprocess.run([assembler, str(source), "-o", str(output)], check=True)
    data = output.read_bytes()
    wanted = struct.pack(f"<{len(known)}q", *known.values())
    assert wanted in data
