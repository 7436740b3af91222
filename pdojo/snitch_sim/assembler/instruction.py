"""Decoded instructions, and their encodings in 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdojo.snitch_sim.assembler.table import ENCODINGS, Encoding


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with numeric operands and its position in the source."""

    name: str
    rd: int = 0
    rs1: int = 0
    """First source register; also the immediate of `csrrsi` and similar instructions."""
    rs2: int = 0
    """Second source register; also the 5-bit immediate of DMA instructions."""
    rs3: int = 0
    imm: int = 0
    """An immediate, a target's distance in bytes, a control register, or a hardware loop's number of instructions."""
    rm: int = 0
    """Rounding mode."""
    stagger_max: int = 0
    stagger_mask: int = 0
    line: int = 0
    text: str = ""
    """The statement in the source."""

    @property
    def encoding(self) -> Encoding:
        """The row in the table of encodings."""
        return ENCODINGS[self.name]

    def encode(self) -> int:
        """The encoding in 32 bits."""
        encoding = self.encoding
        word = encoding.match
        for letter in encoding.operands.split(","):
            if letter:
                word |= _FIELDS[letter](self)
        return word


def _branch(offset: int) -> int:
    o = offset & 0x1FFF
    return (o >> 12) << 31 | (o >> 5 & 0x3F) << 25 | (o >> 1 & 0xF) << 8 | (o >> 11 & 1) << 7


def _jump(offset: int) -> int:
    o = offset & 0x1FFFFF
    return (o >> 20) << 31 | (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xFF) << 12


_FIELDS: dict[str, Callable[[Instruction], int]] = {
    **dict.fromkeys("dD", lambda i: i.rd << 7),
    **dict.fromkeys("sSZ", lambda i: i.rs1 << 15),
    **dict.fromkeys("tT5", lambda i: i.rs2 << 20),
    "R": lambda i: i.rs3 << 27,
    "o": lambda i: i.rs1 << 15 | (i.imm & 0xFFF) << 20,
    "q": lambda i: i.rs1 << 15 | (i.imm >> 5 & 0x7F) << 25 | (i.imm & 0x1F) << 7,
    **dict.fromkeys("jEY>", lambda i: (i.imm & 0xFFF) << 20),
    "u": lambda i: (i.imm & 0xFFFFF) << 12,
    "p": lambda i: _branch(i.imm),
    "a": lambda i: _jump(i.imm),
    "N": lambda i: (i.imm - 1 & 0xFFF) << 20,
    "m": lambda i: i.rm << 12,
    "X": lambda i: i.stagger_max << 12,
    "K": lambda i: i.stagger_mask << 8,
}
"""The bits of each kind of operand."""


def decode(word: int) -> Encoding | None:
    """The encoding that a word of 32 bits matches; None if the table has none."""
    return next((e for e in ENCODINGS.values() if word & e.mask == e.match), None)
