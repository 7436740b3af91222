"""All instructions: operands and encoding. RV32IMFD as in the RISC-V manual; the rest from snitch_cluster's
riscv_instr.sv.

Operands by letter: `d s t` integer rd, rs1, rs2; `D S T R` floating-point rd, rs1, rs2, rs3; `j` 12-bit immediate; `o`
and `q` offset(rs1) of loads and stores; `p` and `a` targets of branches and jumps; `u` 20 upper bits; `>` shift; `E`
control register; `Z` 5 bits in rs1; `5` 5 bits in rs2; `m` rounding mode, may be left out; `Y` stream register; `N X K`
number of instructions, period and mask of staggering of a hardware loop.
"""

from __future__ import annotations

from dataclasses import dataclass

R_MASK = 0xFE00707F
I_MASK = 0x0000707F
UNARY_MASK = 0xFFF0707F
ROUNDED = 0xFE00007F
ROUNDED_UNARY = 0xFFF0007F
FUSED = 0x0600007F


@dataclass(frozen=True, slots=True)
class Encoding:
    """The syntax and encoding of an instruction: bits in `mask` equal `match`; the other bits hold operands."""

    name: str
    operands: str
    match: int
    mask: int
    rounding: int = 7
    """Default rounding mode."""

    @property
    def snitch(self) -> bool:
        """Whether it is one of Snitch's own instructions, which ordinary assemblers lack."""
        return self.name in SNITCH


def _r(opcode: int, funct3: int, funct7: int) -> int:
    return opcode | funct3 << 12 | funct7 << 25


def _base() -> list[Encoding]:
    table = [
        Encoding("lui", "d,u", 0x37, 0x7F),
        Encoding("auipc", "d,u", 0x17, 0x7F),
        Encoding("jal", "d,a", 0x6F, 0x7F),
        Encoding("jalr", "d,o", 0x67, I_MASK),
        Encoding("fence", "", 0x0FF0000F, 0xFFFFFFFF),
        Encoding("ecall", "", 0x73, 0xFFFFFFFF),
        Encoding("ebreak", "", 0x00100073, 0xFFFFFFFF),
        Encoding("wfi", "", 0x10500073, 0xFFFFFFFF),
    ]
    for funct3, name in ((0, "beq"), (1, "bne"), (4, "blt"), (5, "bge"), (6, "bltu"), (7, "bgeu")):
        table.append(Encoding(name, "s,t,p", 0x63 | funct3 << 12, I_MASK))
    for funct3, name in ((0, "lb"), (1, "lh"), (2, "lw"), (4, "lbu"), (5, "lhu")):
        table.append(Encoding(name, "d,o", 0x03 | funct3 << 12, I_MASK))
    for funct3, name in enumerate(("sb", "sh", "sw")):
        table.append(Encoding(name, "t,q", 0x23 | funct3 << 12, I_MASK))
    for funct3, name in ((0, "addi"), (2, "slti"), (3, "sltiu"), (4, "xori"), (6, "ori"), (7, "andi")):
        table.append(Encoding(name, "d,s,j", 0x13 | funct3 << 12, I_MASK))
    for funct3, funct7, name in ((1, 0, "slli"), (5, 0, "srli"), (5, 0x20, "srai")):
        table.append(Encoding(name, "d,s,>", _r(0x13, funct3, funct7), R_MASK))
    for funct3, name in enumerate(("add", "sll", "slt", "sltu", "xor", "srl", "or", "and")):
        table.append(Encoding(name, "d,s,t", _r(0x33, funct3, 0), R_MASK))
    table += [Encoding("sub", "d,s,t", _r(0x33, 0, 0x20), R_MASK), Encoding("sra", "d,s,t", _r(0x33, 5, 0x20), R_MASK)]
    for funct3, name in enumerate(("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")):
        table.append(Encoding(name, "d,s,t", _r(0x33, funct3, 1), R_MASK))
    for funct3, name in enumerate(("csrrw", "csrrs", "csrrc"), 1):
        table.append(Encoding(name, "d,E,s", 0x73 | funct3 << 12, I_MASK))
        table.append(Encoding(f"{name}i", "d,E,Z", 0x73 | (funct3 + 4) << 12, I_MASK))
    return table


