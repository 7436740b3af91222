"""The assembler: syntax, encodings against the table of facts and ordinary assemblers, errors, ELF files."""

from __future__ import annotations

import random
import re
import struct
import sys
from pathlib import Path

import pytest

from pdojo.errors import AssemblyError, MeasurementError, UsageError
from pdojo.snitch_sim.assembler import TCDM_BASE, TEXT_BASE, assemble, rewrite
from pdojo.snitch_sim.assembler.build import build
from pdojo.snitch_sim.assembler.external import run_external
from pdojo.snitch_sim.assembler.instruction import Instruction, decode
from pdojo.snitch_sim.assembler.registers import ABI_FLOAT, ABI_INTEGER
from pdojo.snitch_sim.assembler.table import ENCODINGS, SNITCH
from pdojo.snitch_sim.assembler.toolchain import object_file


def word(text: str) -> int:
    (only,) = assemble(f"main: {text}").words()
    return only


# mask, match as measured and read from the RTL
FACTS = {
    "frep.o": (0x000000FF, 0x8B),
    "scfgwi": (0x00007FFF, 0x202B),
    "scfgw": (0xFE007FFF, 0x20AB),
    "scfgr": (0xFE0FF07F, 0x902B),
    "dmsrc": (0xFE007FFF, 0x2B),
    "dmdst": (0xFE007FFF, 0x0200002B),
    "dmstr": (0xFE007FFF, 0x0C00002B),
    "dmcpyi": (0xFE00707F, 0x0400002B),
    "dmcpy": (0xFE00707F, 0x0600002B),
    "dmstati": (0xFE0FF07F, 0x0800002B),
    "dmstat": (0xFE0FF07F, 0x0A00002B),
    "dmrep": (0xFFF07FFF, 0x0E00002B),
    **{
        f"vf{name}.{letter}": (0xFE00707F, 0x33 | funct3 << 12 | funct7 << 25)
        for name, funct7 in {
            **{"add": 0x41, "sub": 0x42, "mul": 0x43, "div": 0x44, "min": 0x45, "max": 0x46, "mac": 0x48, "mre": 0x49},
            **{"sgnj": 0x4D, "sgnjn": 0x4E, "sgnjx": 0x4F},
            **{"eq": 0x50, "ne": 0x51, "lt": 0x52, "ge": 0x53, "le": 0x54, "gt": 0x55},
        }.items()
        for letter, funct3 in {"s": 0, "h": 2, "b": 3, "r.s": 4, "r.h": 6, "r.b": 7}.items()
    },
    "vfsqrt.s": (0xFFF0707F, 0x33 | 0x47 << 25),
    "vfcpka.s.s": (0xFE00707F, 0x33 | 0x58 << 25),
    "vfcpkb.s.s": (0xFE00707F, 0x33 | 4 << 12 | 0x58 << 25),
    "vfsum.s": (0xFFF0707F, 0x33 | 0x47 << 25 | 0x1C << 20),
    "vfsum.h": (0xFFF0707F, 0x33 | 0x47 << 25 | 0x1E << 20 | 2 << 12),
    "vfdotpex.s.h": (0xFE00707F, 0x33 | 0x4B << 25),
}


@pytest.mark.parametrize("name", FACTS)
def test_encodings_are_those_of_the_hardware(name: str) -> None:
    encoding = ENCODINGS[name]
    assert (encoding.mask, encoding.match) == FACTS[name]
    rng = random.Random(name)
    for _ in range(20):
        encoded = assemble(f"main: {written(name, rng)}").words()[0]
        assert encoded & FACTS[name][0] == FACTS[name][1]


def test_fields_of_custom_instructions() -> None:
    """`.insn i 0x0b,smax,x(2*smask+1),rs1,n-1` and the like."""
    assert word("frep.o t2, 4, 0, 0") == 3 << 20 | 7 << 15 | 0x8B
    assert word("frep.o t0, 32, 5, 9") == 31 << 20 | 5 << 15 | 5 << 12 | (2 * 9 + 1) << 7 | 0x0B
    assert word("scfgwi t0, 64") == 64 << 20 | 5 << 15 | 0x202B
    assert word("scfgwi t0, 31 + 896") == 927 << 20 | 5 << 15 | 0x202B
    assert word("scfgw t0, t1") == 6 << 20 | 5 << 15 | 0x20AB
    assert word("csrrsi zero, 1984, 1") == word("csrsi ssr, 1") == 0x7C0 << 20 | 1 << 15 | 6 << 12 | 0x73
    assert word("dmcpyi a2, a0, 3") == 3 << 20 | 10 << 15 | 12 << 7 | 0x0400002B


