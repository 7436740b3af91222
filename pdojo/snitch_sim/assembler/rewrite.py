"""Text for ordinary RISC-V assemblers, with Snitch's instructions as `.insn` or `.word`."""

from __future__ import annotations

import re
from contextlib import suppress

from pdojo.errors import AssemblyError
from pdojo.snitch_sim.assembler.expression import Symbols, evaluate
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.operands import instruction
from pdojo.snitch_sim.assembler.registers import CSR
from pdojo.snitch_sim.assembler.source import Statement, statements
from pdojo.snitch_sim.assembler.table import ENCODINGS, SNITCH

_ALIASES = {f"{name}.h" for name in ("fmv", "fneg", "fabs", "fgt", "fge")}


def rewrite(text: str, source: str = "<assembly>") -> str:
    """The same program for GNU as or LLVM: instructions that they lack become `.insn` or `.word`.

    Line numbers are kept, so that messages name the same line; a comment shows the original instruction. Raises
    AssemblyError for instructions that pdojo's assembler rejects.
    """
    lines = text.splitlines()
    found: dict[int, list[Statement]] = {}
    for statement in statements(text, source):
        found.setdefault(statement.line, []).append(statement)
    constants: dict[str, int] = {}
    for line, parts in found.items():
        for part in parts:
            if part.name in (".equ", ".set") and len(part.operands) == 2:
                _define(constants, part)
        if any(_foreign(part) for part in parts):
            comment = "; ".join(_tidy(part) for part in parts if _foreign(part))
            lines[line - 1] = f"{'; '.join(_spelled(part, constants.get) for part in parts)} # {comment}"
    return "\n".join(lines) + "\n"


def _define(constants: dict[str, int], statement: Statement) -> None:
    """Record a constant; constants that depend on labels are left to the other assembler."""
    name, text = statement.operands
    with suppress(AssemblyError):
        constants[name] = evaluate(text, constants.get, statement.error)


def _foreign(statement: Statement) -> bool:
    return statement.name in SNITCH or statement.name in _ALIASES or _named_csr(statement)


def _named_csr(statement: Statement) -> bool:
    return statement.name.startswith("csr") and any(o in ("ssr", "barrier") for o in statement.operands)


def _spelled(statement: Statement, symbols: Symbols) -> str:
    labels = "".join(f"{label}: " for label in statement.labels)
    if not _foreign(statement):
        return statement.text
    if _named_csr(statement):
        operands = ", ".join(str(CSR[o]) if o in CSR else o for o in statement.operands)
        return f"{labels}{statement.name} {operands}"
    return f"{labels}{insn(plain(statement, symbols))}"


def _tidy(statement: Statement) -> str:
    return re.sub(r"\s+", " ", f"{statement.name} {', '.join(statement.operands)}").strip()


def plain(statement: Statement, symbols: Symbols = lambda _: None) -> Instruction:
    """The instruction of a statement that uses constants, but no labels. Raises AssemblyError."""
    from pdojo.snitch_sim.assembler.pseudo import expand

    ((name, operands),) = expand(statement, symbols)
    return instruction(statement, name, operands, 0, symbols)


def insn(i: Instruction) -> str:
    """An instruction as `.insn` if it has a standard format, else as `.word`."""
    operands = ENCODINGS[i.name].operands
    word = i.encode()
    if i.name in ("frep.o", "frep.i"):
        rd = 2 * i.stagger_mask + (i.name == "frep.o")
        return f".insn i 0x0b, {i.stagger_max}, x{rd}, x{i.rs1}, {(i.imm - 1 + 2048) % 4096 - 2048}"
    if i.name == "scfgwi":
        return f".insn i 0x2b, 2, x0, x{i.rs1}, {(i.imm + 2048) % 4096 - 2048}"
    if "R" in operands or "o" in operands or "q" in operands:
        return f".word {word:#010x}"
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    return f".insn r {word & 0x7F:#04x}, {word >> 12 & 7}, {word >> 25}, x{rd}, x{rs1}, x{rs2}"
