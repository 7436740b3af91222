"""The memory of the emulated computer: pages with their contents, absent pages between them, page tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from differential.bare.rom import FAULT_STACK_TOP, MEMORY, RECORDS, ROM, STACK_TOP, TABLES

PAGE = 4096
PATTERN = b"\xa5"
"""What fills outputs, workspace, and the rests of pages."""
WHOLE = 0x4000_0000
"""Virtual address of all that was placed, read-only, for the emulator's debugger."""
_STACK, _FAULT_STACK = 0x20_0000, 0x10_0000
"""Physical addresses of stacks."""
_STACK_BYTES = 4 << 20
_PRESENT, _WRITABLE = 1, 2


@dataclass(frozen=True)
class Placed:
    """Bytes in pages of their own."""

    name: str
    first: int
    """The virtual address."""
    offset: int
    """The place in the image."""
    size: int

    def distance(self, address: int) -> int:
        """Bytes to an address from the nearest byte; 0 inside."""
        return min(0, address - self.first) or max(0, address - self.first - self.size + 1)

    def where(self, address: int) -> str:
        """An address in words."""
        if (away := self.distance(address)) != 0:
            return f"{abs(away)} bytes {'behind' if away > 0 else 'before'} {self.name}"
        return f"byte {address - self.first} of {self.name}"

    def contents(self, image: bytes) -> bytes:
        """The bytes in an image of the memory."""
        return image[self.offset : self.offset + self.size]

    def damage(self, image: bytes) -> str | None:
        """The side on which the rests of the pages have changed; None if they are as they were."""
        after = self.offset + self.size
        if image[self.offset - self.offset % PAGE : self.offset].strip(PATTERN):
            return f"memory before {self.name} was written"
        if image[after : after + -after % PAGE].strip(PATTERN):
            return f"memory behind {self.name} was written"
        return None


@dataclass
class Memory:
    """The contents, and the virtual addresses."""

    image: bytearray = field(default_factory=lambda: bytearray(PAGE))
    """What lies at the physical address `TABLES`; first the root of the page tables."""
    pages: dict[int, int] = field(default_factory=lambda: {ROM // PAGE: ROM | _PRESENT | _WRITABLE})
    """Entries of page tables, by virtual page."""
    here: int = RECORDS
    """The virtual address of the next page."""

    def place(self, name: str, contents: bytes, *, writable: bool, start: int = 0) -> Placed:
        """Put bytes into pages of their own, `start` bytes behind the beginning, before an absent page."""
        offset = len(self.image)
        placed = Placed(name, self.here + start, offset + start, len(contents))
        self.image += PATTERN * start + contents
        self.image += PATTERN * (-len(self.image) % PAGE)
        pages = (len(self.image) - offset) // PAGE
        self._map(self.here, TABLES + offset, pages, _PRESENT | _WRITABLE * writable)
        self.here += (pages + 1) * PAGE
        return placed

    def with_tables(self) -> bytes:
        """The image, with page tables for it and for the stacks."""
        self._map(STACK_TOP - _STACK_BYTES, _STACK, _STACK_BYTES // PAGE, _PRESENT | _WRITABLE)
        self._map(FAULT_STACK_TOP - PAGE, _FAULT_STACK, 1, _PRESENT | _WRITABLE)
        self._map(WHOLE, TABLES, len(self.image) // PAGE, _PRESENT)
        memory, entries = self.image.copy(), self.pages
        for _ in range(3):
            tables, entries = _tables(entries.items()), {}
            for number, table in tables.items():
                entries[number] = TABLES + len(memory) | _PRESENT | _WRITABLE
                memory += table.tobytes()
        memory[:PAGE] = _tables(entries.items())[0].tobytes()
        assert TABLES + len(memory) <= MEMORY, "too much for the emulated memory"
        return bytes(memory)

    def _map(self, virtual: int, physical: int, pages: int, flags: int) -> None:
        for number in range(pages):
            self.pages[virtual // PAGE + number] = physical + number * PAGE | flags


def _tables(entries: Iterable[tuple[int, int]]) -> dict[int, NDArray[np.uint64]]:
    """The page tables of one level with these entries, by their own number in the next level."""
    tables: dict[int, NDArray[np.uint64]] = {}
    for number, entry in entries:
        tables.setdefault(number >> 9, np.zeros(512, "<u8"))[number & 511] = entry
    return tables
