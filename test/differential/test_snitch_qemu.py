"""Scalar instructions on the simulator and on QEMU: the same bits. Our assembler and ELF files for both."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pdojo.snitch_sim.assembler import TEXT_BASE, assemble
from pdojo.snitch_sim.assembler.elf import Segment, elf
from pdojo.snitch_sim.simulator import Placement, simulate
from toolchain import require_tool

DATA = 0x8010_0000
COUNT = 400
QEMU = "qemu-riscv32"
ROUNDING = ("rne", "rtz", "rdn", "rup", "rmm")
INTEGER = "add sub sll srl sra slt sltu xor or and mul mulh mulhsu mulhu div divu rem remu".split()

FLOAT = {
    letter: [
        *(f"{name}.{letter} fa3, fa0, fa1" for name in ("fadd", "fsub", "fmul", "fdiv", "fmin", "fmax")),
        *(f"{name}.{letter} fa3, fa0, fa1" for name in ("fsgnj", "fsgnjn", "fsgnjx")),
        f"fsqrt.{letter} fa3, fa0",
        *(f"{name}.{letter} fa3, fa0, fa1, fa2" for name in ("fmadd", "fmsub", "fnmsub", "fnmadd")),
        *(f"fcvt.{letter}.{name} fa3, t1" for name in ("w", "wu")),
        f"fcvt.{'s' if letter == 'd' else 'd'}.{letter} fa3, fa0",
    ]
    for letter in "ds"
}
TO_INTEGER = {
    letter: [
        *(f"{name}.{letter} t2, fa0, fa1" for name in ("feq", "flt", "fle")),
        f"fclass.{letter} t2, fa0",
        *(f"fcvt.{name}.{letter} t2, fa0, {mode}" for name in ("w", "wu") for mode in ROUNDING),
    ]
    for letter in "ds"
}


def operands(seed: int, letter: str) -> bytes:
    """Rows of three numbers in 64 bits each: ordinary ones, special ones, random bits, cancelling sums."""
    rng = np.random.default_rng(seed)
    dtype, word, width = ("f8", "u8", 64) if letter == "d" else ("f4", "u4", 32)
    info = np.finfo(dtype)
    specials = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    specials += [2147483647.5, -2147483648.5, 4294967295.5]
    specials += [float(np.nextafter(np.array(x, dtype), np.array(0, dtype))) for x in (0.5, -0.5, 1.5, 2.5)]
    rows = rng.standard_normal((COUNT, 3)).astype(dtype)
    rows[::4] = rng.choice(np.array(specials, dtype), (len(rows[::4]), 3))
    rows[1::4] = rng.integers(0, 1 << width, (len(rows[1::4]), 3), dtype=word).view(dtype)
    rows[2::4, 2] = -rows[2::4, 0] * rows[2::4, 1]
    words = rows.view(word).astype("u8")
    return (words if letter == "d" else words | np.uint64(0xFFFFFFFF00000000)).astype("u8").tobytes()


def kernel(instructions: list[str]) -> str:
    """Each instruction on each row: operands in fa0 to fa2 and t0, t1; results in fa3 or t2, 16 bytes for each."""
    body = "\n".join(
        f" mv t2, t1\n fmv.d fa3, fa0\n {text}\n fsd fa3, 0(a1)\n sw t2, 8(a1)\n sw zero, 12(a1)\n addi a1, a1, 16"
        for text in instructions
    )
    return f"""
kernel:
 li t3, {COUNT}
1:
 fld fa0, 0(a0)
 fld fa1, 8(a0)
 fld fa2, 16(a0)
 lw t0, 0(a0)
 lw t1, 8(a0)
{body}
 addi a0, a0, 24
 addi t3, t3, -1
 bnez t3, 1b
 ret
"""


def on_qemu(text: str, table: bytes, size: int, folder: Path) -> bytes:
    """The results, as a program writes them to its standard output."""
    start = f"""
start:
 li a0, {DATA}
 li a1, {DATA + len(table)}
 call kernel
 li a0, 1
 li a1, {DATA + len(table)}
 li a2, {size}
 li a7, 64
 ecall
 li a0, 0
 li a7, 93
 ecall
"""
    program = assemble(text + start)
    words = b"".join(word.to_bytes(4, "little") for word in program.words())
    segments = [Segment(".text", TEXT_BASE, words, True), Segment(".data", DATA, table + bytes(size), False)]
    path = _program(folder, segments, program.labels["start"])
    done = subprocess.run([QEMU, path], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _program(folder: Path, segments: list[Segment], start: int) -> str:
    path = folder / "program"
    path.write_bytes(elf(segments, start, {"start": start}))
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the tests if the emulator does not run a program of ours that does nothing."""
    words = b"".join(word.to_bytes(4, "little") for word in assemble("li a0, 0\nli a7, 93\necall\n").words())
    segments = [Segment(".text", TEXT_BASE, words, True)]
    require_tool(QEMU, _program(tmp_path_factory.mktemp("attempt"), segments, TEXT_BASE))


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("kind", "letter"), [("float", "d"), ("float", "s"), ("to integer", "d"), ("to integer", "s"), ("integer", "d")]
)
def test_qemu_agrees(kind: str, letter: str, seed: int, tmp_path: Path) -> None:
    instructions = {
        "float": FLOAT[letter],
        "to integer": TO_INTEGER[letter],
        "integer": [f"{name} t2, t0, t1" for name in INTEGER],
    }[kind]
    # The memory of the core takes so many results at a time.
    for first in range(0, len(instructions), 8):
        part = instructions[first : first + 8]
        text, table = kernel(part), operands(seed, letter)
        size = 16 * COUNT * len(part)
        theirs = on_qemu(text, table, size, tmp_path)
        placement = Placement()
        source = placement.place(np.frombuffer(table, "u1"))
        out = placement.output((size,), "u1")
        simulate(assemble(text), arguments=[source.address, out.address], memory=placement.memory)
        placement.check()
        ours = out.values.tobytes()
        for at in range(0, size, 16):
            assert ours[at : at + 16] == theirs[at : at + 16], (
                part[at // 16 % len(part)],
                struct.unpack_from("<3Q", table, 24 * (at // 16 // len(part))),
                ours[at : at + 16].hex(),
                theirs[at : at + 16].hex(),
            )
