"""Assembly of a text to a program."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from pdojo.snitch_sim.assembler.expression import Symbols, evaluate
from pdojo.snitch_sim.assembler.operands import instruction
from pdojo.snitch_sim.assembler.program import TCDM_BASE, TEXT_BASE, AssembledProgram
from pdojo.snitch_sim.assembler.pseudo import expand
from pdojo.snitch_sim.assembler.source import Statement, statements

_WORDS = {
    ".byte": 1,
    **dict.fromkeys((".half", ".short", ".2byte"), 2),
    **dict.fromkeys((".word", ".long", ".4byte"), 4),
    **dict.fromkeys((".dword", ".quad", ".8byte"), 8),
}
_FLOATS = {".float": "<f", ".single": "<f", ".double": "<d", ".float16": "<e"}
_IGNORED = frozenset(
    ".globl .global .file .option .attribute .type .size .ident .local .weak .hidden .addrsig .addrsig_sym .p2alignw "
    ".cfi_startproc .cfi_endproc .cfi_offset .cfi_def_cfa_offset .cfi_def_cfa .cfi_restore .cfi_sections".split()
)
_LARGEST = 1 << 24
"""Largest data of one directive in bytes, many times the memory."""
_DATA_SECTIONS = (".data", ".rodata", ".bss", ".sdata", ".sbss", ".srodata", ".tcdm")


@dataclass
class _Assembly:
    """The result of the first pass."""

    source: str
    in_text: bool = True
    text: list[tuple[Statement, str, tuple[str, ...]]] = field(
        default_factory=list[tuple[Statement, str, tuple[str, ...]]]
    )
    data: bytearray = field(default_factory=bytearray)
    fixups: list[tuple[Statement, int, int, str]] = field(default_factory=list[tuple[Statement, int, int, str]])
    """Places in the data whose values are known later: statement, offset, bytes, expression."""
    labels: dict[str, int] = field(default_factory=dict[str, int])
    constants: dict[str, int] = field(default_factory=dict[str, int])
    local: dict[str, list[int]] = field(default_factory=lambda: defaultdict[str, list[int]](list))

    @property
    def address(self) -> int:
        return TEXT_BASE + 4 * len(self.text) if self.in_text else TCDM_BASE + len(self.data)

    def symbols(self, address: int) -> Symbols:
        """A function that gives symbols' values as seen from `address`: `1b` and `1f` are the nearest labels `1`."""

        def find(name: str) -> int | None:
            if name[:-1].isdigit() and name[-1] in "bf":
                places = self.local.get(name[:-1], [])
                at = bisect_right(places, address)
                wanted = at - 1 if name[-1] == "b" else at
                return places[wanted] if 0 <= wanted < len(places) else None
            return self.labels.get(name, self.constants.get(name))

        return find


def assemble(text: str, source: str = "<assembly>") -> AssembledProgram:
    """The program of a text in the GNU syntax of RISC-V, with Snitch's instructions. Raises AssemblyError.

    `source` is the name of the text in messages. Data sections are placed at the beginning of the TCDM.
    """
    assembly = _Assembly(source)
    for statement in statements(text, source):
        _collect(assembly, statement)
    instructions = tuple(
        instruction(statement, name, operands, TEXT_BASE + 4 * i, assembly.symbols(TEXT_BASE + 4 * i))
        for i, (statement, name, operands) in enumerate(assembly.text)
    )
    for statement, at, size, expression in assembly.fixups:
        value = evaluate(expression, assembly.symbols(TCDM_BASE + at), statement.error)
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise statement.error(f"{value} does not fit {size} bytes")
        assembly.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return AssembledProgram(instructions, assembly.labels, bytes(assembly.data), source, text)


def _collect(assembly: _Assembly, statement: Statement) -> None:
    if not assembly.in_text:
        _align_data(assembly, statement)
    for label in statement.labels:
        if label.isdigit():
            assembly.local[label].append(assembly.address)
        elif label in assembly.labels:
            raise statement.error(f"the label '{label}' exists already")
        else:
            assembly.labels[label] = assembly.address
    if not statement.name:
        return
    if statement.name.startswith("."):
        _directive(assembly, statement)
        return
    if not assembly.in_text:
        raise statement.error("an instruction in a section for data; write .text before it")
    for name, operands in expand(statement, assembly.constants.get):
        assembly.text.append((statement, name, operands))


def _align_data(assembly: _Assembly, statement: Statement) -> None:
    """Align words to their size, as programs that load them require."""
    size = _WORDS.get(statement.name) or (struct.calcsize(_FLOATS[statement.name]) if statement.name in _FLOATS else 1)
    assembly.data.extend(bytes(-len(assembly.data) % size))


def _directive(assembly: _Assembly, statement: Statement) -> None:
    name, operands = statement.name, statement.operands
    if name in _IGNORED or name.startswith(".cfi_"):
        return
    if name == ".text":
        assembly.in_text = True
    elif name in _DATA_SECTIONS:
        assembly.in_text = False
    elif name == ".section":
        _section(assembly, statement)
    elif name in (".equ", ".set"):
        if len(operands) != 2:
            raise statement.error(f"'{name}' takes a name and a value")
        value = evaluate(operands[1], assembly.symbols(assembly.address), statement.error)
        assembly.constants[operands[0]] = value
    elif name in (".align", ".p2align", ".balign"):
        _align(assembly, statement)
    else:
        _data(assembly, statement)


def _section(assembly: _Assembly, statement: Statement) -> None:
    section = statement.operands[0].strip('"') if statement.operands else ""
    if section.startswith((".note", ".comment", ".riscv.attributes", ".debug", ".llvm")):
        return
    assembly.in_text = section.startswith(".text")
    if not assembly.in_text and not section.startswith(_DATA_SECTIONS):
        raise statement.error(f"unknown section '{section}'; known: .text, {', '.join(_DATA_SECTIONS)}")


def _align(assembly: _Assembly, statement: Statement) -> None:
    given, most = _size(assembly, statement), 4096 if statement.name == ".balign" else 12
    if not 0 <= given <= most:
        raise statement.error(f"'{statement.name}' takes a number from 0 to {most}, not {given}")
    size = given if statement.name == ".balign" else 1 << given
    if assembly.in_text:
        return  # no instruction's encoding depends on its alignment
    assembly.data.extend(bytes(-len(assembly.data) % max(1, size)))


def _data(assembly: _Assembly, statement: Statement) -> None:
    name, operands = statement.name, statement.operands
    if name not in (*_WORDS, *_FLOATS, ".zero", ".space", ".skip"):
        raise statement.error(f"unknown directive '{name}'")
    if assembly.in_text:
        raise statement.error("data among instructions; write .data before it")
    if name in _WORDS:
        for operand in operands:
            assembly.fixups.append((statement, len(assembly.data), _WORDS[name], operand))
            assembly.data.extend(bytes(_WORDS[name]))
    elif name in _FLOATS:
        for operand in operands:
            try:
                assembly.data.extend(struct.pack(_FLOATS[name], float(operand)))
            except (ValueError, OverflowError):
                raise statement.error(f"'{operand}' is no number of this format") from None
    else:
        size = _size(assembly, statement)
        if not 0 <= size <= _LARGEST:
            raise statement.error(f"'{name}' takes a number of bytes from 0 to {_LARGEST}, not {size}")
        assembly.data.extend(bytes(size))


def _size(assembly: _Assembly, statement: Statement) -> int:
    """The value of the first operand, which must be defined already."""
    if not statement.operands:
        raise statement.error(f"'{statement.name}' takes a number")
    return evaluate(statement.operands[0], assembly.symbols(assembly.address), statement.error)
