"""Relocatable objects for x86-64 at a fixed address (ELF-64; System V ABI for AMD64, 4.4)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_SECTION = struct.Struct("<4xIQ8xQQIIQ8x")
_SYMBOL = struct.Struct("<IBxHQ8x")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS = 2, 4
_ALLOCATED = 2


@dataclass(frozen=True)
class Linked:
    """Bytes for an address, and the addresses of global symbols."""

    contents: bytes
    symbols: dict[str, int]


@dataclass(frozen=True)
class _Section:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def link(code: bytes, address: int, known: Mapping[str, int]) -> Linked:
    """The sections of an object, one after the other from `address`, a multiple of 64.

    Raises KeyError for a symbol that neither the object nor `known` has.
    """
    sections = _sections(code)
    contents = bytearray()
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        if section.flags & _ALLOCATED:
            contents += bytes(-len(contents) % max(1, section.alignment))
            places[number] = address + len(contents)
            contents += code[section.offset : section.offset + section.size]
    table = next(s for s in sections if s.kind == _SYMBOLS)
    names = code[sections[table.link].offset :]
    values: list[int] = []
    symbols: dict[str, int] = {}
    for name, binding, owner, value in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
        title = names[name : names.index(b"\0", name)].decode()
        values.append(known[title] if title and not owner else places.get(owner, 0) + value)
        if binding >> 4 and owner:
            symbols[title] = values[-1]
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            for at, info, addend in _RELOCATION.iter_unpack(code[section.offset : section.offset + section.size]):
                place = places[section.info] + at
                target = values[int(info) >> 32] + int(addend)
                match info & 0xFFFF_FFFF:
                    case 1:  # R_X86_64_64
                        struct.pack_into("<Q", contents, place - address, target)
                    case 2 | 4:  # R_X86_64_PC32, R_X86_64_PLT32
                        struct.pack_into("<i", contents, place - address, target - place)
                    case kind:
                        raise NotImplementedError(f"relocation {kind} of x86-64")
    return Linked(bytes(contents), symbols)


def _sections(code: bytes) -> list[_Section]:
    (start,), (count,) = struct.unpack_from("<Q", code, 0x28), struct.unpack_from("<H", code, 0x3C)
    return [_Section(*fields) for fields in _SECTION.iter_unpack(code[start : start + count * _SECTION.size])]