def test_known_words_of_the_base() -> None:
    known = {
        "addi a0, a0, -1": 0xFFF50513,
        "lui t0, 0xfffff": 0xFFFFF2B7,
        "sw a1, -4(sp)": 0xFEB12E23,
        "srai a0, a1, 31": 0x41F5D513,
        "fmadd.d ft2, fa0, ft0, ft1": 0x0A057143 | 7 << 12,
        "fcvt.w.d a0, fa0, rtz": 0xC2051553,
        "fld fa0, 8(a0)": 0x00853507,
        "fsd fa1, 16(a0)": 0x00B53827,
        "fmv.x.w t0, fa0": 0xE00502D3,
        "ret": 0x00008067,
        "mul a0, a1, a2": 0x02C58533,
        "csrr a0, mcycle": 0xB0002573,
    }
    assert {text: hex(word(text)) for text in known} == {text: hex(value) for text, value in known.items()}


def written(name: str, rng: random.Random) -> str:
    """A random instruction."""
    values = {
        **dict.fromkeys("dst", lambda: rng.choice(ABI_INTEGER)),
        **dict.fromkeys("DSTR", lambda: rng.choice(ABI_FLOAT)),
        "j": lambda: str(rng.randint(-2048, 2047)),
        **dict.fromkeys("oq", lambda: f"{rng.randint(-2048, 2047)}({rng.choice(ABI_INTEGER)})"),
        "u": lambda: str(rng.randrange(1 << 20)),
        **dict.fromkeys((">", "Z", "5"), lambda: str(rng.randrange(32))),
        "E": lambda: str(rng.choice([0x7C0, 0xB00, 1, 2, 3])),
        "m": lambda: rng.choice(["rne", "rtz", "rdn", "rup", "rmm", "dyn"]),
        "Y": lambda: str(rng.randrange(4096)),
        "N": lambda: str(rng.randint(1, 32)),
        "X": lambda: str(rng.randrange(8)),
        "K": lambda: str(rng.randrange(16)),
        "p": lambda: str(4 * rng.randint(-1000, 1000)),
        "a": lambda: str(4 * rng.randint(-10000, 10000)),
    }
    letters = [letter for letter in ENCODINGS[name].operands.split(",") if letter]
    if letters and letters[-1] == "m" and rng.random() < 0.5:
        letters.pop()
    return f"{name} {', '.join(values[letter]() for letter in letters)}".strip()


def test_no_two_instructions_share_words() -> None:
    rng = random.Random(0)
    # frep.i is a bit of frep.o, and nothing else may overlap.
    for name in ENCODINGS:
        for _ in range(5):
            found = decode(word(written(name, rng)))
            assert found is not None
            assert found.name == name


def section(path: Path, wanted: str) -> bytes:
    """A section of an object file."""
    data = path.read_bytes()
    at, size, count, names = (*struct.unpack_from("<I", data, 32), *struct.unpack_from("<3H", data, 46))
    headers = [struct.unpack_from("<10I", data, at + k * size) for k in range(count)]
    texts = headers[names]
    for header in headers:
        start = texts[4] + header[0]
        if data[start : data.index(b"\0", start)] == wanted.encode():
            return data[header[4] : header[4] + header[5]]
    raise AssertionError(wanted)