FORMATS = {"s": 0, "d": 1, "h": 2}
"""Floating-point formats as values of the field `fmt`."""


def _floats(letter: str) -> list[Encoding]:
    fmt = FORMATS[letter]
    width = {"s": 2, "d": 3, "h": 1}[letter]
    table = [
        Encoding(f"fl{'w' if letter == 's' else letter}", "D,o", 0x07 | width << 12, I_MASK),
        Encoding(f"fs{'w' if letter == 's' else letter}", "T,q", 0x27 | width << 12, I_MASK),
    ]
    for i, name in enumerate(("fmadd", "fmsub", "fnmsub", "fnmadd")):
        table.append(Encoding(f"{name}.{letter}", "D,S,T,R,m", 0x43 + 4 * i | fmt << 25, FUSED))
    for funct5, name in enumerate(("fadd", "fsub", "fmul", "fdiv")):
        table.append(Encoding(f"{name}.{letter}", "D,S,T,m", _r(0x53, 0, funct5 << 2 | fmt), ROUNDED))
    table.append(Encoding(f"fsqrt.{letter}", "D,S,m", _r(0x53, 0, 0x0B << 2 | fmt), ROUNDED_UNARY))
    for funct3, name in enumerate(("fsgnj", "fsgnjn", "fsgnjx")):
        table.append(Encoding(f"{name}.{letter}", "D,S,T", _r(0x53, funct3, 4 << 2 | fmt), R_MASK))
    for funct3, name in enumerate(("fmin", "fmax")):
        table.append(Encoding(f"{name}.{letter}", "D,S,T", _r(0x53, funct3, 5 << 2 | fmt), R_MASK))
    for funct3, name in enumerate(("fle", "flt", "feq")):
        table.append(Encoding(f"{name}.{letter}", "d,S,T", _r(0x53, funct3, 0x14 << 2 | fmt), R_MASK))
    for rs2, name in enumerate(("w", "wu")):
        down = _r(0x53, 0, 0x18 << 2 | fmt) | rs2 << 20
        up = _r(0x53, 0, 0x1A << 2 | fmt) | rs2 << 20
        table.append(Encoding(f"fcvt.{name}.{letter}", "d,S,m", down, ROUNDED_UNARY))
        table.append(Encoding(f"fcvt.{letter}.{name}", "D,s,m", up, ROUNDED_UNARY, 0 if letter == "d" else 7))
    table.append(Encoding(f"fclass.{letter}", "d,S", _r(0x53, 1, 0x1C << 2 | fmt), UNARY_MASK))
    if letter != "d":  # RV32 has no 64-bit integer registers.
        size = {"s": "w", "h": "h"}[letter]
        table.append(Encoding(f"fmv.x.{size}", "d,S", _r(0x53, 0, 0x1C << 2 | fmt), UNARY_MASK))
        table.append(Encoding(f"fmv.{size}.x", "D,s", _r(0x53, 0, 0x1E << 2 | fmt), UNARY_MASK))
    for other, source in FORMATS.items():
        if other != letter:
            widening = {"h": 0, "s": 1, "d": 2}[letter] > {"h": 0, "s": 1, "d": 2}[other]
            match = _r(0x53, 0, 0x08 << 2 | fmt) | source << 20
            table.append(Encoding(f"fcvt.{letter}.{other}", "D,S,m", match, ROUNDED_UNARY, 0 if widening else 7))
    return table


PACKED = {"s": 0, "h": 2, "b": 3}
"""funct3 of packed instructions; plus 4 if rs2 is a single number for all lanes."""

