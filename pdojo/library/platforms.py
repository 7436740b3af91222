"""The platforms on which a shared library loads: what its ELF file needs, and the platform tag of its wheel."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pdojo.errors import UsageError

_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""`e_machine` of the ELF header, with the names of platform tags (gABI; psABI of each architecture)."""
_DYNAMIC, _VERSIONS = 6, 0x6FFFFFFE
"""Types of sections: the dynamic section, and needed versions (gABI; LSB, core specification)."""
_NEEDED, _END = 1, 0
"""Tags of the dynamic section: a needed library, the end (gABI, chapter 5)."""
_GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1")
"""Libraries of every system with glibc (PEP 599)."""
_LOADER = re.compile(r"ld-linux.*\.so\.\d+")
_MUSL = re.compile(r"libc\.musl-.*|libc\.so")
_LEAST = {"x86_64": 5, "aarch64": 17, "riscv64": 31}
"""The oldest glibc, 2.N, that platform tags know (PEP 600)."""


@dataclass(frozen=True)
class Needs:
    """The requirements of a shared library."""

    architecture: str
    """`x86_64`, `aarch64` or `riscv64`."""
    libraries: tuple[str, ...]
    versions: tuple[str, ...]
    """Versions of symbols, sorted: `GLIBC_2.34`."""

    @property
    def tag(self) -> str:
        """The platform tag of a wheel with the library (PEP 425, 600, 656)."""
        others = [name for name in self.libraries if name not in _GLIBC and not _LOADER.fullmatch(name)]
        if not self.libraries or any(not _MUSL.fullmatch(name) for name in others):
            return f"linux_{self.architecture}"
        if others:
            return f"musllinux_1_2_{self.architecture}"
        minors = [int(found[1]) for v in self.versions if (found := re.fullmatch(r"GLIBC_2\.(\d+)(\.\d+)?", v))]
        return f"manylinux_2_{max([_LEAST[self.architecture], *minors])}_{self.architecture}"


def needs(library: bytes) -> Needs:
    """The requirements of a library. Raises UsageError for bytes that are no ELF file of a known architecture."""
    if library[:6] != b"\x7fELF\x02\x01" or len(library) < 64:
        raise UsageError("the library is no 64-bit little-endian ELF file; only Linux is supported")
    (machine,) = struct.unpack_from("<H", library, 18)
    if machine not in _MACHINES:
        raise UsageError(f"the library is for machine {machine} of the ELF format, which no platform tag names")
    try:
        libraries = tuple(_text(names, at) for data, names in _sections(library, _DYNAMIC) for at in _needed(data))
        versions = {_text(names, at) for data, names in _sections(library, _VERSIONS) for at in _versions(data)}
    except (struct.error, ValueError, IndexError) as error:
        raise UsageError(f"the library is a damaged ELF file: {error}") from None
    return Needs(_MACHINES[machine], libraries, tuple(sorted(versions)))


def _sections(library: bytes, kind: int) -> Iterator[tuple[bytes, bytes]]:
    """The contents of the sections of a type, each with its table of strings (gABI, chapter 4)."""
    (offset,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    headers = [struct.unpack_from("<IIQQQQI", library, offset + k * size) for k in range(count)]
    for _, found, _, _, start, length, link in headers:
        if found == kind:
            *_, names, names_length, _ = headers[link]
            yield library[start : start + length], library[names : names + names_length]


def _needed(section: bytes) -> Iterator[int]:
    for tag, value in struct.iter_unpack("<qQ", section):
        if tag == _END:
            return
        if tag == _NEEDED:
            yield value


def _versions(section: bytes) -> Iterator[int]:
    """The places of names of needed versions: a list of libraries, each with a list of versions."""
    place = 0
    while section:
        _, count, _, first, following = struct.unpack_from("<HHIII", section, place)
        at = place + first
        for _ in range(count):
            *_, name, after = struct.unpack_from("<IHHII", section, at)
            yield name
            at += after
        if not following:
            return
        place += following


def _text(names: bytes, place: int) -> str:
    return names[place : names.index(b"\0", place)].decode()
