"""Pseudo instructions (RISC-V Assembly Programmer's Manual): and their expansions."""

from __future__ import annotations

from pdojo.snitch_sim.assembler.expression import Symbols, evaluate
from pdojo.snitch_sim.assembler.source import Statement
from pdojo.snitch_sim.assembler.table import FORMATS

Plain = tuple[str, tuple[str, ...]]
"""An instruction in the table, and its operands as text."""


_TEMPLATES: dict[str, tuple[int, str]] = {
    "nop": (0, "addi zero, zero, 0"),
    "mv": (2, "addi {0}, {1}, 0"),
    "not": (2, "xori {0}, {1}, -1"),
    "neg": (2, "sub {0}, zero, {1}"),
    "seqz": (2, "sltiu {0}, {1}, 1"),
    "snez": (2, "sltu {0}, zero, {1}"),
    "sltz": (2, "slt {0}, {1}, zero"),
    "sgtz": (2, "slt {0}, zero, {1}"),
    "sgt": (3, "slt {0}, {2}, {1}"),
    "sgtu": (3, "sltu {0}, {2}, {1}"),
    "beqz": (2, "beq {0}, zero, {1}"),
    "bnez": (2, "bne {0}, zero, {1}"),
    "blez": (2, "bge zero, {0}, {1}"),
    "bgez": (2, "bge {0}, zero, {1}"),
    "bltz": (2, "blt {0}, zero, {1}"),
    "bgtz": (2, "blt zero, {0}, {1}"),
    "bgt": (3, "blt {1}, {0}, {2}"),
    "ble": (3, "bge {1}, {0}, {2}"),
    "bgtu": (3, "bltu {1}, {0}, {2}"),
    "bleu": (3, "bgeu {1}, {0}, {2}"),
    "j": (1, "jal zero, {0}"),
    "jr": (1, "jalr zero, 0({0})"),
    "ret": (0, "jalr zero, 0(ra)"),
    # Linkers replace these by a single jump if the target is near.
    "call": (1, "jal ra, {0}"),
    "tail": (1, "jal zero, {0}"),
    "csrr": (2, "csrrs {0}, {1}, zero"),
    "csrw": (2, "csrrw zero, {0}, {1}"),
    "csrs": (2, "csrrs zero, {0}, {1}"),
    "csrc": (2, "csrrc zero, {0}, {1}"),
    "csrwi": (2, "csrrwi zero, {0}, {1}"),
    "csrsi": (2, "csrrsi zero, {0}, {1}"),
    "csrci": (2, "csrrci zero, {0}, {1}"),
    "rdcycle": (1, "csrrs {0}, cycle, zero"),
    "rdinstret": (1, "csrrs {0}, instret, zero"),
    "frcsr": (1, "csrrs {0}, fcsr, zero"),
    "frrm": (1, "csrrs {0}, frm, zero"),
    "frflags": (1, "csrrs {0}, fflags, zero"),
    "fscsr": (1, "csrrw zero, fcsr, {0}"),
    "fsrm": (1, "csrrw zero, frm, {0}"),
    "fsflags": (1, "csrrw zero, fflags, {0}"),
    **{f"fmv.{f}": (2, f"fsgnj.{f} {{0}}, {{1}}, {{1}}") for f in FORMATS},
    **{f"fneg.{f}": (2, f"fsgnjn.{f} {{0}}, {{1}}, {{1}}") for f in FORMATS},
    **{f"fabs.{f}": (2, f"fsgnjx.{f} {{0}}, {{1}}, {{1}}") for f in FORMATS},
    **{f"fgt.{f}": (3, f"flt.{f} {{0}}, {{2}}, {{1}}") for f in FORMATS},
    **{f"fge.{f}": (3, f"fle.{f} {{0}}, {{2}}, {{1}}") for f in FORMATS},
}


def expand(statement: Statement, constant: Symbols) -> list[Plain]:
    """The expansion of a statement. `constant` returns the values of symbols that are already defined."""
    name, operands = statement.name, statement.operands
    if name == "li":
        _count(statement, 2)
        value = evaluate(operands[1], constant, statement.error)
        if not -(1 << 31) <= value < 1 << 32:
            raise statement.error(f"'{operands[1]}' is no number of 32 bits")
        return _load(operands[0], value)
    if name in ("la", "lla"):
        _count(statement, 2)
        symbol = operands[1]
        return [("lui", (operands[0], f"%hi({symbol})")), ("addi", (operands[0], operands[0], f"%lo({symbol})"))]
    if name in ("jal", "jalr") and len(operands) == 1:
        return [(name, ("ra", operands[0] if name == "jal" else f"0({operands[0]})"))]
    if name == "jalr" and len(operands) == 3:
        return [(name, (operands[0], f"{operands[2]}({operands[1]})"))]
    if name == "jalr" and len(operands) == 2 and "(" not in operands[1]:
        return [(name, (operands[0], f"0({operands[1]})"))]
    if name not in _TEMPLATES:
        return [(name, operands)]
    count, template = _TEMPLATES[name]
    _count(statement, count)
    plain, _, rest = template.format(*operands).partition(" ")
    return [(plain, tuple(part.strip() for part in rest.split(",")))]


def _load(register: str, value: int) -> list[Plain]:
    """The shortest code that loads a 32-bit constant."""
    value = (value + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
    low = (value + 0x800 & 0xFFF) - 0x800
    high = (value - low) >> 12 & 0xFFFFF
    if high == 0:
        return [("addi", (register, "zero", str(low)))]
    upper: Plain = ("lui", (register, str(high)))
    return [upper, ("addi", (register, register, str(low)))] if low else [upper]


def _count(statement: Statement, count: int) -> None:
    if len(statement.operands) != count:
        raise statement.error(f"'{statement.name}' takes {count} operands, not {len(statement.operands)}")