_PACKED_FUNCT7 = {
    **{"vfadd": 0x41, "vfsub": 0x42, "vfmul": 0x43, "vfdiv": 0x44, "vfmin": 0x45, "vfmax": 0x46},
    **{"vfmac": 0x48, "vfmre": 0x49, "vfsgnj": 0x4D, "vfsgnjn": 0x4E, "vfsgnjx": 0x4F},
}
_PACKED_COMPARES = {"vfeq": 0x50, "vfne": 0x51, "vflt": 0x52, "vfge": 0x53, "vfle": 0x54, "vfgt": 0x55}


def _packed() -> list[Encoding]:
    table: list[Encoding] = []
    for letter, funct3 in PACKED.items():
        for operands, functions in (("D,S,T", _PACKED_FUNCT7), ("d,S,T", _PACKED_COMPARES)):
            for name, funct7 in functions.items():
                table.append(Encoding(f"{name}.{letter}", operands, _r(0x33, funct3, funct7), R_MASK))
                table.append(Encoding(f"{name}.r.{letter}", operands, _r(0x33, funct3 + 4, funct7), R_MASK))
        table.append(Encoding(f"vfsqrt.{letter}", "D,S", _r(0x33, funct3, 0x47), UNARY_MASK))
    return [
        *table,
        Encoding("vfcpka.s.s", "D,S,T", _r(0x33, 0, 0x58), R_MASK),
        Encoding("vfcpkb.s.s", "D,S,T", _r(0x33, 4, 0x58), R_MASK),
        Encoding("vfcpka.h.s", "D,S,T", _r(0x33, 2, 0x58), R_MASK),
        Encoding("vfcpkb.h.s", "D,S,T", _r(0x33, 6, 0x58), R_MASK),
        Encoding("vfsum.s", "D,S", _r(0x33, 0, 0x47) | 0x1C << 20, UNARY_MASK),
        Encoding("vfsum.h", "D,S", _r(0x33, 2, 0x47) | 0x1E << 20, UNARY_MASK),
        Encoding("vfdotpex.s.h", "D,S,T", _r(0x33, 0, 0x4B), R_MASK),
        Encoding("vfdotpex.s.r.h", "D,S,T", _r(0x33, 4, 0x4B), R_MASK),
    ]


def _custom() -> list[Encoding]:
    """Hardware loops, streams and DMA."""
    return [
        Encoding("frep.o", "s,N,X,K", 0x8B, 0xFF),
        Encoding("frep.i", "s,N,X,K", 0x0B, 0xFF),
        Encoding("scfgwi", "s,Y", 0x202B, 0x7FFF),
        Encoding("scfgw", "s,t", 0x20AB, 0xFE007FFF),
        Encoding("scfgr", "d,t", 0x902B, 0xFE0FF07F),
        Encoding("dmsrc", "s,t", 0x0000002B, 0xFE007FFF),
        Encoding("dmdst", "s,t", 0x0200002B, 0xFE007FFF),
        Encoding("dmcpyi", "d,s,5", 0x0400002B, R_MASK),
        Encoding("dmcpy", "d,s,t", 0x0600002B, R_MASK),
        Encoding("dmstati", "d,5", 0x0800002B, 0xFE0FF07F),
        Encoding("dmstat", "d,t", 0x0A00002B, 0xFE0FF07F),
        Encoding("dmstr", "s,t", 0x0C00002B, 0xFE007FFF),
        Encoding("dmrep", "s", 0x0E00002B, 0xFFF07FFF),
    ]


_SNITCH_ENCODINGS = [*_packed(), *_custom()]
_HALF = _floats("h")
SNITCH = frozenset(e.name for e in (*_SNITCH_ENCODINGS, *_HALF)) | {"fcvt.s.h", "fcvt.d.h"}
ENCODINGS = {e.name: e for e in (*_base(), *_floats("s"), *_floats("d"), *_HALF, *_SNITCH_ENCODINGS)}
"""All instructions by name."""
