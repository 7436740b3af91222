"""ELF files for RV32: two segments and a table of symbols (Tool Interface Standard, ELF 1.2; RISC-V ELF psABI)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_MACHINE = 243
_FLOAT_ABI_DOUBLE = 4
_HEADER, _PROGRAM, _SECTION, _SYMBOL = 52, 32, 40, 16
_PAGE = 0x1000


@dataclass(frozen=True)
class Segment:
    """Bytes and their load address."""

    name: str
    address: int
    contents: bytes
    executable: bool


def elf(segments: list[Segment], entry: int, symbols: Mapping[str, int]) -> bytes:
    """An executable file."""
    body = bytearray(_HEADER + _PROGRAM * len(segments))
    program = b""
    sections = [bytes(_SECTION)]
    names = bytearray(b"\0")

    def name(text: str) -> int:
        at = len(names)
        names.extend(text.encode() + b"\0")
        return at

    for segment in segments:
        body.extend(bytes((segment.address - len(body)) % _PAGE))
        at, size = len(body), len(segment.contents)
        body.extend(segment.contents)
        flags = 5 if segment.executable else 6
        program += struct.pack("<8I", 1, at, segment.address, segment.address, size, size, flags, _PAGE)
        kind = 2 | (4 if segment.executable else 1)
        sections.append(struct.pack("<10I", name(segment.name), 1, kind, segment.address, at, size, 0, 0, 4, 0))
    strings, table = _symbols(symbols, segments)
    body.extend(bytes(-len(body) % 4))
    link = len(sections) + 1
    sections.append(struct.pack("<10I", name(".symtab"), 2, 0, 0, len(body), len(table), link, 1, 4, _SYMBOL))
    body.extend(table)
    sections.append(struct.pack("<10I", name(".strtab"), 3, 0, 0, len(body), len(strings), 0, 0, 1, 0))
    body.extend(strings)
    own = name(".shstrtab")
    sections.append(struct.pack("<10I", own, 3, 0, 0, len(body), len(names), 0, 0, 1, 0))
    body.extend(names)
    body.extend(bytes(-len(body) % 4))
    counts = (_HEADER, _PROGRAM, len(segments), _SECTION, len(sections), len(sections) - 1)
    identity = b"\x7fELF\x01\x01\x01" + bytes(9)
    fields = (2, _MACHINE, 1, entry, _HEADER, len(body), _FLOAT_ABI_DOUBLE, *counts)
    body[:_HEADER] = identity + struct.pack("<2H5I6H", *fields)
    body[_HEADER : _HEADER + len(program)] = program
    return bytes(body) + b"".join(sections)


def _symbols(symbols: Mapping[str, int], segments: list[Segment]) -> tuple[bytes, bytes]:
    strings, table = bytearray(b"\0"), bytearray(_SYMBOL)
    for text, address in symbols.items():
        home = next(
            (k for k, s in enumerate(segments, 1) if s.address <= address <= s.address + len(s.contents)), 0xFFF1
        )
        executable = home <= len(segments) and segments[home - 1].executable
        info = 1 << 4 | (2 if executable else 1)
        table.extend(struct.pack("<3I2BH", len(strings), address, 0, info, 0, home))
        strings.extend(text.encode() + b"\0")
    return bytes(strings), bytes(table)
