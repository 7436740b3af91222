"""Constants of a function: numbers, computed once before the nest that uses them or loaded, and entries of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan

import numpy as np

from pdojo.backends.snitch.code import CONSTANTS, ZERO, Register, SnitchCode
from pdojo.dialect.functions import byte_width
from pdojo.dialect.semantics.rounding import round_float64, to_interface
from pdojo.dialect.table import Table

_WORD = 0xFFFFFFFF
SUFFIX = {"f64": "d", "f32": "s", "f16": "h", "bf16": "s"}
"""The letter of a type in instructions; bf16 is computed in f32."""


def bits_of(value: float, dtype: str) -> int:
    """The bits in memory of a number, rounded to the type."""
    stored = to_interface(round_float64(np.asarray(float(value)), dtype), dtype)
    return int.from_bytes(np.ascontiguousarray(stored).tobytes(), "little")


@dataclass
class Numbers:
    """The constants of a function."""

    code: SnitchCode
    label: str
    """The label of the table."""
    table: list[int] = field(default_factory=list[int])
    """The 64-bit words of the table."""
    ordered: set[Register] = field(default_factory=set[Register])
    """Registers with constants that are not NaN."""
    indices: dict[Table, str] = field(default_factory=dict[Table, str])
    """The labels of the tables in which indices are looked up."""
    _offsets: dict[Register, int] = field(default_factory=dict[Register, int])
    """By register with a constant of the table, its place there."""

    def real(self, value: float, dtype: str) -> Register:
        """A register with a number; for bf16 an f32 of the same value."""
        bits = bits_of(value, dtype)
        if dtype == "bf16":
            bits, dtype = bits << 16, "f32"
        made = self.from_bits(bits, dtype)
        if not isnan(value):
            self.ordered.add(made)
        return made

    def from_bits(self, bits: int, dtype: str) -> Register:
        """A register with the number that has these bits."""
        code = self.code
        if dtype == "f64":
            return code.keep(("f64", 0), lambda: code.f("fcvt.d.w", ZERO)) if bits == 0 else self.word(bits)
        move = "fmv.w.x" if dtype == "f32" else "fmv.h.x"
        return code.keep((dtype, bits), lambda: code.f(move, code.li(bits)))

    def _base(self) -> Register:
        """The register with the address of the table."""
        return self._address(self.label, everywhere=True)

    def _address(self, label: str, *, everywhere: bool = False) -> Register:
        def load() -> Register:
            return self.code.x("la", immediate=label, to=Register("x", area=CONSTANTS))

        return self.code.keep(label, load, everywhere=everywhere)

    def splat(self, value: float, dtype: str) -> Register:
        """A register with a number in all lanes."""
        bits, width = bits_of(value, dtype), 8 * byte_width(dtype)
        return self.word(sum(bits << shift for shift in range(0, 64, width)))

    def word(self, bits: int) -> Register:
        """A register with these 64 bits, loaded from the table."""
        code = self.code
        if bits == 0:
            return code.keep(("f64", 0), lambda: code.f("fcvt.d.w", ZERO))
        if bits not in self.table:
            self.table.append(bits)
        offset = 8 * self.table.index(bits)
        base = self._base()
        found = code.keep(("word", bits), lambda: code.f("fld", base, immediate=offset))
        self._offsets[found] = offset
        return found

    def entries(self, table: Table) -> Register:
        """The address of the entries of a table, integers of 32 bits."""
        return self._address(self.indices.setdefault(table, f"{self.label}_{len(self.indices)}"))

    @property
    def data(self) -> dict[str, list[int]]:
        """The words of 32 bits that the function loads, keyed by label."""
        words = [half for word in self.table for half in (word & _WORD, word >> 32)]
        return {
            **({self.label: words} if words else {}),
            **{label: [entry & _WORD for entry in table.entries] for table, label in self.indices.items()},
        }

    def copy(self, number: Register, to: Register) -> None:
        """Copy a register; constants of the table are loaded instead, so that they need no register of their own."""
        if number in self._offsets:
            self.code.f("fld", self._base(), immediate=self._offsets[number], to=to)
        else:
            self.code.move(number, to)
