"""Decoded instructions, and their 32 bits."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.backends.snitch.assembler.table import ENCODINGS, Encoding


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its operands as numbers, and where it was written."""

    name: str
    rd: int = 0
    rs1: int = 0
    """Also the immediate of `csrrsi` and its like."""
    rs2: int = 0
    """Also the 5-bit immediate of DMA instructions."""
    rs3: int = 0
    imm: int = 0
    """Immediate; distance of a target in bytes; control register; number of instructions of a hardware loop."""
    rm: int = 0
    """Rounding mode."""
    stagger_max: int = 0
    stagger_mask: int = 0
    line: int = 0
    text: str = ""
    """The statement as it was written."""

    @property
    def encoding(self) -> Encoding:
        """Its row of the table."""
        return ENCODINGS[self.name]

    def encode(self) -> int:
        """The instruction as 32 bits."""
        encoding = self.encoding
        word = encoding.match
        for letter in encoding.operands.split(","):
            if letter:
                word |= _field(self, letter)
        return word


def _branch(offset: int) -> int:
    o = offset & 0x1FFF
    return (o >> 12) << 31 | (o >> 5 & 0x3F) << 25 | (o >> 1 & 0xF) << 8 | (o >> 11 & 1) << 7


def _jump(offset: int) -> int:
    o = offset & 0x1FFFFF
    return (o >> 20) << 31 | (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xFF) << 12


def _field(i: Instruction, letter: str) -> int:
    match letter:
        case "d" | "D":
            return i.rd << 7
        case "s" | "S" | "Z":
            return i.rs1 << 15
        case "t" | "T" | "5" | ">":
            return (i.imm if letter == ">" else i.rs2) << 20
        case "R":
            return i.rs3 << 27
        case "o":
            return i.rs1 << 15 | (i.imm & 0xFFF) << 20
        case "q":
            return i.rs1 << 15 | (i.imm >> 5 & 0x7F) << 25 | (i.imm & 0x1F) << 7
        case "j" | "E" | "Y":
            return (i.imm & 0xFFF) << 20
        case "u":
            return (i.imm & 0xFFFFF) << 12
        case "p":
            return _branch(i.imm)
        case "a":
            return _jump(i.imm)
        case "N":
            return (i.imm - 1 & 0xFFF) << 20
        case "m" | "X":
            return (i.rm if letter == "m" else i.stagger_max) << 12
        case _:  # K
            return i.stagger_mask << 8


def decode(word: int) -> Encoding | None:
    """Which instruction these 32 bits are; None where it is none that the table knows."""
    return next((e for e in ENCODINGS.values() if word & e.mask == e.match), None)