@pytest.mark.parametrize("which", ["GNU", "zig"])
def test_ordinary_assemblers_agree(which: str, tmp_path: Path) -> None:
    """The rewritten text gives the same bytes."""
    try:
        object_file("nop\n", tmp_path / "attempt.o", which)
    except AssemblyError as error:
        pytest.skip(str(error))
    rng = random.Random(1)
    names = [
        n for n in ENCODINGS if n not in ("jal", "wfi") and ENCODINGS[n].operands.split(",")[-1:] not in (["p"], ["a"])
    ]
    lines = [written(name, rng) for name in names for _ in range(4)]
    # LLVM and GNU refuse rounding modes where nothing is rounded; the encoding is the same.
    lines = [line for line in lines if not re.match(r"fcvt\.d\.(wu?|s|h)\b.*\b(?:rne|rtz|rdn|rup|rmm|dyn)$", line)]
    lines += [
        "1: li t0, 0x12345678",
        "mv a0, a1",
        "beqz a0, 1b",
        "j 1b",
        "fneg.d fa0, fa1",
        "not t0, t1",
        "bgt a0, a1, 1b",
    ]
    text = ".option norelax\nmain:\n" + "\n".join(lines) + "\n"
    path = tmp_path / "program.o"
    object_file(rewrite(text), path, which)
    ours = b"".join(w.to_bytes(4, "little") for w in assemble(text).words())
    theirs = section(path, ".text")
    for k in range(0, max(len(ours), len(theirs)), 4):
        assert ours[k : k + 4] == theirs[k : k + 4], assemble(text).instructions[k // 4].text


def test_rewriting_keeps_lines_and_what_is_known() -> None:
    text = ".text\nmain: # begin\n  addi a0, a0, 1 // one\nloop: frep.o t0, 2, 0, 0 # loop\n"
    text += " vfadd.s fa0, fa1, fa2; nop\n ret\n"
    assert rewrite(text).splitlines() == [
        ".text",
        "main: # begin",
        "  addi a0, a0, 1 // one",
        "loop: .insn i 0x0b, 0, x1, x5, 1 # frep.o t0, 2, 0, 0",
        ".insn r 0x33, 0, 65, x10, x11, x12; nop # vfadd.s fa0, fa1, fa2",
        " ret",
    ]
    for name in sorted(SNITCH):
        line = written(name, random.Random(name))
        ours = assemble(f"main: {line}").words()
        again = rewrite(f"main: {line}").split("#")[0].replace("main:", "").split()
        assert again[0] in (".insn", ".word"), line
        if again[0] == ".word":
            assert int(again[1], 0) == ours[0]


def test_what_xdsl_prints() -> None:
    program = assemble("""
.text
.globl kernel
.p2align 2
    # regalloc
kernel:
    li t0, 8                                     # offset
    scfgwi t0, 192                               # dm 0 dim 0 stride
    csrrsi zero, 1984, 1                         # SSR enable
    frep.o t2, 4, 0, 0
    fmv.d ft2, ft0
    vfcpka.s.s ft3, ft4, ft4
    csrrci zero, 1984, 1
    ret
""")
    assert [i.name for i in program.instructions] == (
        "addi scfgwi csrrsi frep.o fsgnj.d vfcpka.s.s csrrci jalr".split()
    )
    assert program.functions == ("kernel",)


def test_constants() -> None:
    for value in (
        0,
        1,
        -1,
        2047,
        2048,
        -2048,
        -2049,
        0x7FFFFFFF,
        -0x80000000,
        0xFFFFFFFF,
        0x12345FFF,
        4096,
        0xFFFFF800,
    ):
        program = assemble(f"main: li a0, {value}")
        register = 0
        for i in program.instructions:
            register = (i.imm << 12) if i.name == "lui" else register + i.imm
        assert register & 0xFFFFFFFF == value & 0xFFFFFFFF
        assert len(program.instructions) <= 2


def test_data() -> None:
    program = assemble("""
main: lui a1, %hi(table)
 addi a1, a1, %lo(table)
 la a2, table + 8
 .data
first: .byte 1
table: .double 1.5, -2
 .word main, table+4, -1
 .align 3
end: .zero 4
 .half 0x1234
""")
    assert program.data == struct.pack("<B7x2d3I4x4xH", 1, 1.5, -2.0, TEXT_BASE, TCDM_BASE + 12, 0xFFFFFFFF, 0x1234)
    assert program.labels["end"] == TCDM_BASE + 40
    assert program.labels["table"] == TCDM_BASE + 8


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("main:\n addi a0, a0, 4096", 2, "immediate 4096 is not between -2048 and 2047"),
        ("main:\n\n fadd.q fa0, fa0, fa0", 3, "unknown instruction 'fadd.q'; did you mean"),
        ("addi a0, q0, 1", 1, "'q0' is no integer register"),
        ("fadd.d fa0, a0, fa1", 1, "'a0' is no floating-point register"),
        ("add a0, a0", 1, "'add' takes 3 operands, not 2"),
        ("mv a0", 1, "'mv' takes 2 operands, not 1"),
        ("j nowhere", 1, "there is no label 'nowhere'"),
        ("x: nop\nx: nop", 2, "the label 'x' exists already"),
        ("lw a0, a1", 1, "'a1' is no offset(register)"),
        ("frep.o t0, 0, 0, 0", 1, "number of instructions 0 is not between 1 and 4096"),
        ("frep.o t0, 2, 8, 0", 1, "period of staggering 8 is not between 0 and 7"),
        (".word 1", 1, "data among instructions"),
        (".data\nnop", 2, "an instruction in a section for data"),
        (".frobnicate 1", 1, "unknown directive '.frobnicate'"),
        (".section .strange", 1, "unknown section '.strange'"),
        ("li a0, 1.5", 1, "'1.5' is no number, symbol or expression of these"),
        ("li a0, 1 << 32", 1, "'1 << 32' is no number of 32 bits"),
        ("li a0, 1 <<", 1, "a number or symbol is missing before the end in '1 <<'"),
        ("li a0, 1 | | 2", 1, "a number or symbol is missing before '|' in '1 | | 2'"),
        ("li a0, 1 2", 1, "an operator is missing before '2' in '1 2'"),
        ("li a0, (1 + 2", 1, "'(1 + 2' lacks a ')'"),
        ("li a0, 1 + 2)", 1, "'1 + 2)' has a ')' without '('"),
        ("li a0, 1 ** 2", 1, "a number or symbol is missing before '*'"),
        ("li a0, 1 && 2", 1, "a number or symbol is missing before '&'"),
        ("li a0, 1 < 2", 1, "'1 < 2' is no number, symbol or expression of these"),
        ("li a0, !1", 1, "'!1' is no number, symbol or expression of these"),
        ("li a0, 4 / (2 - 2)", 1, "'4 / (2 - 2)' divides by zero"),
        ("li a0, 4 % 0", 1, "'4 % 0' divides by zero"),
        ("li a0, 1 << 64", 1, "'1 << 64' shifts by 64 bits, not by 0 to 63"),
        ("li a0, 1 << -1", 1, "'1 << -1' shifts by -1 bits"),
        ("li a0, -8 >> 1", 1, "'-8 >> 1' shifts the negative number -8 to the right"),
        ("li a0, 010", 1, "'010' is octal for other assemblers; write it without the 0"),
        ("li a0, 1 << 63 << 63", 1, "'1 << 63 << 63' does not fit 64 bits"),
        ("li a0, " + "9" * 300, 1, "a number of 300 digits does not fit 64 bits"),
        ("li a0, " + "(" * 5000 + "1" + ")" * 5000, 1, "'((((((((("),
        ("li a0, " + "-" * 5000 + "1", 1, "'---------"),
        ("li a0, %hi 3", 1, "'%hi' stands before parentheses"),
        ("li a0, label", 1, "there is no label 'label'"),
        (".data\n.align 13", 2, "'.align' takes a number from 0 to 12, not 13"),
        (".data\n.zero -1", 2, "'.zero' takes a number of bytes from 0 to 16777216, not -1"),
        ("fadd.d fa0, fa0, fa0, up", 1, "'up' is no rounding mode"),
        (".data\n.byte 300", 2, "300 does not fit 1 bytes"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(AssemblyError) as raised:
        assemble(text, "k.s")
    assert str(raised.value).startswith(f"k.s:{line}:1: error: {message}")
    # Messages leave out the middle of long lines.
    assert text.splitlines()[line - 1].strip()[:1000] in str(raised.value)


KERNEL = "kernel:\n fld fa0, 0(a0)\n fadd.d fa0, fa0, fa0\n fsd fa0, 0(a0)\n ret\n"


def test_programs_that_measure_themselves(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    image, expected = struct.pack("<d", 1.5), struct.pack("<d", 3.0)
    build(assemble(KERNEL, "k.s"), "", [TCDM_BASE], image, expected, path, memory_bytes=128 << 10)
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x01\x01"
    assert struct.unpack_from("<H", data, 18) == (243,)
    (entry,) = struct.unpack_from("<I", data, 24)
    text = section(path, ".text")
    words = struct.unpack(f"<{len(text) // 4}I", text)
    assert words[(entry - TEXT_BASE) // 4] == Instruction("csrrs", rd=5, imm=0xF14).encode()
    assert section(path, ".data").endswith(image + expected)
    names = section(path, ".strtab").split(b"\0")
    assert {b"tohost", b"fromhost", b"pdojo_cycles", b"kernel", b"_start"} <= set(names)


def test_external_simulators(tmp_path: Path) -> None:
    """Whatever takes the file as its last argument and prints `cycles: N`."""
    script = tmp_path / "sim.py"
    path = tmp_path / "k.elf"
    path.write_bytes(b"")
    script.write_text("import sys\nprint('boot')\nprint('cycles: 42')\nprint('differences: 0', sys.argv[1])\n")
    assert run_external(f"{sys.executable} {script}", path) == 42
    script.write_text("print('cycles: 42')\nprint('differences: 3')\n")
    with pytest.raises(MeasurementError, match="3 words of the memory differ"):
        run_external(f"{sys.executable} {script}", path)
    script.write_text("print('done')\n")
    with pytest.raises(MeasurementError, match="printed no line 'cycles: N'"):
        run_external(f"{sys.executable} {script}", path)
    with pytest.raises(UsageError, match="cannot start"):
        run_external("/nowhere/simulator", path)
